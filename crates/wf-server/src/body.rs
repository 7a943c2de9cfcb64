//! Bodies: read up to the limit, never beyond; and the media type that says how to read them.
//! It does not parse. Next: `call.rs`.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use wf_api::{Code, Problem};

use crate::route::Media;

pub const BODY_BYTES_MAX: usize = 4 << 20;

/// Who takes longer than this for a body holds its memory for nothing.
const BODY_TIME: Duration = Duration::from_secs(60);

pub(crate) async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let late = |_| Problem::validation("body", format!("was not sent within {} s", BODY_TIME.as_secs()));
    tokio::time::timeout(BODY_TIME, read_all(headers, body)).await.map_err(late)?
}

/// A length that is announced is believed before a byte is read; a chunked body is cut off at the limit.
async fn read_all(headers: &HeaderMap, mut body: Body) -> Result<Bytes, Problem> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| bytes > BODY_BYTES_MAX as u64) {
        return Err(too_large());
    }
    let Some(first) = next(&mut body).await? else { return Ok(Bytes::new()) };
    if body.is_end_stream() {
        return limited(first);
    }
    let mut whole = BytesMut::from(first);
    while let Some(more) = next(&mut body).await? {
        if whole.len() + more.len() > BODY_BYTES_MAX {
            return Err(too_large());
        }
        whole.extend_from_slice(&more);
    }
    limited(whole.freeze())
}

fn limited(body: Bytes) -> Result<Bytes, Problem> {
    if body.len() > BODY_BYTES_MAX { Err(too_large()) } else { Ok(body) }
}

/// The next data; trailers mean nothing here.
async fn next(body: &mut Body) -> Result<Option<Bytes>, Problem> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Problem::validation("body", format!("was cut off: {error}")))?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

fn too_large() -> Problem {
    Problem::new(Code::PayloadTooLarge, format!("a body has at most {BODY_BYTES_MAX} bytes"))
}

/// The content type as it was sent; empty where it is absent, which JSON routes read as JSON.
pub(crate) fn content_type(headers: &HeaderMap, media: Media) -> Result<&str, Problem> {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let text = lines.next().map_or(Ok(""), |value| value.to_str()).unwrap_or("?");
    if lines.next().is_some() {
        return Err(unsupported("the Content-Type header stands on more than one line"));
    }
    if headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        return Err(unsupported("bodies are read as they are: no Content-Encoding"));
    }
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is = |wanted: &str| essence.eq_ignore_ascii_case(wanted);
    let is_readable = match media {
        Media::None => true,
        Media::Json => text.is_empty() || is("application/json") || essence.to_ascii_lowercase().ends_with("+json"),
        Media::Bpmn => is("application/xml") || is("text/xml") || is("multipart/form-data"),
    };
    match (is_readable, media) {
        (true, _) => Ok(text),
        (false, Media::Bpmn) => Err(unsupported("application/xml or multipart/form-data is read here")),
        (false, _) => Err(unsupported("application/json is read here")),
    }
}

fn unsupported(detail: &str) -> Problem {
    Problem::new(Code::UnsupportedMediaType, detail)
}
