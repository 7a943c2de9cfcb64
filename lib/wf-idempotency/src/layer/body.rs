//! Bodies: read to their end or to a limit, and given on. Trailers are not. Next: back to `keyed.rs`.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

/// An answer's body: bytes, or the handler's own, of which some may have been read already.
pub struct AnswerBody<R> {
    read: VecDeque<Bytes>,
    rest: Option<Pin<Box<R>>>,
}

impl<R> AnswerBody<R> {
    pub(super) fn whole(bytes: Bytes) -> AnswerBody<R> {
        AnswerBody { read: Some(bytes).filter(|bytes| !bytes.is_empty()).into_iter().collect(), rest: None }
    }

    pub(super) fn behind(read: Vec<Bytes>, rest: Pin<Box<R>>) -> AnswerBody<R> {
        AnswerBody { read: read.into(), rest: Some(rest) }
    }
}

impl<R: Body<Data = Bytes>> Body for AnswerBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        if let Some(bytes) = self.read.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match &mut self.rest {
            Some(rest) => rest.as_mut().poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.as_ref().is_none_or(|rest| rest.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let read: u64 = self.read.iter().map(|bytes| bytes.len() as u64).sum();
        let rest = self.rest.as_ref().map_or(SizeHint::with_exact(0), |rest| rest.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(read + rest.lower());
        if let Some(upper) = rest.upper() {
            hint.set_upper(read + upper);
        }
        hint
    }
}

/// What reading a body up to a limit comes to.
pub enum Collected<B> {
    Whole(Bytes),
    /// More than the limit: what was read, and what comes after it.
    More(Vec<Bytes>, Pin<Box<B>>),
    /// It ended before its end.
    Broken,
}

pub async fn collect<B: Body<Data = Bytes>>(body: B, bytes_max: usize) -> Collected<B> {
    let mut body = Box::pin(body);
    let (mut read, mut count) = (Vec::new(), 0);
    loop {
        match poll_fn(|context| body.as_mut().poll_frame(context)).await {
            None => return Collected::Whole(joined(read)),
            Some(Err(_)) => return Collected::Broken,
            Some(Ok(frame)) => read.extend(frame.into_data().ok().inspect(|bytes| count += bytes.len())),
        }
        if count > bytes_max {
            return Collected::More(read, body);
        }
    }
}

fn joined(mut read: Vec<Bytes>) -> Bytes {
    if read.len() == 1 {
        return read.pop().unwrap_or_default();
    }
    let mut whole = BytesMut::with_capacity(read.iter().map(Bytes::len).sum());
    read.iter().for_each(|bytes| whole.extend_from_slice(bytes));
    whole.freeze()
}
