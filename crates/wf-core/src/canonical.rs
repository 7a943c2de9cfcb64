//! The canonical bytes of a row, and the digest over all rows: a sum modulo 2^128, so that a change subtracts the old
//! row and adds the new one. Explicit and versioned by golden tests: what is hashed here never changes silently.

use crate::ids::Key;
use crate::rows::*;

/// BLAKE3-128 of (table, key, canonical row), as a number to add or subtract.
pub fn digest_of(row: &Row) -> u128 {
    let mut out = Canon(Vec::with_capacity(160));
    write_row(row, &mut out);
    let hash = blake3::hash(&out.0);
    let mut first = [0; 16];
    first.copy_from_slice(&hash.as_bytes()[..16]);
    u128::from_le_bytes(first)
}

/// The part of the digest that stands for the counters.
pub fn digest_of_counters(partition: u16, next_counter: u64) -> u128 {
    let mut out = Canon(Vec::with_capacity(16));
    out.tag(255).num(u64::from(partition)).num(next_counter);
    let mut first = [0; 16];
    first.copy_from_slice(&blake3::hash(&out.0).as_bytes()[..16]);
    u128::from_le_bytes(first)
}

/// Applies one change to a digest.
pub fn shift(digest: u128, old: Option<&Row>, new: Option<&Row>) -> u128 {
    let without = old.map_or(digest, |row| digest.wrapping_sub(digest_of(row)));
    new.map_or(without, |row| without.wrapping_add(digest_of(row)))
}

/// A writer whose every value has one spelling: tags and numbers fixed width, bytes with their length.
struct Canon(Vec<u8>);

impl Canon {
    fn tag(&mut self, tag: u8) -> &mut Canon {
        self.0.push(tag);
        self
    }

    fn num(&mut self, number: u64) -> &mut Canon {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn int(&mut self, number: i64) -> &mut Canon {
        self.num(number as u64)
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Canon {
        self.num(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(&mut self, text: &str) -> &mut Canon {
        self.bytes(text.as_bytes())
    }

    fn keys(&mut self, keys: &[Key]) -> &mut Canon {
        keys.iter().fold(self, |out, key| out.num(*key))
    }

    fn variables(&mut self, variables: &Variables) -> &mut Canon {
        self.num(variables.len() as u64);
        variables.iter().fold(self, |out, (name, value)| out.text(name).text(value))
    }
}

fn write_row(row: &Row, out: &mut Canon) {
    match row {
        Row::Definition(row) => {
            out.tag(1).num(row.key).text(&row.tenant).text(&row.process_id).num(u64::from(row.version));
            out.text(&row.resource).bytes(&row.checksum).int(row.deployed_at);
        }
        Row::StartSubscription(row) => {
            out.tag(2).text(&row.tenant).text(&row.message).text(&row.process_id);
            out.num(row.definition).num(u64::from(row.element));
        }
        Row::Scope(row) => write_scope(row, out),
        Row::Element(row) => write_element(row, out),
        Row::Variable(row) => {
            out.tag(5).num(row.scope).text(&row.name).text(&row.value);
        }
        Row::Job(row) => write_job(row, out),
        Row::Step(row) => {
            out.tag(7).num(row.job).text(&row.name).text(&row.result);
        }
        Row::Timer(row) => {
            out.tag(8).keys(&[row.key, row.host, row.scope, row.root, u64::from(row.target)]);
            out.int(row.due).int(i64::from(row.repeats)).text(&row.interval);
        }
        Row::Subscription(row) => {
            out.tag(9).keys(&[row.key, row.host, row.scope, row.root, u64::from(row.target)]);
            out.text(&row.tenant).text(&row.process_id).text(&row.message).text(&row.correlation_key);
        }
        Row::Message(row) => {
            out.tag(10).num(row.key).text(&row.tenant).text(&row.name).text(&row.correlation_key);
            out.variables(&row.variables).int(row.expires_at).num(row.correlated.len() as u64);
            row.correlated.iter().for_each(|process| {
                out.text(process);
            });
        }
        Row::MessageId(row) => {
            out.tag(11).text(&row.tenant).text(&row.name).text(&row.message_id);
            out.num(row.key).bytes(&row.content).int(row.expires_at);
        }
        Row::StartLock(row) => {
            out.tag(12).text(&row.tenant).text(&row.process_id).text(&row.correlation_key).num(row.root);
        }
        Row::Unique(row) => {
            out.tag(13).text(&row.tenant).text(&row.process_id).text(&row.variable).bytes(&row.value).num(row.root);
        }
        Row::Incident(row) => {
            out.tag(14).keys(&[row.key, row.root, row.scope, row.element_key, row.job]);
            out.text(&row.tenant).text(&row.element_id).text(row.kind.name()).text(&row.message).int(row.created_at);
        }
        Row::FollowUp(row) => write_follow_up(row, out),
        Row::Handover(row) => {
            out.tag(16).keys(&[row.subscription, row.message, row.root]).text(&row.tenant).text(&row.process_id);
            out.text(&row.name).text(&row.correlation_key).variables(&row.variables).int(row.expires_at);
        }
    }
}

fn write_scope(row: &Scope, out: &mut Canon) {
    out.tag(3).keys(&[row.key, row.root, row.parent, row.definition, u64::from(row.element)]);
    out.tag(row.state as u8).num(u64::from(row.active)).num(row.joins.len() as u64);
    row.joins.iter().for_each(|(flow, count)| {
        out.num(u64::from(*flow)).num(u64::from(*count));
    });
    out.bytes(&row.lineage).num(row.visits.len() as u64);
    row.visits.iter().for_each(|(element, count)| {
        out.num(u64::from(*element)).num(u64::from(*count));
    });
    match row.after {
        After::Nothing => out.tag(0),
        After::Cancel => out.tag(1),
        After::Complete => out.tag(2),
        After::Continue(element) => out.tag(3).num(u64::from(element)),
    };
    let Some(instance) = &row.instance else {
        out.tag(0);
        return;
    };
    out.tag(1).text(&instance.tenant).text(&instance.process_id).num(u64::from(instance.version));
    out.int(instance.started_at).int(instance.ended_at).num(instance.steps);
    out.num(instance.started_position).num(instance.ended_position);
    match &instance.unique {
        Some((variable, value)) => out.tag(1).text(variable).bytes(value),
        None => out.tag(0),
    };
    match &instance.start_correlation {
        Some(correlation) => out.tag(1).text(correlation),
        None => out.tag(0),
    };
}

fn write_element(row: &Element, out: &mut Canon) {
    out.tag(4).keys(&[row.key, row.scope, row.root, u64::from(row.element), row.job, row.incident]);
    out.tag(row.phase as u8).tag(u8::from(row.has_locals)).num(row.attached.len() as u64);
    row.attached.iter().for_each(|attached| {
        out.tag(attached.kind as u8).num(attached.key).num(u64::from(attached.target));
    });
}

fn write_job(row: &Job, out: &mut Canon) {
    out.tag(6).keys(&[row.key, row.element_key, row.scope, row.root, row.definition, u64::from(row.element)]);
    out.text(&row.tenant).text(&row.job_type).tag(row.state as u8).int(i64::from(row.retries));
    out.int(i64::from(row.priority)).text(&row.worker).num(row.lease).int(row.due).text(&row.headers);
    out.bytes(&row.lineage).num(u64::from(row.steps));
    match &row.completion {
        Some(completion) => out.tag(1).bytes(completion),
        None => out.tag(0),
    };
}

fn write_follow_up(row: &FollowUp, out: &mut Canon) {
    out.tag(15).keys(&[row.key, row.root, row.scope]);
    match &row.work {
        Work::Arrive { element, flow } => {
            out.tag(1).num(u64::from(*element)).int(flow.map_or(-1, i64::from));
        }
        Work::Terminate => {
            out.tag(2);
        }
        Work::StartNext { process_id, message, correlation_key, tenant } => {
            out.tag(3).text(process_id).text(message).text(correlation_key).text(tenant);
        }
        Work::MatchBuffered { subscription } => {
            out.tag(4).num(*subscription);
        }
    }
}
