//! Variables for a model that nobody explained: a value for each path that its expressions read, chosen so that
//! conditions are decidable, correlation keys are texts and timers are times. Found by evaluating, one path at a time.
//! It starts nothing. Next: `walk.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use wf_feel::{Env, Expression};
use wf_model::{Element, ElementIdx, End, Kind, Process, Text, TimerKind, Trigger};

use super::source::{self, Path};

/// Rounds over all paths; a value found late may make an earlier one fit.
const ROUNDS: usize = 3;

#[derive(Clone)]
pub struct Guess {
    variables: Map<String, Value>,
}

/// What an expression must give, so that the engine can go on.
#[derive(Clone)]
enum Wish {
    Text,
    Number,
    Time(TimerKind),
    /// It is read again under this name: the values should agree.
    Same(Path),
}

impl Guess {
    /// `attempt` decides which branch of each gateway is wished for.
    pub fn of(process: &Process, attempt: usize) -> Guess {
        let wishes = wishes(process);
        let mut search = Search::new(process, &wishes, attempt);
        search.run();
        Guess { variables: variables(&search.candidates, &search.chosen) }
    }

    pub fn variables(&self) -> &Map<String, Value> {
        &self.variables
    }

    /// What a worker or message hands over: the variables that the element's output mappings read. `all`: everything,
    /// where there are no mappings that would keep it from the process.
    pub fn results(&self, process: &Process, element_id: &str, all: bool) -> Map<String, Value> {
        let element = process.by_id.get(element_id).and_then(|index| process.element(*index));
        let outputs = element.map(|element| element.outputs.as_slice()).unwrap_or_default();
        if all && outputs.is_empty() {
            return self.variables.clone();
        }
        let names = outputs.iter().flat_map(|mapping| mapping.source.variables());
        names.filter_map(|name| Some((name.to_string(), self.variables.get(&**name)?.clone()))).collect()
    }
}

/// Expressions outside of conditions, each with what it must give.
fn wishes(process: &Process) -> Vec<(&Expression, Wish)> {
    process.elements.iter().flat_map(of_element).collect()
}

fn of_element(element: &Element) -> Vec<(&Expression, Wish)> {
    let mappings = element.inputs.iter().chain(&element.outputs);
    let target = |path: &[Arc<str>]| Wish::Same(path.iter().map(|part| part.to_string()).collect());
    let mut wishes: Vec<(&Expression, Wish)> =
        mappings.map(|mapping| (&mapping.source, target(&mapping.target))).collect();
    match &element.kind {
        Kind::Job(job) | Kind::End(End::Job(job)) => {
            wishes.extend(text(&job.job_type, Wish::Text));
            wishes.extend(text(&job.retries, Wish::Number));
            wishes.extend(job.priority.as_ref().and_then(|priority| text(priority, Wish::Number)));
            wishes.extend(job.computed_headers.iter().filter_map(|(_, header)| text(header, Wish::Text)));
        }
        Kind::End(End::Error { code }) => wishes.extend(text(code, Wish::Text)),
        Kind::Script { expression, result } => wishes.push((expression, target(std::slice::from_ref(result)))),
        Kind::CatchMessage(message) => wishes.extend(of_message(message)),
        Kind::CatchTimer(timer) => wishes.extend(text(&timer.text, Wish::Time(timer.kind))),
        Kind::Boundary(boundary) => match &boundary.trigger {
            Trigger::Message(message) => wishes.extend(of_message(message)),
            Trigger::Timer(timer) => wishes.extend(text(&timer.text, Wish::Time(timer.kind))),
            Trigger::Error(_) => (),
        },
        _ => (),
    }
    wishes
}

fn of_message(message: &wf_model::MessageRef) -> Vec<(&Expression, Wish)> {
    let key = message.correlation_key.as_ref().map(|key| (key, Wish::Text));
    key.into_iter().chain(text(&message.name, Wish::Text)).collect()
}

fn text(text: &Text, wish: Wish) -> Option<(&Expression, Wish)> {
    match text {
        Text::Feel(expression) => Some((expression, wish)),
        Text::Literal(_) => None,
    }
}

/// Coordinate descent: for each path the candidate with the best score, the others held.
struct Search<'p> {
    wishes: &'p [(&'p Expression, Wish)],
    gateways: Vec<Gateway<'p>>,
    candidates: BTreeMap<Path, Vec<Value>>,
    chosen: BTreeMap<Path, usize>,
}

/// An exclusive gateway's conditions in the order of their flows.
struct Gateway<'p> {
    conditions: Vec<Condition<'p>>,
    has_default: bool,
    /// The flow of this attempt; one past the last: the default flow.
    wished: usize,
}

struct Condition<'p> {
    whole: &'p Expression,
    /// What must be true together, for each way to it: a step towards the truth is seen as one.
    ways: Vec<Vec<Expression>>,
}

impl<'p> Gateway<'p> {
    fn of(process: &'p Process, element: &'p Element, attempt: usize) -> Option<Gateway<'p>> {
        let Kind::Exclusive { default } = &element.kind else { return None };
        let flows = element.outgoing.iter().filter(|flow| Some(**flow) != *default);
        let conditions: Vec<Condition> = flows
            .filter_map(|flow| process.flow(*flow)?.condition.as_ref())
            .map(|whole| Condition { whole, ways: source::ways(whole) })
            .collect();
        let choices = conditions.len() + usize::from(default.is_some());
        let wished = match attempt {
            0 => 0,
            1 => choices.saturating_sub(1),
            // At different gateways by different steps.
            more => (more + element.line as usize * (more / 2)) % choices.max(1),
        };
        Some(Gateway { conditions, has_default: default.is_some(), wished })
    }
}

impl<'p> Search<'p> {
    fn new(process: &'p Process, wishes: &'p [(&'p Expression, Wish)], attempt: usize) -> Search<'p> {
        let candidates = candidates(process, wishes);
        let chosen = candidates.keys().map(|path| (path.clone(), 0)).collect();
        let gateways = process.elements.iter().filter_map(|element| Gateway::of(process, element, attempt)).collect();
        Search { wishes, gateways, candidates, chosen }
    }

    fn run(&mut self) {
        let paths: Vec<Path> = self.candidates.keys().cloned().collect();
        for _ in 0..ROUNDS {
            let before = self.chosen.clone();
            paths.iter().for_each(|path| self.improve(path));
            if self.chosen == before {
                return;
            }
        }
    }

    fn improve(&mut self, path: &Path) {
        let count = self.candidates.get(path).map_or(0, Vec::len);
        let mut best = (self.score(), self.chosen.get(path).copied().unwrap_or(0));
        for candidate in 0..count {
            self.chosen.insert(path.clone(), candidate);
            let score = self.score();
            if score > best.0 {
                best = (score, candidate);
            }
        }
        self.chosen.insert(path.clone(), best.1);
    }

    fn score(&self) -> i64 {
        let variables = variables(&self.candidates, &self.chosen);
        let scope = scope(&variables);
        let wishes = self.wishes.iter().map(|(expression, wish)| granted(expression, wish, &scope, &variables));
        let gateways = self.gateways.iter().map(|gateway| gateway.score(&scope));
        wishes.chain(gateways).sum()
    }
}

impl Gateway<'_> {
    /// That the wished flow is taken, or nearly, counts more than that some flow is: a step towards it must not be lost
    /// to the next best flow. What is wished in vain, another attempt wishes otherwise.
    fn score(&self, scope: &BTreeMap<Arc<str>, wf_feel::Value>) -> i64 {
        let held: Vec<Option<bool>> = self.conditions.iter().map(|condition| holds(condition.whole, scope)).collect();
        let decidable: i64 = held.iter().map(|held| if held.is_some() { 20 } else { -20 }).sum();
        let taken = held.iter().position(|held| *held == Some(true));
        let passes = taken.is_some() || self.has_default || held.is_empty();
        let as_wished = taken.unwrap_or(held.len()) == self.wished;
        let nearly = match self.conditions.get(self.wished) {
            Some(condition) => condition.progress(scope),
            None => percent(held.iter().filter(|held| **held == Some(false)).count(), held.len()),
        };
        decidable + if passes { 10 } else { -20 } + if as_wished { 150 } else { nearly }
    }
}

impl Condition<'_> {
    /// The share of its parts that are true already, of the way that is nearest.
    fn progress(&self, scope: &BTreeMap<Arc<str>, wf_feel::Value>) -> i64 {
        let share = |way: &Vec<Expression>| {
            percent(way.iter().filter(|part| holds(part, scope) == Some(true)).count(), way.len())
        };
        self.ways.iter().map(share).max().unwrap_or(0)
    }
}

fn percent(part: usize, whole: usize) -> i64 {
    i64::try_from(part * 100 / whole.max(1)).unwrap_or(0)
}

fn holds(condition: &Expression, scope: &BTreeMap<Arc<str>, wf_feel::Value>) -> Option<bool> {
    evaluate(condition, scope)?.as_bool()
}

fn granted(
    expression: &Expression,
    wish: &Wish,
    scope: &BTreeMap<Arc<str>, wf_feel::Value>,
    variables: &Map<String, Value>,
) -> i64 {
    let Some(value) = evaluate(expression, scope) else { return -20 };
    let good = match wish {
        Wish::Text => value.as_str().is_some_and(|text| !text.is_empty()) || value.as_number().is_some(),
        Wish::Number => value.as_i64().is_some() || value.as_str().is_some_and(|text| text.parse::<i32>().is_ok()),
        Wish::Time(kind) => is_time(&value, *kind),
        Wish::Same(path) => return same(&value, path, variables),
    };
    if good { 10 } else { -10 }
}

/// A mapping's target that is read elsewhere should get there what was made up for it.
fn same(value: &wf_feel::Value, path: &Path, variables: &Map<String, Value>) -> i64 {
    let wanted = path.iter().try_fold(None, |found: Option<&Value>, part| match found {
        None => variables.get(part).map(Some),
        Some(value) => value.get(part).map(Some),
    });
    let given = value.to_json().ok().and_then(|json| serde_json::from_str::<Value>(&json).ok());
    match wanted.flatten() {
        None => i64::from(!value.is_null()),
        Some(wanted) => {
            if given.as_ref() == Some(wanted) {
                8
            } else {
                0
            }
        }
    }
}

fn is_time(value: &wf_feel::Value, kind: TimerKind) -> bool {
    let json = value.to_json().ok();
    let text = json.as_deref().map(|json| json.trim_matches('"')).unwrap_or_default();
    match kind {
        TimerKind::Duration => wf_feel::add_duration_ms(0, text).is_some_and(|ms| ms > 0),
        TimerKind::Date => wf_feel::parse_instant_ms(text).is_some(),
        TimerKind::Cycle => text.starts_with('R'),
    }
}

fn evaluate(expression: &Expression, scope: &BTreeMap<Arc<str>, wf_feel::Value>) -> Option<wf_feel::Value> {
    // A time within the range of what models are about; the real one would make runs differ.
    let env = Env { now_ms: 1_790_000_000_000, ..Env::default() };
    expression.evaluate(scope, &env).ok()
}

fn scope(variables: &Map<String, Value>) -> BTreeMap<Arc<str>, wf_feel::Value> {
    let values = variables.iter().filter_map(|(name, value)| {
        Some((Arc::from(name.as_str()), wf_feel::Value::from_json(&value.to_string()).ok()?))
    });
    values.collect()
}

/// Hints of every expression, then what fits nearly everywhere. A target that is read elsewhere takes over the hints
/// of what it is made of, and the other way round.
fn candidates(process: &Process, wishes: &[(&Expression, Wish)]) -> BTreeMap<Path, Vec<Value>> {
    let conditions = process.flows.iter().filter_map(|flow| flow.condition.as_ref());
    let mut all: BTreeMap<Path, Vec<Value>> = BTreeMap::new();
    for expression in conditions.chain(wishes.iter().map(|(expression, _)| *expression)) {
        for (path, values) in source::hints(expression) {
            all.entry(path).or_default().extend(values);
        }
    }
    for (expression, wish) in wishes {
        let Wish::Same(target) = wish else { continue };
        let Some(from) = source::hints(expression).into_keys().next() else { continue };
        let known = all.get(target).cloned().unwrap_or_default();
        all.entry(from).or_default().extend(known);
    }
    for values in all.values_mut() {
        values.extend(generic());
        let mut unique: Vec<Value> = Vec::new();
        values.drain(..).for_each(|value| {
            if !unique.contains(&value) {
                unique.push(value)
            }
        });
        *values = unique;
    }
    all
}

fn generic() -> Vec<Value> {
    let times = [json!("PT1S"), json!("2030-01-01T00:00:00Z"), json!("R1/PT1S")];
    let mut values =
        vec![json!("demo-1"), json!(true), json!(1), json!(false), json!(0), json!([1]), json!({}), json!([])];
    values.extend(times);
    values
}

/// Longer paths come after shorter ones, so that members find their context; they replace a value that is none.
fn variables(candidates: &BTreeMap<Path, Vec<Value>>, chosen: &BTreeMap<Path, usize>) -> Map<String, Value> {
    let mut variables = Map::new();
    for (path, values) in candidates {
        let value = chosen.get(path).and_then(|index| values.get(*index)).cloned().unwrap_or_default();
        put(&mut variables, path, value);
    }
    variables
}

fn put(into: &mut Map<String, Value>, path: &[String], value: Value) {
    match path {
        [] => (),
        [name] => {
            into.insert(name.clone(), value);
        }
        [name, rest @ ..] => {
            let inner = into.entry(name.clone()).or_insert_with(|| json!({}));
            if !inner.is_object() {
                *inner = json!({});
            }
            if let Some(inner) = inner.as_object_mut() {
                put(inner, rest, value);
            }
        }
    }
}

/// The message that starts the process, if one does; `attempt` chooses among several, and whether the plain start
/// event is used where there are both.
pub fn start_message(process: &Process, attempt: usize) -> Option<&str> {
    let has_plain = matches!(process.element(wf_model::ROOT).map(|root| &root.kind), Some(Kind::Scope(scope)) if scope.none_start.is_some());
    let names: Vec<&str> = process
        .message_starts()
        .filter_map(|(_, message): (ElementIdx, _)| match &message.name {
            Text::Literal(name) => Some(&**name),
            Text::Feel(_) => None,
        })
        .collect();
    let choices = names.len() + usize::from(has_plain);
    let choice = attempt % choices.max(1);
    let offset = usize::from(has_plain);
    choice.checked_sub(offset).and_then(|index| names.get(index).copied())
}

#[cfg(test)]
mod tests;
