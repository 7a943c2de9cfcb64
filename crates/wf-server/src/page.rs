//! Lists: the store's position wrapped into an opaque cursor, and the page as an answer.
//! It does not know what is listed. Next: `routes/*.rs`.

use axum::response::Response;
use serde::Serialize;
use wf_api::answer::{self, PageOut};
use wf_idempotency::key::hex;
use wf_store::Page;

use crate::door;

/// Digits that nobody is tempted to compute with.
pub(crate) fn wrap_cursor(position: &str) -> String {
    hex(position.as_bytes())
}

/// The inverse of [`wrap_cursor`].
pub(crate) fn unwrap_cursor(cursor: &str) -> Option<String> {
    let digits: Vec<u32> = cursor.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let is_whole = !digits.is_empty() && digits.len().is_multiple_of(2);
    let bytes = digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8));
    is_whole.then(|| String::from_utf8(bytes.collect()).ok())?
}

pub(crate) fn respond<T, O: Serialize>(page: Page<T>, show: impl FnMut(T) -> O) -> Response {
    let next_cursor = page.next.as_deref().map(wrap_cursor);
    shown(PageOut { items: page.items.into_iter().map(show).collect(), next_cursor })
}

pub(crate) fn shown<O: Serialize>(page: PageOut<O>) -> Response {
    door::respond(answer::of(200, &page), false)
}
