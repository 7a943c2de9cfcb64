//! `[[sink]]` of the configuration: as it is written, and everything that is wrong with it, listed together.
//! Opens no connection. Next: `sink.rs::build`.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;

use crate::settle::span_ms;

/// What a sink may ask for in `events`, besides `*`.
pub const EVENTS: [&str; 5] =
    ["instance.started", "instance.completed", "instance.canceled", "job.completed", "incident.created"];
/// More attempts than this take weeks: nobody waits for that.
pub const ATTEMPTS_MAX: u32 = 1_000;

/// A broker's own default for a stream.
const NATS_WINDOW_MS: i64 = 2 * 60_000;
/// As long as idempotency keys usually live.
const WEBHOOK_WINDOW_MS: i64 = 24 * 3_600_000;

/// One `[[sink]]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkConfig {
    /// `[A-Za-z0-9_-]{1,63}`, unique. Rows in the outbox carry it: renaming a sink strands its rows. Since 0.1.
    pub name: String,
    /// Since 0.1.
    pub kind: Kind,
    /// nats: `nats://` or `tls://`, several separated by commas; webhook: `http://` or `https://`; stdout: none. Since 0.1.
    #[serde(default)]
    pub url: String,
    /// nats only: created if it is missing, with a duplicate window that covers all attempts. Default: whichever stream
    /// takes the subjects. Since 0.1.
    #[serde(default)]
    pub stream: Option<String>,
    /// nats only: the subject is `{prefix}.{tenant}.{type}`. Default `wf`. Since 0.1.
    #[serde(default = "subject_prefix")]
    pub subject_prefix: String,
    /// webhook: what signs, `whsec_` and base64, or taken as it is; nats: the token to connect with. Default: none. Since 0.1.
    #[serde(default)]
    pub secret: Option<Secret>,
    /// Names of events, or `*`. Default `["*"]`. Since 0.1.
    #[serde(default = "all_events")]
    pub events: Vec<String>,
    /// After so many attempts a row is a dead letter. Default 20. Since 0.1.
    #[serde(default = "attempts_max")]
    pub attempts_max: u32,
    /// Whether a dead letter keeps later ones of its instance from being sent. Default `block`. Since 0.1.
    #[serde(default)]
    pub on_dead: OnDead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Nats,
    Webhook,
    Stdout,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDead {
    #[default]
    Block,
    Pass,
}

/// Never shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl SinkConfig {
    /// A sink with every default.
    pub fn new(name: &str, kind: Kind, url: &str) -> SinkConfig {
        SinkConfig {
            name: name.to_owned(),
            kind,
            url: url.to_owned(),
            stream: None,
            subject_prefix: subject_prefix(),
            secret: None,
            events: all_events(),
            attempts_max: attempts_max(),
            on_dead: OnDead::default(),
        }
    }

    /// What is wrong, as `field: what`; empty if nothing is.
    pub fn problems(&self) -> Vec<String> {
        let checks = [self.name_problem(), self.url_problem(), self.stream_problem(), self.prefix_problem()];
        let more = [self.secret_problem(), self.attempts_problem()];
        checks.into_iter().chain(self.event_problems()).chain(more).flatten().collect()
    }

    /// How long the other side can be taken to remember dedup ids; `Sink::check` asks it.
    pub fn window_ms(&self) -> i64 {
        match self.kind {
            Kind::Nats if self.stream.is_some() => span_ms(self.attempts_max).max(NATS_WINDOW_MS),
            Kind::Nats => NATS_WINDOW_MS,
            Kind::Webhook => WEBHOOK_WINDOW_MS,
            Kind::Stdout => 0,
        }
    }

    fn name_problem(&self) -> Option<String> {
        let is_good = (1..=63).contains(&self.name.len()) && is_token(&self.name);
        (!is_good).then(|| "name: 1 to 63 of A-Z a-z 0-9 _ -".to_owned())
    }

    fn url_problem(&self) -> Option<String> {
        let problem = match self.kind {
            Kind::Nats => crate::sinks::nats::servers(&self.url).err()?,
            Kind::Webhook => crate::sinks::webhook::address(&self.url).err()?,
            Kind::Stdout if self.url.is_empty() => return None,
            Kind::Stdout => "stdout has none".to_owned(),
        };
        Some(format!("url: {problem}"))
    }

    fn stream_problem(&self) -> Option<String> {
        let stream = self.stream.as_deref()?;
        if self.kind != Kind::Nats {
            return Some("stream: only nats has streams".to_owned());
        }
        (!is_token(stream)).then(|| "stream: one or more of A-Z a-z 0-9 _ -".to_owned())
    }

    fn prefix_problem(&self) -> Option<String> {
        let is_good = self.subject_prefix.split('.').all(is_token);
        (!is_good).then(|| "subject_prefix: words of A-Z a-z 0-9 _ - with dots between them".to_owned())
    }

    fn event_problems(&self) -> Vec<Option<String>> {
        if self.events.is_empty() {
            return vec![Some("events: none; leave it out for all".to_owned())];
        }
        let unknown = |event: &&String| *event != "*" && !EVENTS.contains(&event.as_str());
        let problem = |event| Some(format!("events: {event:?} is none of *, {}", EVENTS.join(", ")));
        self.events.iter().filter(unknown).map(problem).collect()
    }

    fn secret_problem(&self) -> Option<String> {
        let secret = self.secret.as_ref()?;
        match self.kind {
            Kind::Webhook => Some(format!("secret: {}", crate::sinks::signature::key(&secret.0).err()?)),
            Kind::Nats => secret.0.is_empty().then(|| "secret: empty".to_owned()),
            Kind::Stdout => Some("secret: stdout has no use for one".to_owned()),
        }
    }

    fn attempts_problem(&self) -> Option<String> {
        let is_good = (1..=ATTEMPTS_MAX).contains(&self.attempts_max);
        (!is_good).then(|| format!("attempts_max: 1 to {ATTEMPTS_MAX}"))
    }
}

/// Of all sinks together, each as `sink NAME: field: what`.
pub fn problems(sinks: &[SinkConfig]) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for sink in sinks {
        found.extend(sink.problems().into_iter().map(|problem| format!("sink {:?}: {problem}", sink.name)));
        if !names.insert(&sink.name) {
            found.push(format!("sink {:?}: name: taken by another sink", sink.name));
        }
    }
    found
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn subject_prefix() -> String {
    "wf".to_owned()
}

fn all_events() -> Vec<String> {
    vec!["*".to_owned()]
}

fn attempts_max() -> u32 {
    20
}
