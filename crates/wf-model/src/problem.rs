//! One reason why a file cannot be executed, and the list in which they are gathered.
//! It knows no rule. `compile.rs` makes the list; the door shows it to the user.

use std::fmt;
use std::sync::Arc;

use crate::xml::{self, Lines, Node};

/// Ids are copied into each problem, row and answer.
pub(crate) const ID_BYTES_MAX: usize = 255;
/// A file may break a rule once per element; nobody reads more than this.
const PROBLEMS_MAX: usize = 1000;
/// Names and expressions are copied to, or parsed for, each element that refers to them: a small file could ask for
/// gigabytes.
const VALUE_BYTES_MAX: usize = 16 << 20;

/// A reason why a resource cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Line in the source, from 1.
    pub line: u32,
    /// The flow node, flow, message or process that has to be changed; none where the file as a whole is at fault.
    pub element_id: Option<Arc<str>>,
    /// The broken rule, a fragment in lower case.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.element_id {
            Some(id) => write!(out, "line {}, {id}: {}", self.line, self.message),
            None => write!(out, "line {}: {}", self.line, self.message),
        }
    }
}

impl std::error::Error for Problem {}

/// Everything found so far.
#[derive(Debug)]
pub(crate) struct Report<'l> {
    lines: &'l Lines,
    problems: Vec<Problem>,
    value_bytes: usize,
}

impl<'l> Report<'l> {
    pub(crate) fn new(lines: &'l Lines) -> Self {
        Self { lines, problems: Vec::new(), value_bytes: 0 }
    }

    pub(crate) fn line(&self, node: Node) -> u32 {
        self.lines.line_at(node.range().start)
    }

    pub(crate) fn refuse(&mut self, node: Node, message: impl Into<String>) {
        let element_id = owner(node).map(Arc::from);
        self.problems.push(Problem { line: self.line(node), element_id, message: message.into() });
    }

    /// False, and a problem, once the file's values have grown out of proportion.
    pub(crate) fn afford(&mut self, node: Node, value: &str) -> bool {
        let before = self.value_bytes;
        self.value_bytes = before.saturating_add(value.len());
        if self.value_bytes > VALUE_BYTES_MAX && before <= VALUE_BYTES_MAX {
            self.refuse(
                node,
                "the names and expressions of this file, at all places where they are used, are too long",
            );
        }
        self.value_bytes <= VALUE_BYTES_MAX
    }

    /// `value` where there is nothing to report, else the problems by line.
    pub(crate) fn finish<T>(mut self, value: T) -> Result<T, Vec<Problem>> {
        if self.problems.is_empty() {
            return Ok(value);
        }
        self.problems.sort();
        self.problems.dedup();
        if let Some(last) = self.problems.get(PROBLEMS_MAX - 1) {
            let (line, more) = (last.line, self.problems.len() - PROBLEMS_MAX + 1);
            self.problems.truncate(PROBLEMS_MAX - 1);
            self.problems.push(Problem { line, element_id: None, message: format!("{more} more problems") });
        }
        Err(self.problems)
    }
}

/// The id that a user sees in the modeler: not that of an event's definition or of the file, which no editor shows.
fn owner<'a>(node: Node<'a>) -> Option<&'a str> {
    let shown = |tag: &str| tag != "definitions" && !tag.ends_with("EventDefinition");
    node.ancestors()
        .filter(|node| xml::is_bpmn(*node) && shown(xml::tag(*node)))
        .find_map(|node| xml::filled(node, "id").filter(|id| id.len() <= ID_BYTES_MAX))
}
