//! `multipart/form-data`: the parts that count, free of the boundary that each retry draws anew.
//! Does not interpret parts: a part is its header lines (name, filename and type stand there) and its bytes.

use crate::mac::Mac;
use memchr::memmem;

pub(super) struct Part<'a> {
    /// Lower-case name and trimmed value, sorted.
    headers: Vec<(Vec<u8>, &'a [u8])>,
    body: &'a [u8],
}

/// The boundary parameter of a content type, quoted or not; `None` when absent, empty or over RFC 2046's 70 bytes.
pub(super) fn boundary(content_type: &str) -> Option<String> {
    let (_, parameters) = content_type.split_once(';')?;
    let at = parameters.to_ascii_lowercase().find("boundary=")?;
    let value = parameters[at + "boundary=".len()..].trim_start();
    let boundary = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => value.split([';', ' ', '\t']).next()?,
    };
    (1..=70).contains(&boundary.len()).then(|| boundary.to_owned())
}

/// The parts in their order, or `None` when the body is not made of parts alone: text before the first or behind the
/// last one means nothing to most readers, but who knows.
pub(super) fn parts<'a>(body: &'a [u8], boundary: &str) -> Option<Vec<Part<'a>>> {
    let delimiter = format!("\r\n--{boundary}");
    let finder = memmem::Finder::new(delimiter.as_bytes());
    // The first delimiter stands at the very start, without its line break.
    let mut rest = body.strip_prefix(&delimiter.as_bytes()[2..])?;
    let mut parts = Vec::new();
    while !is_close(rest) {
        let (content, behind) = split(line_end(rest)?, &finder)?;
        parts.push(part(content)?);
        rest = behind;
    }
    Some(parts)
}

/// Cuts at the next delimiter line: what stands before it, and what follows the boundary's text.
fn split<'a>(bytes: &'a [u8], finder: &memmem::Finder) -> Option<(&'a [u8], &'a [u8])> {
    let len = finder.needle().len();
    let is_delimiter = |&at: &usize| is_close(&bytes[at + len..]) || line_end(&bytes[at + len..]).is_some();
    let at = finder.find_iter(bytes).find(is_delimiter)?;
    Some((&bytes[..at], &bytes[at + len..]))
}

fn is_close(behind: &[u8]) -> bool {
    matches!(behind, b"--" | b"--\r\n")
}

/// Behind the line break, if nothing but blanks stands before it.
fn line_end(bytes: &[u8]) -> Option<&[u8]> {
    let blanks = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    bytes[blanks..].strip_prefix(b"\r\n")
}

fn part(content: &[u8]) -> Option<Part<'_>> {
    let (head, body) = match content.strip_prefix(b"\r\n") {
        Some(body) => (&content[..0], body),
        None => {
            let end = memmem::find(content, b"\r\n\r\n")?;
            (&content[..end], &content[end + 4..])
        }
    };
    let lines = head.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let mut headers = lines.map(header).collect::<Option<Vec<_>>>()?;
    headers.sort_by(|(a, _), (b, _)| a.cmp(b));
    Some(Part { headers, body })
}

fn header(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    Some((line[..colon].to_ascii_lowercase(), line[colon + 1..].trim_ascii()))
}

pub(super) fn add(mac: &mut Mac, parts: &[Part<'_>]) {
    mac.count(parts.len());
    for part in parts {
        mac.count(part.headers.len());
        for (name, value) in &part.headers {
            mac.part(name);
            mac.part(value);
        }
        mac.part(part.body);
    }
}
