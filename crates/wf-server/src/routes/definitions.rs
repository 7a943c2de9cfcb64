//! Process definitions: deployed, listed, given back as they came.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use wf_api::answer::{self, PageOut};
use wf_api::body::NAME;
use wf_api::definitions::{self, DefinitionOut, Deployed, Files};
use wf_api::problem::not_found;
use wf_api::{Code, Problem};
use wf_core::Command;
use wf_core::command::Resource;
use wf_core::outcome::Noun;
use wf_core::rows::{Definition, Text};
use wf_store::DefinitionQuery;

use crate::app::Doors;
use crate::body;
use crate::call::{Call, enter};
use crate::door::{self, Refused, Reply};
use crate::page;
use crate::params::{Params, PathText};
use crate::route;
use crate::routes::health::of_type;

const FILES_MAX: usize = 100;

/// A file as it came; a bare body has no name.
struct File {
    name: Option<Text>,
    bytes: Bytes,
}

/// Deploys BPMN files, all or none. Each executable process is a definition of its own.
#[utoipa::path(post, path = "/api/v1/definitions", tag = "definitions",
    request_body(content((String = "application/xml"), (String = "text/xml"), (Files = "multipart/form-data"))),
    responses(
        (status = 201, body = Deployed),
        (status = 200, description = "All of them stand already", body = Deployed)
    ))]
pub(crate) async fn deploy(State(doors): State<Doors>, request: Request) -> Reply {
    let call = enter(&doors, &route::DEPLOY, request).await?;
    let files = files_of(&call).await?;
    let compiled = tokio::task::spawn_blocking(move || compile(files)).await;
    let resources = compiled.unwrap_or_else(|_| Err(Problem::new(Code::Internal, "the compiler stopped")))?;
    call.command(Command::Deploy { resources }, definitions::render_deployed).await
}

async fn files_of(call: &Call) -> Result<Vec<File>, Problem> {
    let content_type = body::content_type(&call.head.headers, call.route.media)?;
    match multer::parse_boundary(content_type) {
        Ok(boundary) => parts(call.body.clone(), boundary).await,
        Err(multer::Error::NoMultipart) => Ok(vec![File { name: None, bytes: call.body.clone() }]),
        Err(_) => Err(malformed("the Content-Type header names no boundary")),
    }
}

async fn parts(body: Bytes, boundary: String) -> Result<Vec<File>, Problem> {
    let whole = futures_util::stream::iter([Ok::<Bytes, std::io::Error>(body)]);
    let mut parts = multer::Multipart::new(whole, boundary);
    let mut files = Vec::new();
    while let Some(part) = parts.next_field().await.map_err(|error| malformed(&error.to_string()))? {
        let name = part.file_name().or(part.name()).unwrap_or_default().to_owned();
        NAME.check(&name).map_err(|message| malformed(&format!("a file's name {message}")))?;
        let bytes = part.bytes().await.map_err(|error| malformed(&error.to_string()))?;
        files.push(File { name: Some(Text::from(name)), bytes });
    }
    match files.len() {
        1..=FILES_MAX => Ok(files),
        _ => Err(malformed(&format!("must hold 1 to {FILES_MAX} files"))),
    }
}

fn malformed(message: &str) -> Problem {
    Problem::validation("body", message)
}

/// Everything that is wrong with any of the files is said at once.
fn compile(files: Vec<File>) -> Result<Vec<Resource>, Problem> {
    let mut resources = Vec::with_capacity(files.len());
    let mut invalid = Vec::new();
    for file in files {
        match wf_model::compile(&file.bytes) {
            Ok(processes) => resources.push(resource(file, processes)),
            Err(problems) => invalid.push((file.name.unwrap_or_else(|| Text::from("body")), problems)),
        }
    }
    if invalid.is_empty() { Ok(resources) } else { Err(definitions::invalid(&invalid)) }
}

fn resource(file: File, processes: Vec<wf_model::Process>) -> Resource {
    let of_process = || processes.first().map_or_else(String::new, |process| format!("{}.bpmn", process.process_id));
    let name = file.name.unwrap_or_else(|| Text::from(of_process()));
    Resource { name, xml: Arc::from(&file.bytes[..]), processes: processes.into_iter().map(Arc::new).collect() }
}

/// Definitions of all versions, by key.
#[utoipa::path(get, path = "/api/v1/definitions", tag = "definitions",
    params(
        ("processDefinitionId" = Option<String>, Query),
        ("limit" = Option<u32>, Query, description = "100 where absent, 1,000 at most"),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before")
    ),
    responses((status = 200, body = PageOut<DefinitionOut>)))]
pub(crate) async fn list(State(doors): State<Doors>, request: Request) -> Result<Response, Refused> {
    let (app, visitor) = doors.visit(request.headers(), route::DEFINITIONS.permission).await?;
    let mut params = Params::of(request.uri())?;
    let query = DefinitionQuery {
        tenant: visitor.tenant,
        process_id: params.text("processDefinitionId"),
        slice: params.slice(),
    };
    params.finish()?;
    let page = app.node.store().definitions(query).await?;
    Ok(page::respond(page, DefinitionOut::from))
}

/// One definition, the latest version where none is named.
#[utoipa::path(get, path = "/api/v1/definitions/{id}", tag = "definitions",
    params(("id" = String, Path), ("version" = Option<u32>, Query)),
    responses((status = 200, body = DefinitionOut)))]
pub(crate) async fn get(State(doors): State<Doors>, PathText(id): PathText, request: Request) -> Reply {
    let row = find(&doors, &route::DEFINITION, id, request).await?;
    Ok(door::respond(answer::of(200, &DefinitionOut::from(&*row)), false))
}

/// The file as it was deployed.
#[utoipa::path(get, path = "/api/v1/definitions/{id}/xml", tag = "definitions",
    params(("id" = String, Path), ("version" = Option<u32>, Query)),
    responses((status = 200, description = "BPMN 2.0 XML", body = String, content_type = "application/xml")))]
pub(crate) async fn xml(State(doors): State<Doors>, PathText(id): PathText, request: Request) -> Reply {
    let row = find(&doors, &route::DEFINITION_XML, id, request).await?;
    Ok(of_type("application/xml", Body::from(Bytes::copy_from_slice(&row.xml))))
}

async fn find(
    doors: &Doors,
    route: &'static route::Route,
    id: String,
    request: Request,
) -> Result<Arc<Definition>, Refused> {
    let (app, visitor) = doors.visit(request.headers(), route.permission).await?;
    let mut params = Params::of(request.uri())?;
    let positive = |text: &str| text.parse().ok().filter(|version| *version > 0);
    let version = params.parsed("version", positive, "a version's number");
    params.finish()?;
    let row = app.node.store().definition(visitor.tenant.to_string(), id, version).await?;
    row.ok_or_else(|| Refused(not_found(Noun::Definition)))
}
