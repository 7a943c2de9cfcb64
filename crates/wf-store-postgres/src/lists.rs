//! Lists and details for people and tools: every one is of all partitions. Next: `scan.rs`, how they pass their rows, and
//! `uses.rs`, which counts.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_postgres::Row;
use wf_core::rows::*;
use wf_core::{Key, Millis, Partitions};
use wf_store::codec::scalar_text;
use wf_store::*;

use crate::connection::Values;
use crate::cursors::{Message, Place, Started, cursor};
use crate::open::PostgresStore;
use crate::reads::Reader;
use crate::rows::{self, Result, get, key, partition, sql_key, sql_partition, text};
use crate::scan::{Found, Passed, passed, scan};
use crate::sql::Sql;

impl PostgresStore {
    pub(crate) async fn list_definitions(&self, query: DefinitionQuery) -> Result<Page<DefinitionInfo>> {
        definitions(&self.lists, self.partitions.first(), &query).await
    }

    pub(crate) async fn find_definition(
        &self,
        tenant: String,
        process_id: String,
        version: Option<u32>,
    ) -> Result<Option<Arc<Definition>>> {
        definition(&self.lists, self.partitions.first(), &tenant, &process_id, version).await
    }

    pub(crate) async fn list_instances(&self, query: InstanceQuery) -> Result<Page<Arc<Scope>>> {
        instances(&self.lists, &query).await
    }

    pub(crate) async fn show_instance(&self, key: Key) -> Result<Option<InstanceDetail>> {
        instance(&self.lists, self.partitions, key).await
    }

    pub(crate) async fn list_jobs(&self, query: JobQuery) -> Result<Page<Arc<Job>>> {
        jobs(&self.lists, self.partitions, &query).await
    }

    pub(crate) async fn list_incidents(&self, query: IncidentQuery) -> Result<Page<Arc<Incident>>> {
        incidents(&self.lists, self.partitions, &query).await
    }

    pub(crate) async fn list_outbox(&self, query: OutboxQuery) -> Result<Page<OutboxRow>> {
        outbox(&self.lists, &query).await
    }

    pub(crate) async fn list_audit(&self, query: AuditQuery) -> Result<Page<AuditRow>> {
        audit(&self.lists, &query).await
    }
}

/// One statement of one moment, with the session's limits also behind PgBouncer.
pub async fn read(reader: &Reader, sql: Sql, values: Values<'_>) -> Result<Vec<Row>> {
    Ok(reader.snapshot(vec![(sql, values)]).await?.pop().unwrap_or_default())
}

pub fn all_of<T>(rows: &[Row], read: impl Fn(&Row) -> Result<T>) -> Result<Vec<T>> {
    rows.iter().map(read).collect()
}

fn arcs_of<T>(rows: &[Row], read: impl Fn(&Row) -> Result<T>) -> Result<Vec<Arc<T>>> {
    rows.iter().map(|row| read(row).map(Arc::new)).collect()
}

async fn definitions(reader: &Reader, first: u16, query: &DefinitionQuery) -> Result<Page<DefinitionInfo>> {
    let Some(after) = cursor::<Place>(&query.slice) else { return Ok(empty()) };
    let values = Values::none()
        .with(after.unwrap_or(Place::BEGIN).key)
        .with(&*query.tenant)
        .with(query.process_id.as_deref())
        .with(limit(query.slice.limit).saturating_add(1))
        .with(sql_partition(first));
    let mut items = all_of(&read(reader, Sql::ListDefinitions, values).await?, definition_info)?;
    let has_more = items.len() > query.slice.limit;
    items.truncate(query.slice.limit);
    let place = |info: &DefinitionInfo| Place { partition: first, key: sql_key(info.key) }.to_string();
    let next = items.last().filter(|_| has_more).map(place);
    Ok(Page { items, next })
}

fn definition_info(row: &Row) -> Result<DefinitionInfo> {
    Ok(DefinitionInfo {
        key: key(row, 0)?,
        process_id: text(row, 1)?,
        version: rows::number(row, 2)?,
        resource: text(row, 3)?,
        deployed_at: get(row, 4)?,
    })
}

async fn definition(
    reader: &Reader,
    first: u16,
    tenant: &str,
    process_id: &str,
    version: Option<u32>,
) -> Result<Option<Arc<Definition>>> {
    let version = version.map(i64::from);
    let values = Values::none().with(tenant).with(process_id).with(version).with(sql_partition(first));
    let rows = read(reader, Sql::DefinitionByVersion, values).await?;
    rows.first().map(|row| rows::definition(row).map(Arc::new)).transpose()
}

async fn instances(reader: &Reader, query: &InstanceQuery) -> Result<Page<Arc<Scope>>> {
    let Some(after) = cursor::<Started>(&query.slice) else { return Ok(empty()) };
    let end = Started { partition: 0, started_at: Millis::MAX, key: sql_key(Key::MAX >> 1) as Key };
    let found = scan(query.slice.limit, after.unwrap_or(end), async |before, rows| {
        let mut found = slice_of_instances(reader, query, before, rows).await?;
        if !query.variables.is_empty() {
            keep_with_variables(reader, &query.variables, &mut found).await?;
        }
        Ok(found)
    })
    .await?;
    let values = at_places(found.wanted.iter().map(|at| (at.partition, sql_key(at.key))));
    let items = arcs_of(&read(reader, Sql::InstancesAt, values).await?, rows::scope)?;
    Ok(Page { items, next: found.next.map(|next| next.to_string()) })
}

async fn slice_of_instances(
    reader: &Reader,
    query: &InstanceQuery,
    before: Started,
    rows: i64,
) -> Result<Vec<Passed<Started>>> {
    let state = query.state.map(|state| match state {
        InstanceState::Active => "ACTIVE",
        InstanceState::Completed => "COMPLETED",
        InstanceState::Canceled => "CANCELED",
    });
    let values = Values::none()
        .with(state)
        .with(query.process_id.as_deref())
        .with(&*query.tenant)
        .with(before.started_at)
        .with(sql_key(before.key))
        .with(query.started_after.unwrap_or(Millis::MIN))
        .with(rows);
    all_of(&read(reader, Sql::ScanInstances, values).await?, |row| {
        passed(row, Started { partition: partition(row, 0)?, started_at: get(row, 1)?, key: key(row, 2)? })
    })
}

/// The text of a scalar is not the text of its JSON: it is compared here.
async fn keep_with_variables(
    reader: &Reader,
    wanted: &[(String, String)],
    found: &mut [Passed<Started>],
) -> Result<()> {
    let names: Vec<&str> = wanted.iter().map(|(name, _)| &**name).collect();
    let candidates = found.iter().filter(|passed| passed.is_wanted).map(|passed| passed.at);
    let values = at_places(candidates.map(|at| (at.partition, sql_key(at.key)))).with(names);
    let variables = all_of(&read(reader, Sql::VariablesNamed, values).await?, rows::variable)?;
    let texts: HashMap<(Key, Text), Option<String>> =
        variables.into_iter().map(|row| ((row.scope, row.name), scalar_text(&row.value))).collect();
    for passed in found.iter_mut() {
        let has = |(name, text): &(String, String)| {
            let found = texts.get(&(passed.at.key, name.as_str().into()));
            found.and_then(Option::as_ref) == Some(text)
        };
        passed.is_wanted = passed.is_wanted && wanted.iter().all(has);
    }
    Ok(())
}

async fn instance(reader: &Reader, partitions: Partitions, instance: Key) -> Result<Option<InstanceDetail>> {
    let asked = [
        Sql::FindInstance,
        Sql::InnerScopes,
        Sql::ElementsOfInstance,
        Sql::VariablesOfInstance,
        Sql::JobsOfInstance,
        Sql::TimersOfInstance,
        Sql::SubscriptionsOfInstance,
        Sql::IncidentsOfInstance,
    ];
    let values = || Values::none().with(all_partitions(partitions)).with(sql_key(instance));
    let answers = reader.snapshot(asked.map(|sql| (sql, values())).into()).await?;
    let Ok([found, inner, elements, variables, jobs, timers, subscriptions, incidents]) =
        <[Vec<Row>; 8]>::try_from(answers)
    else {
        return Err(StoreError("not as many answers as questions".to_owned()));
    };
    let mut scopes = arcs_of(&found, rows::scope)?;
    let Some(root) = scopes.first().filter(|root| root.instance.is_some()).cloned() else { return Ok(None) };
    scopes.extend(arcs_of(&inner, rows::scope)?);
    Ok(Some(InstanceDetail {
        root,
        scopes,
        elements: arcs_of(&elements, rows::element)?,
        variables: arcs_of(&variables, rows::variable)?,
        jobs: arcs_of(&jobs, rows::job)?,
        timers: arcs_of(&timers, rows::timer)?,
        subscriptions: arcs_of(&subscriptions, rows::subscription)?,
        incidents: arcs_of(&incidents, rows::incident)?,
    }))
}

async fn jobs(reader: &Reader, partitions: Partitions, query: &JobQuery) -> Result<Page<Arc<Job>>> {
    let Some(after) = cursor::<Place>(&query.slice) else { return Ok(empty()) };
    let state = query.state.map(rows::job_state_name);
    let found = scan(query.slice.limit, after.unwrap_or(Place::BEGIN), async |after, rows| {
        let filter = Values::none().with(&*query.tenant).with(query.job_type.as_deref()).with(state);
        match query.instance {
            None => scan_places(reader, Sql::ScanJobs, behind(filter, after).with(rows)).await,
            Some(root) => {
                let of_root = filter.with(all_partitions(partitions)).with(sql_key(root));
                scan_places(reader, Sql::ScanJobsOfInstance, behind(of_root, after).with(rows)).await
            }
        }
    })
    .await?;
    page_of(reader, Sql::JobsAt, found, rows::job).await
}

async fn incidents(reader: &Reader, partitions: Partitions, query: &IncidentQuery) -> Result<Page<Arc<Incident>>> {
    let Some(after) = cursor::<Place>(&query.slice) else { return Ok(empty()) };
    let found = scan(query.slice.limit, after.unwrap_or(Place::BEGIN), async |after, rows| {
        let filter = Values::none().with(&*query.tenant);
        match query.instance {
            None => scan_places(reader, Sql::ScanIncidents, behind(filter, after).with(rows)).await,
            Some(root) => {
                let of_root = filter.with(all_partitions(partitions)).with(sql_key(root));
                scan_places(reader, Sql::ScanIncidentsOfInstance, behind(of_root, after).with(rows)).await
            }
        }
    })
    .await?;
    page_of(reader, Sql::IncidentsAt, found, rows::incident).await
}

fn behind<'a>(values: Values<'a>, after: Place) -> Values<'a> {
    values.with(sql_partition(after.partition)).with(after.key)
}

async fn scan_places(reader: &Reader, sql: Sql, values: Values<'_>) -> Result<Vec<Passed<Place>>> {
    all_of(&read(reader, sql, values).await?, |row| {
        passed(row, Place { partition: partition(row, 0)?, key: get(row, 1)? })
    })
}

/// The rows of what was found, as far as they still stand.
async fn page_of<T>(
    reader: &Reader,
    sql: Sql,
    found: Found<Place>,
    of: impl Fn(&Row) -> Result<T>,
) -> Result<Page<Arc<T>>> {
    let values = at_places(found.wanted.iter().map(|at| (at.partition, at.key)));
    let items = arcs_of(&read(reader, sql, values).await?, of)?;
    Ok(Page { items, next: found.next.map(|next| next.to_string()) })
}

async fn outbox(reader: &Reader, query: &OutboxQuery) -> Result<Page<OutboxRow>> {
    let Some(after) = cursor::<Message>(&query.slice) else { return Ok(empty()) };
    let found = match &query.id {
        Some(id) => Found { wanted: vec![Message(id.clone())], next: None },
        None => {
            let begin = Message(OutboxId { partition: 0, position: 0, n: 0, sink: "".into() });
            scan(query.slice.limit, after.unwrap_or(begin), async |after, rows| {
                slice_of_messages(reader, query, &after.0, rows).await
            })
            .await?
        }
    };
    let ids: Vec<&OutboxId> = found.wanted.iter().map(|Message(id)| id).collect();
    let mut items = all_of(&read(reader, Sql::GetOutbox, rows::outbox_ids(&ids)).await?, rows::outbox_row)?;
    items.retain(|row| row.entry.tenant == query.tenant && query.state.is_none_or(|state| state == row.state));
    items.sort_by(|one, other| one.entry.id.cmp(&other.entry.id));
    Ok(Page { items, next: found.next.map(|next| next.to_string()) })
}

async fn slice_of_messages(
    reader: &Reader,
    query: &OutboxQuery,
    after: &OutboxId,
    rows: i64,
) -> Result<Vec<Passed<Message>>> {
    let state = query.state.map(crate::outbox::state_name);
    let values = Values::none()
        .with(&*query.tenant)
        .with(state)
        .with(sql_partition(after.partition))
        .with(sql_key(after.position))
        .with(i64::from(after.n))
        .with(&*after.sink)
        .with(rows);
    all_of(&read(reader, Sql::ScanOutbox, values).await?, |row| {
        let (position, n, sink) = (key(row, 1)?, rows::number(row, 2)?, text(row, 3)?);
        passed(row, Message(OutboxId { partition: partition(row, 0)?, position, n, sink }))
    })
}

/// A command's row of the audit; its time says in which time partition it stands.
#[derive(Clone, Copy)]
pub struct Audited {
    pub place: Place,
    pub time: Millis,
}

async fn audit(reader: &Reader, query: &AuditQuery) -> Result<Page<AuditRow>> {
    let Some(after) = cursor::<Place>(&query.slice) else { return Ok(empty()) };
    let first = Place { partition: query.partition, key: query.from.map_or(-1, |from| sql_key(from) - 1) };
    let end = match query.until {
        Some(until) => Place { partition: query.partition, key: i64::try_from(until).unwrap_or(i64::MAX) },
        None if query.is_alone => Place { partition: query.partition, key: i64::MAX },
        None => Place { partition: i16::MAX as u16, key: i64::MAX },
    };
    let begin = Audited { place: after.map_or(first, |after| after.max(first)), time: 0 };
    let found = scan(query.slice.limit, begin, async |after: Audited, rows| {
        let between = behind(behind(Values::none().with(&*query.tenant), after.place), end);
        all_of(&read(reader, Sql::ScanAudit, between.with(rows)).await?, |row| {
            let place = Place { partition: partition(row, 0)?, key: get(row, 1)? };
            passed(row, Audited { place, time: get(row, 2)? })
        })
    })
    .await?;
    let items = audit_rows(reader, &found.wanted).await?;
    Ok(Page { items, next: found.next.map(|next| next.place.to_string()) })
}

pub async fn audit_rows(reader: &Reader, at: &[Audited]) -> Result<Vec<AuditRow>> {
    if at.is_empty() {
        return Ok(Vec::new());
    }
    let times: Vec<Millis> = at.iter().map(|at| at.time).collect();
    let values = at_places(at.iter().map(|at| (at.place.partition, at.place.key))).with(times);
    all_of(&read(reader, Sql::AuditAt, values).await?, |row| {
        Ok(AuditRow {
            partition: partition(row, 0)?,
            position: key(row, 1)?,
            time: get(row, 2)?,
            actor: text(row, 3)?,
            events: get(row, 4)?,
        })
    })
}

/// Partitions and keys, as two columns.
fn at_places<'a>(places: impl Iterator<Item = (u16, i64)>) -> Values<'a> {
    let (partitions, keys): (Vec<i16>, Vec<i64>) =
        places.map(|(partition, key)| (sql_partition(partition), key)).unzip();
    Values::none().with(partitions).with(keys)
}

fn all_partitions(partitions: Partitions) -> Vec<i16> {
    partitions.iter().map(sql_partition).collect()
}

pub fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

fn empty<T>() -> Page<T> {
    Page { items: Vec::new(), next: None }
}
