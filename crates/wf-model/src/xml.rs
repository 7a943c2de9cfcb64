//! Reading XML: bytes → a bounded tree, and the few questions that the compiler asks a node.
//! It knows the two namespaces, but no BPMN rule. Read `problem.rs` next.

use roxmltree::{Document, ParsingOptions};

use crate::problem::Problem;

pub(crate) const BPMN: &str = "http://www.omg.org/spec/BPMN/20100524/MODEL";
pub(crate) const ZEEBE: &str = "http://camunda.org/schema/zeebe/1.0";

/// Elements within elements; also bounds our own recursion over sub-processes.
const DEPTH_MAX: usize = 256;
/// The parser compares each attribute of a tag with every other.
const TAG_ATTRIBUTES_MAX: usize = 256;
/// The parser copies the namespaces in scope wherever a tag declares one.
const NAMESPACES_MAX: usize = 1024;
/// A node of the tree takes about a hundred bytes.
const NODES_MAX: u32 = 400_000;

pub(crate) type Node<'a> = roxmltree::Node<'a, 'a>;

/// The text without a byte order mark.
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|error| Problem {
        element_id: None,
        line: 1 + bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count() as u32,
        message: "the file is not UTF-8".into(),
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match declared_encoding(text) {
        Some(name) if !["utf-8", "utf8", "us-ascii"].contains(&name.to_ascii_lowercase().as_str()) => Err(Problem {
            element_id: None,
            line: 1,
            message: format!("the file declares the encoding {name}, only UTF-8 is read"),
        }),
        _ => Ok(text),
    }
}

/// `text` must have passed [`decode`]. Without the checks before the parser, small files could keep it busy for minutes.
pub(crate) fn parse<'a>(text: &'a str, lines: &Lines) -> Result<Document<'a>, Problem> {
    let refuse = |line, message| Problem { element_id: None, line, message };
    check_shape(text).map_err(|(offset, message)| refuse(lines.line_at(offset), message))?;
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    Document::parse_with_options(text, options)
        .map_err(|error| refuse(error.pos().row, format!("the file is not well-formed XML: {error}")))
}

fn declared_encoding(text: &str) -> Option<&str> {
    let (declaration, _) = text.strip_prefix("<?xml")?.split_once("?>")?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    value.get(1..)?.split(quote).next()
}

/// One pass over the tags. What it cannot make sense of it leaves to the parser, which then refuses the file.
fn check_shape(text: &str) -> Result<(), (usize, String)> {
    let (mut at, mut depth, mut namespaces) = (0, 0_usize, 0);
    while let Some(open) = find(text, at, "<") {
        let rest = text.get(open..).unwrap_or_default();
        let Some(tag) = Markup::read(text, open, rest) else { return Ok(()) };
        at = tag.end;
        namespaces += tag.namespaces;
        match tag.nesting {
            Nesting::Open => depth += 1,
            Nesting::Close => depth = depth.saturating_sub(1),
            Nesting::None => (),
        }
        for (found, max, what) in [
            (depth, DEPTH_MAX, "levels of nesting"),
            (tag.attributes, TAG_ATTRIBUTES_MAX, "attributes in one tag"),
            (namespaces, NAMESPACES_MAX, "namespace declarations"),
        ] {
            if found > max {
                return Err((open, format!("the file has more than {max} {what}")));
            }
        }
    }
    Ok(())
}

enum Nesting {
    Open,
    Close,
    None,
}

struct Markup {
    end: usize,
    nesting: Nesting,
    attributes: usize,
    namespaces: usize,
}

impl Markup {
    fn read(text: &str, open: usize, rest: &str) -> Option<Self> {
        let skip = |until: &str| {
            let end = find(text, open + 2, until)? + until.len();
            Some(Self { end, nesting: Nesting::None, attributes: 0, namespaces: 0 })
        };
        if rest.starts_with("<!--") {
            skip("-->")
        } else if rest.starts_with("<![CDATA[") {
            skip("]]>")
        } else if rest.starts_with("<?") {
            skip("?>")
        } else if rest.starts_with("<!") {
            None // A document type: the parser refuses it.
        } else if rest.starts_with("</") {
            skip(">").map(|tag| Self { nesting: Nesting::Close, ..tag })
        } else {
            Self::start_tag(text, open)
        }
    }

    fn start_tag(text: &str, open: usize) -> Option<Self> {
        let (mut at, mut attributes, mut namespaces) = (open + 1, 0, 0);
        loop {
            let end = at + text.get(at..)?.find(['"', '\'', '>'])?;
            let before = text.get(at..end)?;
            attributes += before.matches('=').count();
            namespaces += before.matches("xmlns").count();
            match text.get(end..end + 1)? {
                ">" => {
                    let nesting = if before.ends_with('/') { Nesting::None } else { Nesting::Open };
                    return Some(Self { end: end + 1, nesting, attributes, namespaces });
                }
                quote => at = find(text, end + 1, quote)? + 1,
            }
        }
    }
}

fn find(text: &str, from: usize, needle: &str) -> Option<usize> {
    Some(from + text.get(from..)?.find(needle)?)
}

/// Offsets of the line ends: the parser's own look-up counts from the start of the file each time.
#[derive(Debug)]
pub(crate) struct Lines(Vec<usize>);

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(offset, _)| offset).collect())
    }

    /// From 1.
    pub(crate) fn line_at(&self, offset: usize) -> u32 {
        self.0.partition_point(|end| *end < offset) as u32 + 1
    }
}

pub(crate) fn is_bpmn(node: Node) -> bool {
    node.tag_name().namespace() == Some(BPMN)
}

pub(crate) fn tag<'a>(node: Node<'a>) -> &'a str {
    node.tag_name().name()
}

/// The child elements of one namespace, in the order of the file.
pub(crate) fn children<'a>(node: Node<'a>, namespace: &'static str) -> impl Iterator<Item = Node<'a>> {
    node.children().filter(move |child| child.is_element() && child.tag_name().namespace() == Some(namespace))
}

/// An attribute without a prefix: `camunda:type` is not `type`.
pub(crate) fn attribute<'a>(node: Node<'a>, name: &str) -> Option<&'a str> {
    node.attributes().find(|found| found.namespace().is_none() && found.name() == name).map(|found| found.value())
}

/// As [`attribute`], where an empty value means the same as none.
pub(crate) fn filled<'a>(node: Node<'a>, name: &str) -> Option<&'a str> {
    attribute(node, name).filter(|value| !value.trim().is_empty())
}

/// The element's own text, without the white space around it.
pub(crate) fn text(node: Node) -> String {
    let parts: String = node.children().filter(|child| child.is_text()).filter_map(|child| child.text()).collect();
    parts.trim().to_owned()
}
