//! One file per noun; each handler is the path in miniature: enter, read, submit or look up, render.
//! They decide nothing. Next: `call.rs`.

use axum::Router;
use axum::routing::{get, post};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Doors;
use crate::peers::PEEK;

pub(crate) mod audit;
pub(crate) mod clock;
pub(crate) mod definitions;
pub(crate) mod explain;
pub(crate) mod health;
pub(crate) mod idempotency;
pub(crate) mod incidents;
pub(crate) mod instances;
pub(crate) mod jobs;
pub(crate) mod internal;
pub(crate) mod messages;
pub(crate) mod nodes;
pub(crate) mod outbox;
pub(crate) mod problems;
pub(crate) mod proofs;
pub(crate) mod unknown;

pub(crate) fn documented() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(definitions::deploy, definitions::list))
        .routes(routes!(definitions::get))
        .routes(routes!(definitions::xml))
        .routes(routes!(instances::start, instances::list))
        .routes(routes!(instances::get))
        .routes(routes!(instances::cancel))
        .routes(routes!(instances::set_variables))
        .routes(routes!(jobs::activate))
        .routes(routes!(jobs::list))
        .routes(routes!(jobs::complete_many))
        .routes(routes!(jobs::complete))
        .routes(routes!(jobs::fail))
        .routes(routes!(jobs::error))
        .routes(routes!(jobs::extend))
        .routes(routes!(jobs::step))
        .routes(routes!(messages::publish))
        .routes(routes!(incidents::list))
        .routes(routes!(incidents::resolve))
        .routes(routes!(outbox::list))
        .routes(routes!(outbox::retry))
        .routes(routes!(audit::list))
        .routes(routes!(idempotency::list))
        .routes(routes!(idempotency::get))
        .routes(routes!(explain::get))
        .routes(routes!(clock::set, clock::thaw))
        .routes(routes!(nodes::list))
        .routes(routes!(proofs::replay))
        .routes(routes!(proofs::tables))
        .routes(routes!(proofs::audit))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
        .routes(routes!(problems::page))
}

pub(crate) fn undocumented(document: OpenApi) -> Router<Doors> {
    let document = health::Document::new(&document);
    Router::new()
        .route("/openapi.json", get(move || async move { document.respond() }))
        .route(PEEK, post(internal::peek))
}
