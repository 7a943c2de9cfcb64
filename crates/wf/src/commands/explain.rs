//! `wf debug explain`: one request's life as a picture, layer by layer, each line with its distance from the first moment.
//! It asks once and decides nothing. Next: `wf_client::Explanation`, what there is to show.

use jiff::Timestamp;
use wf_client::{Activation, Duplicate, End, ExplainedJob, ExplainedMessage, Explanation, OutboxMessage};

use crate::cli::{ExplainArgs, ExplainEnd, Output};
use crate::output::{self, Done, Failure};

use super::connect;

/// Events that are drawn; all of them stand in the JSON.
const EVENTS_MAX: usize = 60;

pub async fn explain(args: ExplainArgs) -> Done {
    let end = end_of(args.end).ok_or_else(|| Failure::usage("needs one of --key, --instance, --job, --message"))?;
    let explanation = connect(&args.remote)?.explain(&end).await?;
    match args.remote.output {
        Output::Json => output::print(&output::json(&explanation)),
        Output::Table => output::print(&picture(&end, &explanation)),
    }
}

fn end_of(end: ExplainEnd) -> Option<End> {
    let ExplainEnd { key, instance, job, message } = end;
    let key = key.map(End::Key).or(instance.map(End::Instance));
    key.or(job.map(End::Job)).or(message.map(End::Message))
}

fn picture(end: &End, told: &Explanation) -> String {
    let clock = Clock::of(told);
    let mut text = headline(end, told);
    let sections = [
        ("1 API", api(told, &clock)),
        ("2 command", command(told, &clock)),
        ("3 jobs", jobs(told, &clock)),
        ("4 calls to the outside", calls(told)),
        ("5 messages", messages(told, &clock)),
        ("6 audit", audit(told, &clock)),
    ];
    for (title, lines) in sections {
        text.push_str(&format!("\n\n{title}"));
        let lines = if lines.is_empty() { vec![Line::bare("-")] } else { lines };
        aligned(&mut text, &lines);
    }
    if !told.unknown.is_empty() {
        text.push_str("\n\nnot known");
        aligned(&mut text, &told.unknown.iter().map(|what| Line::bare(what)).collect::<Vec<_>>());
    }
    text
}

fn headline(end: &End, told: &Explanation) -> String {
    let title = match end {
        End::Key(key) => format!("key {key}"),
        End::Instance(key) => format!("instance {key}"),
        End::Job(key) => format!("job {key}"),
        End::Message(id) => format!("message {id}"),
    };
    let state = if told.state == "NONE" { "no record of a key" } else { &told.state };
    let facts = [
        ("route", &told.route),
        ("first seen", &told.first_seen_at),
        ("expires", &told.expires_at),
        ("key hash", &told.key_hash),
        ("fingerprint", &told.fingerprint),
    ];
    let mut text = format!("{title}   {state}");
    for (name, value) in facts {
        if let Some(value) = value {
            text.push_str(&format!("\n  {name:<12} {value}"));
        }
    }
    text
}

/// One line of the picture: when, what, and which ids belong to it.
struct Line {
    at: String,
    cells: Vec<String>,
}

impl Line {
    fn bare(text: &str) -> Line {
        Line { at: String::new(), cells: vec![text.to_owned()] }
    }
}

/// Times to the right, then columns as wide as their widest cell; the last one runs free.
fn aligned(text: &mut String, lines: &[Line]) {
    let width = |cells: &mut dyn Iterator<Item = &String>| cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
    let at_width = width(&mut lines.iter().map(|line| &line.at));
    let columns = lines.iter().map(|line| line.cells.len()).max().unwrap_or(0);
    let inner = |index: usize| lines.iter().filter(move |line| line.cells.len() > index + 1);
    let widths: Vec<usize> =
        (0..columns).map(|index| width(&mut inner(index).filter_map(|line| line.cells.get(index)))).collect();
    for line in lines {
        let mut row = format!("  {:>at_width$}", line.at);
        for (index, cell) in line.cells.iter().enumerate() {
            let last = index + 1 == line.cells.len();
            let pad = if last { 0 } else { widths[index].saturating_sub(cell.chars().count()) };
            row.push_str(&format!("  {cell}{}", " ".repeat(pad)));
        }
        text.push('\n');
        text.push_str(row.trim_end());
    }
}

fn api(told: &Explanation, clock: &Clock) -> Vec<Line> {
    let mut lines = Vec::new();
    if let (Some(answer), Some(first)) = (&told.answer, &told.first_seen_at) {
        let remembered = format!("answered {}, {} bytes: what every repeat gets", answer.status, answer.bytes);
        lines.push(clock.line(first, vec!["first".to_owned(), remembered]));
    }
    lines.extend(of_key(told, &told.key_hash).map(|row| repeat(row, clock)));
    lines
}

fn of_key<'t>(told: &'t Explanation, key_hash: &'t Option<String>) -> impl Iterator<Item = &'t Duplicate> {
    told.duplicates.iter().filter(move |row| row.key_hash.is_some() && row.key_hash == *key_hash)
}

fn repeat(row: &Duplicate, clock: &Clock) -> Line {
    let meaning = match row.kind.as_str() {
        "REPLAY" => "the first answer again, nothing ran",
        "CONFLICT" => "another request under the key, refused, nothing ran",
        "IN_PROGRESS" => "while the first still ran, told to come back",
        "JOB" => "reported again, nothing changed",
        "MESSAGE" => "the id was known, nothing was correlated",
        _ => "nothing ran",
    };
    let what = format!("{} {}: {meaning}", row.kind, row.route);
    let until = if row.count > 1 { format!(" (last {})", clock.distance(&row.last_at)) } else { String::new() };
    clock.line(&row.first_at, vec![format!("duplicate ×{}", row.count), what + &until])
}

fn command(told: &Explanation, clock: &Clock) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(command) = &told.command {
        let ids = format!("{}  command {}", command.event_id, command.id);
        lines.push(clock.line(&command.time, vec![command.verb.clone(), ids]));
    }
    if let Some(start) = &told.started_by {
        let key = start.key_hash.as_ref().map(|hash| format!("  key hash {hash}")).unwrap_or_default();
        lines.push(clock.line(&start.time, vec![start.verb.clone(), format!("{}{key}", start.event_id)]));
        lines.extend(of_key(told, &start.key_hash).map(|row| nested(repeat(row, clock))));
    }
    if let Some(instance) = &told.instance {
        let of = format!("of {} v{}", instance.process_definition_id, instance.version);
        let cells = |what: &str| vec![format!("instance {what}"), format!("{} {of}", instance.key)];
        lines.push(clock.line(&instance.started_at, cells("started")));
        match &instance.ended_at {
            Some(at) => lines.push(clock.line(at, cells(&instance.state.to_lowercase()))),
            None => lines.push(Line { at: "now".to_owned(), cells: cells(&instance.state.to_lowercase()) }),
        }
    } else {
        let touched = told.instances.iter().map(|key| vec!["instance".to_owned(), key.clone()]);
        lines.extend(touched.map(|cells| Line { at: String::new(), cells }));
    }
    lines
}

fn jobs(told: &Explanation, clock: &Clock) -> Vec<Line> {
    told.jobs.iter().flat_map(|job| job_lines(job, told, clock)).collect()
}

/// The job, then each lease that it had, then who reported it again.
fn job_lines(job: &ExplainedJob, told: &Explanation, clock: &Clock) -> Vec<Line> {
    let retries = job.retries.map(|retries| format!(", {retries} retries left")).unwrap_or_default();
    let head = format!("{} {} at {}: {}{retries}", job.key, job.kind, job.element_id, job.state);
    let mut lines = vec![Line::bare(&head)];
    lines.extend(job.activations.iter().map(|lease| lease_line(lease, clock)));
    let again = told.duplicates.iter().filter(|row| row.job_key.as_ref() == Some(&job.key));
    lines.extend(again.map(|row| nested(repeat(row, clock))));
    lines
}

fn lease_line(lease: &Activation, clock: &Clock) -> Line {
    let end = match (&lease.end, &lease.ended_at) {
        (Some(end), Some(at)) => format!("{end} {}", clock.distance(at)),
        _ => "stands".to_owned(),
    };
    let held = format!("lease {} until {}, {end}", lease.lease, clock.distance(&lease.deadline));
    nested(clock.line(&lease.at, vec![format!("leased by {}", lease.worker), held]))
}

fn nested(mut line: Line) -> Line {
    if let Some(first) = line.cells.first_mut() {
        first.insert_str(0, "  ");
    }
    line
}

fn calls(told: &Explanation) -> Vec<Line> {
    let line = |job: &ExplainedJob| {
        let steps = if job.steps.is_empty() { "-".to_owned() } else { job.steps.join(", ") };
        let lineage = output::or_dash(job.lineage_key.as_deref());
        let cells = vec![job.kind.clone(), job.idempotency_key.clone(), lineage, format!("steps: {steps}")];
        Line { at: String::new(), cells }
    };
    told.jobs.iter().map(line).collect()
}

/// What came in, then what went out.
fn messages(told: &Explanation, clock: &Clock) -> Vec<Line> {
    let mut lines: Vec<Line> = told.messages.iter().map(|message| came(message, clock)).collect();
    let again = told.duplicates.iter().filter(|row| row.message.is_some());
    lines.extend(again.map(|row| {
        let mut line = repeat(row, clock);
        if let (Some(what), Some(id)) = (line.cells.last_mut(), &row.message) {
            what.insert_str(0, &format!("{id}  "));
        }
        line
    }));
    lines.extend(told.outbox.iter().map(|message| went(message, clock)));
    lines
}

fn came(message: &ExplainedMessage, clock: &Clock) -> Line {
    let of = message.correlation_key.iter().filter(|key| !key.is_empty()).map(|key| format!(" for {key}"));
    let id = message.message_id.iter().map(|id| format!(", id {id}"));
    let reached = message.element_id.iter().map(|element| format!(" → {element}"));
    let event = message.event_id.iter().map(|event| format!("  {event}"));
    let words: String = of.chain(id).chain(reached).chain(event).collect();
    let at = message.at.as_deref().map(|at| clock.distance(at)).unwrap_or_default();
    Line { at, cells: vec!["in".to_owned(), format!("{}{words}", message.name)] }
}

fn went(message: &OutboxMessage, clock: &Clock) -> Line {
    let attempts =
        if message.attempts == 1 { "1 attempt".to_owned() } else { format!("{} attempts", message.attempts) };
    let shipped = message.shipped_at.as_deref().map(|at| format!(" {}", clock.distance(at))).unwrap_or_default();
    let error = message.last_error.as_deref().filter(|_| message.state != "shipped");
    let error = error.map(|error| format!(": {}", output::short(error, 60))).unwrap_or_default();
    let what = format!(
        "{} → {} {}{shipped}, {attempts}{error}  dedup {}",
        message.topic, message.sink, message.state, message.dedup_key
    );
    clock.line(&message.created_at, vec!["out".to_owned(), what])
}

fn audit(told: &Explanation, clock: &Clock) -> Vec<Line> {
    let shown = told.audit.iter().take(EVENTS_MAX);
    let mut lines: Vec<Line> = shown
        .map(|event| {
            let cells = [&event.event_id, &event.kind, &event.resource, &event.actor].map(Clone::clone);
            clock.line(&event.timestamp, cells.to_vec())
        })
        .collect();
    if told.audit.len() > EVENTS_MAX {
        lines.push(Line::bare(&format!("{} more (--output json)", told.audit.len() - EVENTS_MAX)));
    }
    lines
}

/// Distances from the first moment that anything is known of.
struct Clock {
    zero: Option<Timestamp>,
}

impl Clock {
    fn of(told: &Explanation) -> Clock {
        let command = told.command.as_ref().map(|command| &command.time);
        let started = told.instance.as_ref().map(|instance| &instance.started_at);
        let known = [told.first_seen_at.as_ref(), command, started];
        Clock { zero: known.into_iter().flatten().filter_map(|at| at.parse().ok()).min() }
    }

    fn line(&self, at: &str, cells: Vec<String>) -> Line {
        Line { at: self.distance(at), cells }
    }

    /// `+12.3 s`; the time itself where nothing can be reckoned.
    fn distance(&self, at: &str) -> String {
        match (self.zero, at.parse::<Timestamp>()) {
            (Some(zero), Ok(at)) => distance_of(at.as_millisecond() - zero.as_millisecond()),
            _ => at.to_owned(),
        }
    }
}

fn distance_of(ms: i64) -> String {
    let sign = if ms < 0 { '-' } else { '+' };
    let ms = ms.unsigned_abs();
    let (seconds, minutes, hours) = (ms / 1000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..60_000 => format!("{sign}{seconds}.{:03} s", ms % 1000),
        60_000..3_600_000 => format!("{sign}{minutes} m {:02} s", seconds % 60),
        3_600_000..86_400_000 => format!("{sign}{hours} h {:02} m", minutes % 60),
        _ => format!("{sign}{} d {:02} h", hours / 24, hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_short() {
        let shown = [0, 12, 59_999, 60_000, 3_599_999, 86_399_999, 200_000_000, -1_500].map(distance_of);
        let wanted =
            ["+0.000 s", "+0.012 s", "+59.999 s", "+1 m 00 s", "+59 m 59 s", "+23 h 59 m", "+2 d 07 h", "-1.500 s"];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn columns_stand_below_each_other() {
        let line = |at: &str, cells: &[&str]| Line {
            at: at.to_owned(),
            cells: cells.iter().map(ToString::to_string).collect(),
        };
        let mut text = String::new();
        aligned(
            &mut text,
            &[
                line("+1 s", &["→", "b"]),
                line("", &["free text, as long as it likes"]),
                line("+10 s", &["abc", "d", "e"]),
            ],
        );
        assert_eq!(text, "\n   +1 s  →    b\n         free text, as long as it likes\n  +10 s  abc  d  e");
    }
}
