//! A page per problem code: what happened and what to do. It is what `type` of a problem points to.

use axum::body::Body;
use wf_api::Code;

use crate::door::{self, Reply};
use crate::params::PathText;
use crate::routes::health::of_type;

/// What a problem code means.
#[utoipa::path(get, path = "/problems/{code}", tag = "server",
    params(("code" = String, Path, description = "The `code` of a problem")),
    responses((status = 200, description = "An HTML page", body = String, content_type = "text/html")))]
pub(crate) async fn page(PathText(code): PathText) -> Reply {
    let code = Code::parse(&code).ok_or_else(|| door::not_found("there is no such problem code"))?;
    Ok(of_type("text/html; charset=utf-8", Body::from(html(code))))
}

/// The texts are ours: nothing in them needs escaping.
fn html(code: Code) -> String {
    let explained = code.explained();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} ({code})</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <style>body{{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}}</style>\n\
         </head><body>\n<p><code>{code}</code>, HTTP {status}</p>\n<h1>{title}</h1>\n\
         <h2>What happened</h2>\n<p>{cause}</p>\n<h2>What to do</h2>\n<p>{remedy}</p>\n</body></html>\n",
        title = explained.title,
        code = explained.code,
        status = explained.status,
        cause = explained.cause,
        remedy = explained.remedy,
    )
}
