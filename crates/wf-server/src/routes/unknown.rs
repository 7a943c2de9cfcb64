//! What is not there: unknown routes and methods, as problems like everything else.

use axum::http::{Method, Uri};

use crate::door::{self, Refused};
use wf_api::{Code, Problem};

pub(crate) async fn route(uri: Uri) -> Refused {
    let shown: String = uri.path().chars().take(200).collect();
    Refused(door::not_found(&format!("{shown} is no route of this server")))
}

pub(crate) async fn method(method: Method) -> Refused {
    let shown: String = method.as_str().chars().take(20).collect();
    Refused(Problem::new(Code::MethodNotAllowed, format!("{shown} is not allowed here")))
}
