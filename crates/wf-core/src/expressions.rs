//! FEEL in a scope: gathers the variables that an expression reads, nearest scope first, then evaluates it.
//! A failure is a reason for an incident, never an error of the machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use wf_feel::{Env, Expression, Value};
use wf_model::Text as ModelText;

use crate::draft::{Run, Stop, gather};
use crate::ids::{self, Key};
use crate::rows::{IncidentKind, Json, Text, Variables};
use crate::walk::{ELEMENT_WORK_MAX, WORK_MAX, Walk};

/// Why an element cannot go on: something is missing or refused, or its model failed and an incident must wait.
#[derive(Debug)]
pub(crate) enum Halt {
    Stop(Stop),
    Incident(IncidentKind, String),
}

pub(crate) type Step<T> = Result<T, Halt>;

impl<E: Into<Stop>> From<E> for Halt {
    fn from(error: E) -> Halt {
        Halt::Stop(error.into())
    }
}

/// What a command has spent on its expressions, and the variables that it has read already.
#[derive(Default)]
pub(crate) struct Effort {
    command: u64,
    element: u64,
    /// By their text, never by their place in memory: a replay must count the same.
    parsed: BTreeMap<Json, Value>,
}

/// Bytes of JSON that are as much work as a step, read or written.
const JSON_BYTES_PER_STEP: u64 = 8;
/// The same for values that an evaluation makes.
const VALUE_BYTES_PER_STEP: u64 = 16;
/// The same for a variable that is found again.
const KNOWN_BYTES_PER_STEP: u64 = 256;
/// From here on a parsed variable is kept for the next expression.
const KEPT_BYTES_MIN: usize = 1024;

impl Effort {
    pub fn is_spent(&self) -> bool {
        self.command >= WORK_MAX
    }

    pub fn begin_element(&mut self) {
        self.element = 0;
    }

    fn add(&mut self, work: u64) {
        self.command = self.command.saturating_add(work);
        self.element = self.element.saturating_add(work);
    }

    /// After the work: it is bounded by itself, once.
    fn check(&self) -> Result<(), String> {
        match self.element > ELEMENT_WORK_MAX {
            true => Err(format!("the element's expressions take more than {ELEMENT_WORK_MAX} steps together")),
            false => Ok(()),
        }
    }

    fn parse(&mut self, json: &Json) -> Result<Value, String> {
        if let Some(known) = self.parsed.get(json).cloned() {
            self.add(json.len() as u64 / KNOWN_BYTES_PER_STEP);
            return Ok(known);
        }
        self.add(json.len() as u64 / JSON_BYTES_PER_STEP);
        self.check()?;
        let value = Value::from_json(json).map_err(|error| error.to_string())?;
        if json.len() >= KEPT_BYTES_MIN {
            self.parsed.insert(json.clone(), value.clone());
        }
        Ok(value)
    }

    /// A value as JSON, which is going to be written.
    pub fn write(&mut self, value: &Value) -> Result<Json, String> {
        let json = value.to_json().map_err(|error| error.to_string())?;
        self.add(json.len() as u64 / JSON_BYTES_PER_STEP);
        self.check()?;
        Ok(json.into())
    }
}

/// Where an expression is evaluated: variables that are not yet rows come first, then the scopes from `scope` up.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    pub locals: &'p Variables,
    pub scope: Key,
}

impl Walk<'_, '_> {
    pub(crate) fn evaluate(&mut self, expression: &Expression, place: Place<'_>) -> Step<Value> {
        let mut scope = BTreeMap::new();
        let names = expression.variables();
        let found = gather(names, |name| self.visible(name, place))?;
        for (name, json) in names.iter().zip(found).filter_map(|(name, json)| Some((name, json?))) {
            let value = self.effort.parse(&json);
            let value =
                value.map_err(|error| Halt::Incident(IncidentKind::Expression, format!("variable {name}: {error}")))?;
            scope.insert(name.clone(), value);
        }
        let env = self.next_env();
        let (value, spent) = expression.evaluate_counted(&scope, &env);
        self.effort.add(u64::from(spent.steps) + spent.bytes as u64 / VALUE_BYTES_PER_STEP);
        let value = value.map_err(|error| failed(expression, &error.to_string()))?;
        self.effort.check().map_err(|error| failed(expression, &error))?;
        Ok(value)
    }

    pub(crate) fn evaluate_json(&mut self, expression: &Expression, place: Place<'_>) -> Step<Json> {
        let value = self.evaluate(expression, place)?;
        self.effort.write(&value).map_err(|error| failed(expression, &error))
    }

    /// A literal as it is; an expression must give a string (or a number, spelled as in JSON).
    pub(crate) fn evaluate_text(&mut self, text: &ModelText, place: Place<'_>) -> Step<Text> {
        let expression = match text {
            ModelText::Literal(literal) => return Ok(literal.clone()),
            ModelText::Feel(expression) => expression,
        };
        let value = self.evaluate(expression, place)?;
        match &value {
            Value::String(text) => Ok(Arc::from(&**text)),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Context(_) => {
                Err(failed(expression, &format!("gives {}, a string is wanted", value.type_name())))
            }
            other => {
                let json = other.to_json().map_err(|error| failed(expression, &error.to_string()))?;
                Ok(json.trim_matches('"').into())
            }
        }
    }

    /// A text that requests can ask for: what no request may hold would wait for ever.
    pub(crate) fn evaluate_name(&mut self, text: &ModelText, what: &str, place: Place<'_>) -> Step<Text> {
        let name = self.evaluate_text(text, place)?;
        match wf_model::is_name(&name) {
            true => Ok(name),
            false if name.is_empty() => Err(Halt::Incident(IncidentKind::Expression, format!("{what} is empty"))),
            false => {
                let message = format!("{what} has more than 255 bytes or holds control characters");
                Err(Halt::Incident(IncidentKind::Expression, message))
            }
        }
    }

    /// A whole number of 32 bits, however it is spelled.
    pub(crate) fn evaluate_integer(&mut self, text: &ModelText, place: Place<'_>) -> Step<i32> {
        let (number, shown) = match text {
            ModelText::Literal(literal) => (literal.trim().parse().ok(), literal.to_string()),
            ModelText::Feel(expression) => {
                let value = self.evaluate(expression, place)?;
                let number = match &value {
                    Value::String(text) => text.trim().parse().ok(),
                    other => other.as_i64().and_then(|number| i32::try_from(number).ok()),
                };
                (number, expression.source().to_owned())
            }
        };
        number.ok_or_else(|| Halt::Incident(IncidentKind::Expression, format!("'{shown}' is no integer of 32 bits")))
    }

    fn visible(&self, name: &Text, place: Place<'_>) -> Run<Option<Json>> {
        match place.locals.binary_search_by(|(local, _)| local.cmp(name)) {
            Ok(found) => Ok(place.locals.get(found).map(|(_, value)| value.clone())),
            Err(_) => self.variable(place.scope, name),
        }
    }

    /// Each evaluation has a seed of its own, the same in a replay.
    fn next_env(&mut self) -> Env {
        self.evaluations += 1;
        let context = self.context;
        let parts = [u64::from(context.partition), context.position, self.evaluations].map(u64::to_le_bytes);
        Env { now_ms: context.now, seed: ids::hash16(&[b"feel", &parts[0], &parts[1], &parts[2]]), ..Env::default() }
    }
}

fn failed(expression: &Expression, reason: &str) -> Halt {
    Halt::Incident(IncidentKind::Expression, format!("expression '{}': {reason}", expression.source()))
}
