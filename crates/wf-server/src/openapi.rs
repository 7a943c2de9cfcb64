//! The OpenAPI document, made from the handlers' own types and annotations; what all operations share is added here.
//! A test holds it and the routes together. Next: `routes/*.rs`.

use axum::Router;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, Required, Response, ResponseBuilder};
use utoipa::{OpenApi as _, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use wf_api::answer::PROBLEM_JSON;
use wf_api::problem::{FieldError, ProblemBody};

use crate::app::Doors;
use crate::route::{ROUTES, Route};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Onceflow",
        description = "A durable BPMN workflow engine in which every effect happens effectively once. Keys are strings \
            in answers and may be numbers in requests; times are RFC 3339 in UTC. Repeat a request with its \
            Idempotency-Key and the first answer comes back, byte for byte.",
        license(name = "Apache-2.0 OR MIT")
    ),
    components(schemas(ProblemBody, FieldError)),
    tags(
        (name = "definitions", description = "Deployed processes"),
        (name = "instances", description = "Running and ended processes"),
        (name = "jobs", description = "Work for workers"),
        (name = "messages", description = "What comes from outside"),
        (name = "incidents", description = "What stopped and waits for an operator"),
        (name = "operation", description = "Outbox, audit, keys, clock"),
        (name = "server", description = "The server itself")
    )
)]
struct Document;

const ROLES: &str = "A token from the configuration. Its roles say what it may do. `admin`: everything. `client`: start \
    and cancel instances, set variables, publish messages, and read these. `worker`: take and finish jobs, and list them. \
    `reader`: read everything, audit, outbox and keys too. Only `admin` deploys, resolves incidents, ships again and sets \
    the clock.";

/// The routes' own annotations under the document's head.
pub(crate) fn with_document(routes: OpenApiRouter<Doors>) -> (Router<Doors>, OpenApi) {
    let (router, mut document) = OpenApiRouter::with_openapi(Document::openapi()).merge(routes).split_for_parts();
    for route in ROUTES {
        if let Some(operation) = operation_of(&mut document, route) {
            complete(operation, route);
        }
    }
    for (path, item) in &mut document.paths.paths {
        let noun = path.strip_prefix("/api/v1/").and_then(|path| path.split('/').next()).unwrap_or("server");
        let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.delete];
        operations.into_iter().flatten().for_each(|operation| polish(operation, noun));
    }
    if let Some(components) = &mut document.components {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(ROLES)).build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    }
    (router, document)
}

pub(crate) fn operation_of<'a>(document: &'a mut OpenApi, route: &Route) -> Option<&'a mut Operation> {
    let item = document.paths.paths.get_mut(route.path)?;
    match route.method {
        "GET" => item.get.as_mut(),
        "POST" => item.post.as_mut(),
        "PUT" => item.put.as_mut(),
        _ => item.delete.as_mut(),
    }
}

/// Every operation may be refused as a problem, and every keyed one takes a key.
fn complete(operation: &mut Operation, route: &Route) {
    operation.responses.responses.insert("default".to_owned(), RefOr::T(problem()));
    let bearer = SecurityRequirement::new("bearer", Vec::<String>::new());
    operation.security = Some(vec![SecurityRequirement::default(), bearer]);
    if route.is_keyed {
        let text = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(257)).build();
        let key = ParameterBuilder::new()
            .name("Idempotency-Key")
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some("Makes the request repeatable: send the same key with every repeat."))
            .schema(Some(text))
            .build();
        operation.parameters.get_or_insert_default().push(RefOr::T(key));
    }
}

/// Handlers are named within their noun, operations within the whole document.
fn polish(operation: &mut Operation, noun: &str) {
    operation.operation_id = operation.operation_id.take().map(|verb| format!("{verb}_{noun}"));
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            response.description = "Done".into();
        }
    }
}

fn problem() -> Response {
    ResponseBuilder::new()
        .description("Refused; `code` says why, `/problems/<code>` explains it")
        .content(PROBLEM_JSON, Content::new(Some(Ref::from_schema_name(ProblemBody::name()))))
        .build()
}
