//! Lists and details: filters, order, pages, tenants. Next: `uses.rs`.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use wf_core::rows::*;
use wf_core::{Key, Row};

use crate::batch::AuditEntry;
use crate::conformance::messages;
use crate::conformance::samples::*;
use crate::conformance::world::*;
use crate::outbox::{OutboxId, OutboxState};
use crate::query::*;
use crate::store::StoreError;

/// Not a `Page::next` of any list.
const MALFORMED: [&str; 6] = ["not a cursor", "\u{1}", "99999999999999999999999999", "-1", "1.5", "é🦀"];

fn all() -> Slice {
    Slice { after: None, limit: 100 }
}

/// Reads a list in pages of every size: the same items, `next` only where more follow.
pub(super) async fn paged<T: Clone + PartialEq + Debug, F: Future<Output = Result<Page<T>, StoreError>>>(
    ask: impl Fn(Slice) -> F,
) -> Result<Vec<T>, Failed> {
    let whole = ask(all()).await?;
    same("one page holds all", whole.next.is_none(), true)?;
    for limit in 1..=whole.items.len() {
        let mut items = Vec::new();
        let mut after = None;
        loop {
            let page = ask(Slice { after, limit }).await?;
            let left = whole.items.len() - items.len();
            same("items of a page", page.items.len(), left.min(limit))?;
            same("a next page where more follows", page.next.is_some(), left > limit)?;
            items.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        same("all pages together", &items, &whole.items)?;
    }
    for after in MALFORMED {
        let page = ask(Slice { after: Some(after.to_owned()), limit: 10 }).await?;
        same("a malformed cursor", (page.items.len(), page.next), (0, None))?;
    }
    Ok(whole.items)
}

fn odd_entry(position: u64, tenant: &str) -> AuditEntry {
    let events = format!("[{{\"type\":\"job.ready\",\"resource\":\"{position}\",\"payload\":{{ }}}}]");
    AuditEntry { time: -1, tenant: tenant.into(), actor: ODD.into(), events, ..audit_entry(position) }
}

pub async fn audit_is_read_by_position_and_tenant(mut world: World) -> Result<(), Failed> {
    let positions = [2, 3, 9, 10, KEY_MAX];
    let entries = positions.map(|position| odd_entry(position, TENANT)).into_iter();
    let entries = entries.chain([odd_entry(4, "other"), odd_entry(11, "")]).collect();
    world.turn(|batch| batch.audit = entries).await?;
    let ask = |from, until| {
        let store = &world.store;
        async move {
            paged(|slice| {
                store.audit(AuditQuery {
                    tenant: TENANT.into(),
                    partition: PARTITION,
                    is_alone: false,
                    from,
                    until,
                    slice,
                })
            })
            .await
        }
    };
    let whole = ask(None, None).await?;
    let first = AuditRow {
        partition: PARTITION,
        position: 2,
        time: -1,
        actor: ODD.into(),
        events: odd_entry(2, TENANT).events,
    };
    same("a row", whole.first(), Some(&first))?;
    let table = [
        (None, None, vec![2, 3, 9, 10, KEY_MAX]),
        (Some(3), None, vec![3, 9, 10, KEY_MAX]),
        (Some(4), Some(10), vec![9, 10]),
        (None, Some(2), vec![2]),
        (Some(5), Some(4), vec![]),
        (Some(KEY_MAX), Some(KEY_MAX), vec![KEY_MAX]),
    ];
    for (from, until, want) in table {
        let got: Vec<u64> = ask(from, until).await?.into_iter().map(|row| row.position).collect();
        same(&format!("{from:?} to {until:?}"), got, want)?;
    }
    Ok(())
}

pub async fn definitions_are_listed(mut world: World) -> Result<(), Failed> {
    let other = Definition { tenant: "other".into(), ..definition(5, "order", 9) };
    let mine =
        [definition(9, "order", 2), definition(10, "order", 10), definition(2, "order", 1), definition(3, "Order", 1)];
    world.put(mine.clone().map(row).into_iter().chain([row(other.clone())])).await?;
    let store = &world.store;
    let ask = |process_id: Option<&'static str>| async move {
        let query = |slice| DefinitionQuery { tenant: TENANT.into(), process_id: process_id.map(str::to_owned), slice };
        paged(|slice| store.definitions(query(slice))).await
    };
    let keys = |found: Vec<DefinitionInfo>| found.into_iter().map(|info| info.key).collect::<Vec<Key>>();
    same("of one process", keys(ask(Some("order")).await?), vec![2, 9, 10])?;
    same("of no process", keys(ask(Some("nobody")).await?), vec![])?;
    let whole = ask(None).await?;
    let second = DefinitionInfo {
        key: 3,
        process_id: "Order".into(),
        version: 1,
        resource: "order.bpmn".into(),
        deployed_at: 5,
    };
    same("an item", whole.get(1), Some(&second))?;
    same("by key", keys(whole), vec![2, 3, 9, 10])?;
    let one = |tenant: &str, version| store.definition(tenant.to_owned(), "order".to_owned(), version);
    same("the latest", one(TENANT, None).await?.as_deref(), Some(&mine[1]))?;
    same("a version", one(TENANT, Some(2)).await?.as_deref(), Some(&mine[0]))?;
    same("no such version", one(TENANT, Some(9)).await?, None)?;
    same("another tenant's", one("other", None).await?.as_deref(), Some(&other))?;
    same("nobody's", one("", None).await?, None)
}

fn instance_row(key: Key, state: ScopeState, edit: impl FnOnce(&mut Instance)) -> Row {
    let mut own = instance();
    edit(&mut own);
    row(Scope { state, instance: Some(Arc::new(own)), ..root(key) })
}

async fn instances(world: &World, edit: impl Fn(&mut InstanceQuery)) -> Result<Vec<Key>, Failed> {
    let query = |slice| {
        let mut query = InstanceQuery {
            tenant: TENANT.into(),
            state: None,
            process_id: None,
            started_after: None,
            variables: Vec::new(),
            slice,
        };
        edit(&mut query);
        query
    };
    let found = paged(|slice| world.store.instances(query(slice))).await?;
    for root in &found {
        same("the row", Some(row((**root).clone())), world.mirror.get(&root.id()).cloned())?;
    }
    Ok(found.into_iter().map(|root| root.key).collect())
}

pub async fn instances_are_listed_the_newest_first(mut world: World) -> Result<(), Failed> {
    world
        .put([
            instance_row(9, ScopeState::Active, |own| own.started_at = 20),
            instance_row(10, ScopeState::Terminating, |own| (own.process_id, own.started_at) = ("Order".into(), 21)),
            instance_row(2, ScopeState::Completed, |own| own.started_at = -1),
            instance_row(3, ScopeState::Canceled, |own| own.started_at = -1),
            instance_row(4, ScopeState::Active, |own| own.tenant = "other".into()),
            row(sub_scope(5, 9)),
        ])
        .await?;
    same("all", instances(&world, |_| ()).await?, vec![10, 9, 3, 2])?;
    let states =
        [(InstanceState::Active, vec![10, 9]), (InstanceState::Completed, vec![2]), (InstanceState::Canceled, vec![3])];
    for (state, want) in states {
        same("by state", instances(&world, |query| query.state = Some(state)).await?, want)?;
    }
    let of_process = |query: &mut InstanceQuery| query.process_id = Some("Order".into());
    same("by process", instances(&world, of_process).await?, vec![10])?;
    let since = |at| move |query: &mut InstanceQuery| query.started_after = Some(at);
    same("started after", instances(&world, since(20)).await?, vec![10])?;
    same("started after", instances(&world, since(-2)).await?, vec![10, 9, 3, 2])?;
    let ended = row(Scope { state: ScopeState::Completed, ..root(9) });
    world.put([ended]).await?;
    same("the state follows", instances(&world, |query| query.state = Some(InstanceState::Active)).await?, vec![10])?;
    world.delete([root(9).id()]).await?;
    same("gone", instances(&world, |_| ()).await?, vec![10, 3, 2])
}

/// By the text of scalars in the root scope: a string without its quotes.
pub async fn instances_are_found_by_their_variables(mut world: World) -> Result<(), Failed> {
    world.put([1, 2, 3, 4].map(|key| row(root(key)))).await?;
    world.put([instance_row(5, ScopeState::Active, |own| own.tenant = "other".into())]).await?;
    let values = [
        (1, "order", "\"A1\""),
        (2, "order", "\"A1\""),
        (5, "order", "\"A1\""),
        (3, "Order", "\"A1\""),
        (1, "total", "1.10"),
        (2, "total", "\"1.10\""),
        (3, "total", "1.1"),
        (4, "total", "{\"a\":1}"),
        (1, "odd", "\"caf\\u00e9 \\\"x\\\"\""),
        (1, "empty", "\"\""),
        (2, "empty", "null"),
        (77, "order", "\"A1\""),
    ];
    world.put(values.map(|(scope, name, value)| row(variable(scope, name, value)))).await?;
    world.put([row(sub_scope(77, 3))]).await?;
    type Pairs = &'static [(&'static str, &'static str)];
    let table: [(Pairs, Vec<Key>); 10] = [
        (&[("order", "A1")], vec![2, 1]),
        (&[("order", "a1")], vec![]),
        (&[("total", "1.10")], vec![2, 1]),
        (&[("total", "1.1")], vec![3]),
        (&[("total", "{\"a\":1}")], vec![]),
        (&[("order", "A1"), ("total", "1.10")], vec![2, 1]),
        (&[("order", "A1"), ("empty", "")], vec![1]),
        (&[("empty", "null")], vec![2]),
        (&[("odd", "café \"x\"")], vec![1]),
        (&[("nothing", "")], vec![]),
    ];
    let ask = async |world: &World, pairs: Pairs| {
        let wanted: Vec<(String, String)> =
            pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        instances(world, |query| query.variables = wanted.clone()).await
    };
    for (pairs, want) in table {
        same(&format!("{pairs:?}"), ask(&world, pairs).await?, want)?;
    }
    world.put([row(variable(1, "order", "\"B2\""))]).await?;
    world.delete([row(variable(2, "order", "1")).id()]).await?;
    same("changed and gone", ask(&world, &[("order", "A1")]).await?, vec![])?;
    same("the new text", ask(&world, &[("order", "B2")]).await?, vec![1])
}

pub async fn an_instance_is_shown_whole(mut world: World) -> Result<(), Failed> {
    let mine = |element: Element| Element { root: 2, ..element };
    world
        .put([
            row(root(2)),
            row(sub_scope(6, 2)),
            row(mine(element(6, 7))),
            row(mine(element(2, 10))),
            row(mine(element(2, 9))),
            row(variable(2, "b", "1")),
            row(variable(2, "B", "2")),
            row(variable(6, "c", "3")),
            row(Job { state: JobState::Completed, ..job(10) }),
            row(job(9)),
            row(timer(11, 5)),
            row(subscription(12, "paid", "A1")),
            row(incident(13, 2)),
        ])
        .await?;
    let other = |key| (root(key), element(key, key + 1), variable(key, "b", "1"), incident(key + 2, key));
    let (scope, element, variable, incident) = other(50);
    let apart = [row(Job { root: 50, ..job(60) }), row(Timer { root: 50, ..timer(61, 5) })];
    world.put([row(scope), row(element), row(variable), row(incident)].into_iter().chain(apart)).await?;
    let Some(detail) = world.store.instance(2).await? else {
        return Err(Failed("the instance is not found".to_owned()));
    };
    same("the root", row((*detail.root).clone()), row(root(2)))?;
    same("scopes", detail.scopes.iter().map(|row| row.key).collect(), vec![2, 6])?;
    same("elements", detail.elements.iter().map(|row| row.key).collect(), vec![7, 9, 10])?;
    same("variables", detail.variables.iter().map(|row| &*row.name).collect(), vec!["B", "b"])?;
    same("jobs", detail.jobs.iter().map(|row| row.key).collect(), vec![9, 10])?;
    same("timers", detail.timers.iter().map(|row| row.key).collect(), vec![11])?;
    same("subscriptions", detail.subscriptions.iter().map(|row| row.key).collect(), vec![12])?;
    same("incidents", detail.incidents.iter().map(|row| row.key).collect(), vec![13])?;
    same("a sub-process is no instance", world.store.instance(6).await?.is_some(), false)?;
    same("nothing", world.store.instance(3).await?.is_some(), false)
}

pub async fn jobs_and_incidents_are_listed(mut world: World) -> Result<(), Failed> {
    let jobs = [
        job(9),
        job(10),
        Job { state: JobState::Failed, ..job(2) },
        Job { job_type: "Pay".into(), root: 3, ..job(4) },
        Job { tenant: "other".into(), ..job(5) },
    ];
    let foreign = Incident { tenant: "other".into(), ..incident(23, 2) };
    let incidents = [incident(29, 2), incident(30, 2), incident(21, 3), foreign];
    world.put(jobs.map(row).into_iter().chain(incidents.map(row))).await?;
    type Filter = (Option<&'static str>, Option<JobState>, Option<Key>);
    let table: [(Filter, Vec<Key>); 5] = [
        ((None, None, None), vec![2, 4, 9, 10]),
        ((Some("pay"), None, None), vec![2, 9, 10]),
        ((None, Some(JobState::Ready), None), vec![4, 9, 10]),
        ((None, Some(JobState::Ready), Some(2)), vec![9, 10]),
        ((Some("pay"), Some(JobState::Activated), None), vec![]),
    ];
    for ((job_type, state, instance), want) in table {
        let job_type = job_type.map(str::to_owned);
        let query = |slice| JobQuery { tenant: TENANT.into(), job_type: job_type.clone(), state, instance, slice };
        let found = paged(|slice| world.store.jobs(query(slice))).await?;
        same("jobs", found.iter().map(|job| job.key).collect(), want)?;
        for job in found {
            same("the row", world.mirror.get(&job.id()), Some(&Row::Job(job.clone())))?;
        }
    }
    for (instance, want) in [(None, vec![21, 29, 30]), (Some(2), vec![29, 30]), (Some(9), vec![])] {
        let query = |slice| IncidentQuery { tenant: TENANT.into(), instance, slice };
        let found = paged(|slice| world.store.incidents(query(slice))).await?;
        same("incidents", found.iter().map(|incident| incident.key).collect(), want)?;
    }
    Ok(())
}

pub async fn messages_are_listed(mut world: World) -> Result<(), Failed> {
    let entries = messages::a_few(&mut world).await?;
    let id = |position, n, sink: &str| OutboxId { partition: PARTITION, position, n, sink: sink.into() };
    let table = [
        (None, None, vec![id(9, 1, "a-b"), id(9, 1, "nats"), id(10, 2, "nats")]),
        (Some(OutboxState::Dead), None, vec![id(9, 1, "nats")]),
        (Some(OutboxState::Pending), None, vec![id(9, 1, "a-b"), id(10, 2, "nats")]),
        (Some(OutboxState::Shipped), None, vec![]),
        (None, Some(id(10, 2, "nats")), vec![id(10, 2, "nats")]),
        (None, Some(id(8, 1, "nats")), vec![]),
    ];
    for (state, one, want) in table {
        let query = |slice| OutboxQuery { tenant: TENANT.into(), state, id: one.clone(), slice };
        let found = paged(|slice| world.store.outbox(query(slice))).await?;
        same("messages", found.iter().map(|row| row.entry.id.clone()).collect(), want)?;
        let is_known = found.iter().all(|row| entries.iter().any(|entry| **entry == row.entry));
        same("as they were written", is_known, true)?;
    }
    Ok(())
}

/// On lists that hold something, so that an ignored cursor would show.
pub async fn malformed_cursors_are_empty_pages(mut world: World) -> Result<(), Failed> {
    messages::a_few(&mut world).await?;
    world.put([row(definition(1, "p", 1)), row(root(1)), row(job(1)), row(incident(1, 1))]).await?;
    world.turn(|batch| batch.audit = vec![audit_entry(2)]).await?;
    let store = &world.store;
    let tenant = || Text::from(TENANT);
    for after in MALFORMED {
        let slice = || Slice { after: Some(after.to_owned()), limit: 10 };
        let definitions = DefinitionQuery { tenant: tenant(), process_id: None, slice: slice() };
        let jobs = JobQuery { tenant: tenant(), job_type: None, state: None, instance: None, slice: slice() };
        let incidents = IncidentQuery { tenant: tenant(), instance: None, slice: slice() };
        let outbox = OutboxQuery { tenant: tenant(), state: None, id: None, slice: slice() };
        let audit = AuditQuery {
            tenant: tenant(),
            partition: PARTITION,
            is_alone: false,
            from: None,
            until: None,
            slice: slice(),
        };
        let sizes = [
            store.definitions(definitions).await?.items.len(),
            store.jobs(jobs).await?.items.len(),
            store.incidents(incidents).await?.items.len(),
            store.outbox(outbox).await?.items.len(),
            store.audit(audit).await?.items.len(),
        ];
        same(after, sizes, [0; 5])?;
    }
    Ok(())
}
