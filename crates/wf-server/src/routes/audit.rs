//! The audit, event by event. Stored rows hold all events of a command, so pages are cut here.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use wf_api::answer::PageOut;
use wf_api::audit::{self, EventOut, NumberedEvent};
use wf_api::problem::not_found;
use wf_api::{Code, Problem};
use wf_core::outcome::Noun;
use wf_core::rows::Text;
use wf_core::{Key, ids};
use wf_store::{AuditQuery, Slice, parse_event_id};

use crate::app::{Doors, Shared};
use crate::door::Refused;
use crate::page;
use crate::params::Params;
use crate::route;

/// Rows of one read, and reads of one page: an instance's events may stand far apart.
const ROWS_MAX: usize = 1000;
const READS_MAX: usize = 20;

/// Everything that happened in this tenant, in order. Gaps are other tenants' events.
#[utoipa::path(get, path = "/api/v1/audit", tag = "operation",
    params(
        ("from" = Option<String>, Query, description = "An event id, inclusive"),
        ("instance" = Option<String>, Query, description = "Events of this instance only"),
        ("limit" = Option<u32>, Query, description = "100 where absent, 1,000 at most"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before")
    ),
    responses((status = 200, body = PageOut<EventOut>)))]
pub(crate) async fn list(State(doors): State<Doors>, request: Request) -> Result<Response, Refused> {
    let (app, visitor) = doors.visit(request.headers(), route::AUDIT.permission).await?;
    let mut params = Params::of(request.uri())?;
    let from = params.parsed("from", place_of_event, "an event id such as ev-1-42");
    let after = params.parsed("cursor", place_of_cursor, "the nextCursor of an earlier page");
    let (instance, limit) = (params.key("instance"), params.limit());
    params.finish()?;
    let begin = instance.map_or(START, |key| (ids::partition_of(key), 0, 1));
    let mut reader =
        Reader { tenant: visitor.tenant, instance, until: None, at: after.or(from).unwrap_or(begin).max(begin) };
    let is_known = match instance {
        Some(key) => reader.bound(&app, key).await?,
        None => true,
    };
    let page = reader.page(&app, limit).await?;
    // Nothing in the whole audit, and no row: there never was such an instance, not in this tenant.
    let is_nothing = page.items.is_empty() && page.next_cursor.is_none() && after.is_none();
    if !is_known && is_nothing {
        return Err(not_found(Noun::Instance).into());
    }
    Ok(page::shown(page))
}

/// A partition, a position there, and an event's number, from 1. Pages go through one partition after the other.
type Place = (u16, u64, u32);
const START: Place = (0, 0, 1);

fn place_of_event(text: &str) -> Option<Place> {
    parse_event_id(text)
}

fn place_of_cursor(text: &str) -> Option<Place> {
    let text = page::unwrap_cursor(text)?;
    let mut parts = text.split('.');
    let place = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(place)
}

struct Reader {
    tenant: Text,
    instance: Option<Key>,
    until: Option<u64>,
    /// The next event wanted.
    at: Place,
}

impl Reader {
    /// An instance's story stands between its first and its last command. Where retention has taken the instance away its
    /// story is still there, and has to be looked for: `false`.
    async fn bound(&mut self, app: &Shared, key: Key) -> Result<bool, Refused> {
        let detail = app.node.store().instance(key).await?;
        let instance = detail.and_then(|detail| detail.root.instance.clone());
        let Some(instance) = instance.filter(|instance| instance.tenant == self.tenant) else { return Ok(false) };
        self.at = self.at.max((ids::partition_of(key), instance.started_position, 1));
        self.until = Some(instance.ended_position).filter(|position| *position != 0);
        Ok(true)
    }

    async fn page(mut self, app: &Shared, limit: usize) -> Result<PageOut<EventOut>, Refused> {
        let mut items = Vec::new();
        for _ in 0..READS_MAX {
            let (events, is_last) = self.read(app, limit).await?;
            for event in events {
                if items.len() == limit {
                    return Ok(PageOut { items, next_cursor: Some(cursor(event.place())) });
                }
                items.push(event.event);
            }
            if is_last {
                return Ok(PageOut { items, next_cursor: None });
            }
        }
        // A short page that says where to go on is better than a long wait.
        Ok(PageOut { items, next_cursor: Some(cursor(self.at)) })
    }

    /// The wanted events of the next rows, and whether there are no more rows.
    async fn read(&mut self, app: &Shared, limit: usize) -> Result<(Vec<NumberedEvent>, bool), Refused> {
        let rows_max = if self.instance.is_some() { ROWS_MAX } else { limit };
        let query = AuditQuery {
            tenant: Arc::clone(&self.tenant),
            partition: self.at.0,
            is_alone: self.instance.is_some(),
            from: Some(self.at.1),
            until: self.until,
            slice: Slice { after: None, limit: rows_max },
        };
        let page = app.node.store().audit(query).await?;
        let mut events = Vec::new();
        for row in &page.items {
            let unreadable = || Problem::new(Code::Internal, "a row of the audit cannot be read");
            let all = audit::events_of(row, self.instance).ok_or_else(unreadable)?;
            events.extend(all.into_iter().filter(|event| event.place() >= self.at));
        }
        if let Some(last) = page.items.last() {
            self.at = (last.partition, last.position.saturating_add(1), 1);
        }
        Ok((events, page.next.is_none()))
    }
}

fn cursor((partition, position, n): Place) -> String {
    page::wrap_cursor(&format!("{partition}.{position}.{n}"))
}
