//! HTTP/1.1 as it goes over the wire, one connection per request: nothing is hidden, retried or followed.
//! Knows no route. Next: `api.rs`.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Far above what any answer takes: a hang fails the test instead of holding it.
const ANSWER_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A request on its way. Dropped, it is a client that gave up waiting: the server may have it, or not.
#[derive(Debug)]
pub struct Sent {
    stream: TcpStream,
    written: Result<()>,
}

/// The whole answer, or an error where the other side went away in between.
pub fn exchange(address: &str, request: &Request) -> Result<Answer> {
    send(address, request)?.answer()
}

/// An error means that nobody listens: nothing was sent.
pub fn send(address: &str, request: &Request) -> Result<Sent> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.set_nodelay(true)?;
    // A server may answer before it has read everything, and close.
    let written = stream.write_all(&wire(address, request));
    Ok(Sent { stream, written })
}

impl Sent {
    pub fn answer(mut self) -> Result<Answer> {
        match read_answer(&mut self.stream) {
            Ok(answer) => Ok(answer),
            Err(error) => self.written.and(Err(error)),
        }
    }
}

fn wire(address: &str, request: &Request) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n", request.method, request.path);
    for (name, value) in &request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let has_own_framing = request.headers.iter().any(|(name, _)| name == "transfer-encoding");
    if !has_own_framing && (!request.body.is_empty() || request.method != "GET") {
        head.push_str(&format!("content-length: {}\r\n", request.body.len()));
    }
    head.push_str("\r\n");
    [head.as_bytes(), &request.body].concat()
}

/// The other direction, for services that stand at the other end.
pub fn read_request(stream: &mut impl Read) -> Result<Request> {
    let (head, mut body) = read_head(stream)?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut request = Request { method, path, headers: lines.filter_map(pair).collect(), body: Vec::new() };
    let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    while body.len() < length {
        more(stream, &mut body)?;
    }
    request.body = body;
    Ok(request)
}

/// The head without its end, and what came of the body with it.
fn read_head(stream: &mut impl Read) -> Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        more(stream, &mut bytes)?;
    };
    Ok((String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes.split_off(end + 4)))
}

pub fn read_answer(stream: &mut impl Read) -> Result<Answer> {
    let (head, mut body) = read_head(stream)?;
    let mut answer = parse_head(&head).ok_or_else(|| Error::new(ErrorKind::InvalidData, head.clone()))?;
    let length = answer.header("content-length").and_then(|text| text.parse::<usize>().ok());
    match length {
        Some(length) => {
            while body.len() < length {
                more(stream, &mut body)?;
            }
        }
        None => {
            stream.read_to_end(&mut body)?;
        }
    }
    answer.body = body;
    Ok(answer)
}

fn more(stream: &mut impl Read, bytes: &mut Vec<u8>) -> Result<()> {
    let mut chunk = [0; 16 * 1024];
    match stream.read(&mut chunk)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        len => {
            bytes.extend_from_slice(&chunk[..len]);
            Ok(())
        }
    }
}

fn parse_head(head: &str) -> Option<Answer> {
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, headers: lines.filter_map(pair).collect(), body: Vec::new() })
}

fn pair(line: &str) -> Option<(String, String)> {
    line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}: {}", self.status, self.text()))
    }

    /// The stored answer of an earlier request with this key.
    pub fn is_replay(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    /// Fails with the answer's own words unless it has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// A problem with this status and code, in the form that the contract promises.
    #[track_caller]
    pub fn expect_problem(self, status: u16, code: &str) -> Value {
        let answer = self.expect(status);
        let problem = answer.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["type"], format!("/problems/{code}"), "{problem}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        problem
    }
}
