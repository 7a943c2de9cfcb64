//! The nodes of the store, or of all databases, and who owns which partition.

use axum::extract::{Request, State};
use axum::response::Response;
use wf_api::answer;
use wf_api::nodes::{NodesOut, merged, nodes_of};

use crate::app::{Doors, Shared};
use crate::door::{self, Refused};
use crate::params::Params;
use crate::route;

/// Rows of an inbox that are counted: a backlog shows, however long it is.
const INBOX_ROWS_MAX: usize = 100;

/// All living nodes, and all partitions with their owners.
#[utoipa::path(get, path = "/api/v1/nodes", tag = "operation", responses((status = 200, body = NodesOut)))]
pub(crate) async fn list(State(doors): State<Doors>, request: Request) -> Result<Response, Refused> {
    doors.auth.admit(request.headers(), route::NODES.permission)?;
    Params::of(request.uri())?.finish()?;
    let (mut all, mut failed) = (Vec::with_capacity(doors.all().len()), None);
    for app in doors.all() {
        match of_database(app).await {
            Ok(nodes) => all.push(nodes),
            Err(refused) => failed = Some(refused),
        }
    }
    // Of several databases those that can be read are told.
    match failed {
        Some(refused) if all.is_empty() => Err(refused),
        _ => Ok(door::respond(answer::of(200, &merged(all)), false)),
    }
}

async fn of_database(app: &Shared) -> Result<NodesOut, Refused> {
    let members = app.node.members().await?;
    let mut inboxes = Vec::with_capacity(members.partitions.len());
    for row in &members.partitions {
        inboxes.push(app.node.store().inbox(row.partition, INBOX_ROWS_MAX).await?.len());
    }
    Ok(nodes_of(&members, &app.node.me(), &inboxes))
}
