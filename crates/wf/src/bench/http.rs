//! The cheapest HTTP/1.1 client that serves: one kept-alive connection, requests written by hand, answers cut out of
//! one buffer. The generator shares its cores with the server, so every byte that it saves is the server's.
//! It knows our server's answers (always a Content-Length), not the web's.

use std::io::{Error, ErrorKind, Result};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    buffer: Vec<u8>,
}

/// Borrowed from the connection's buffer until the next exchange.
pub struct Answer<'c> {
    pub status: u16,
    pub replayed: bool,
    pub body: &'c [u8],
}

impl Connection {
    pub async fn open(address: &str) -> Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, request: Vec::with_capacity(1024), buffer: Vec::with_capacity(16 << 10) })
    }

    pub async fn post(&mut self, path: &str, key: Option<&str>, body: &[u8]) -> Result<Answer<'_>> {
        let request = &mut self.request;
        request.clear();
        request.extend_from_slice(b"POST ");
        request.extend_from_slice(path.as_bytes());
        request.extend_from_slice(b" HTTP/1.1\r\nHost: wf\r\nContent-Type: application/json\r\n");
        if let Some(key) = key {
            request.extend_from_slice(b"Idempotency-Key: ");
            request.extend_from_slice(key.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"Content-Length: ");
        request.extend_from_slice(body.len().to_string().as_bytes());
        request.extend_from_slice(b"\r\n\r\n");
        request.extend_from_slice(body);
        self.exchange().await
    }

    pub async fn get(&mut self, path: &str) -> Result<Answer<'_>> {
        self.request.clear();
        self.request.extend_from_slice(format!("GET {path} HTTP/1.1\r\nHost: wf\r\n\r\n").as_bytes());
        self.exchange().await
    }

    async fn exchange(&mut self) -> Result<Answer<'_>> {
        self.stream.write_all(&self.request).await?;
        self.buffer.clear();
        let mut scanned = 0;
        let head = loop {
            self.read_more().await?;
            if let Some(head) = read_head(&self.buffer, scanned)? {
                break head;
            }
            scanned = self.buffer.len().saturating_sub(3);
        };
        let end = head.body_at + head.body_bytes;
        while self.buffer.len() < end {
            self.read_more().await?;
        }
        let body = self.buffer.get(head.body_at..end).unwrap_or_default();
        Ok(Answer { status: head.status, replayed: head.replayed, body })
    }

    async fn read_more(&mut self) -> Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")),
            _ => Ok(()),
        }
    }
}

struct Head {
    status: u16,
    replayed: bool,
    body_at: usize,
    body_bytes: usize,
}

/// `None`: not all of it is here yet.
fn read_head(buffer: &[u8], scanned: usize) -> Result<Option<Head>> {
    let Some(end) = buffer.get(scanned..).and_then(|rest| find(rest, b"\r\n\r\n")) else { return Ok(None) };
    let body_at = scanned + end + 4;
    let malformed = || Error::new(ErrorKind::InvalidData, "the answer is no HTTP/1.1");
    let text = buffer.get(..body_at - 4).and_then(|head| std::str::from_utf8(head).ok()).ok_or_else(malformed)?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.get(9..12)?.parse().ok()).ok_or_else(malformed)?;
    let mut head = Head { status, replayed: false, body_at, body_bytes: usize::MAX };
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            head.body_bytes = value.trim().parse().map_err(|_| malformed())?;
        } else if name.eq_ignore_ascii_case("idempotent-replayed") {
            head.replayed = value.trim() == "true";
        }
    }
    if head.body_bytes == usize::MAX {
        return Err(Error::new(ErrorKind::InvalidData, "the answer has no Content-Length"));
    }
    Ok(Some(head))
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, pattern)
}

/// The texts after each `"name":"` up to the next quote, in order. For our own answers, whose values need no escapes.
pub fn texts<'b>(body: &'b [u8], name: &str) -> impl Iterator<Item = &'b str> {
    let pattern = format!("\"{name}\":\"").into_bytes();
    let mut rest = body;
    std::iter::from_fn(move || {
        let at = find(rest, &pattern)? + pattern.len();
        let tail = rest.get(at..)?;
        let end = memchr::memchr(b'"', tail)?;
        rest = tail.get(end..)?;
        std::str::from_utf8(tail.get(..end)?).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_cut_where_its_length_says() {
        let bytes = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nidempotent-replayed: true\r\n\r\n{}";
        let head = read_head(bytes, 0).unwrap().unwrap();
        assert_eq!((head.status, head.replayed, head.body_bytes), (201, true, 2));
        assert_eq!(&bytes[head.body_at..], b"{}");
        assert!(read_head(b"HTTP/1.1 201", 0).unwrap().is_none());
        assert!(read_head(b"HTTP/1.1 200 OK\r\n\r\n", 0).is_err());
    }

    #[test]
    fn texts_follow_one_another() {
        let body = br#"{"jobs":[{"key":"1","lease":"a"},{"key":"2","lease":"b","processInstanceKey":"9"}]}"#;
        assert_eq!(texts(body, "key").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(texts(body, "lease").collect::<Vec<_>>(), ["a", "b"]);
    }
}
