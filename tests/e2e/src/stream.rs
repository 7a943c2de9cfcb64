//! What a consumer finds in a NATS stream, and how a node is told to publish there.
//! It judges nothing. Used by `bus.rs` and the scenarios.

use std::collections::BTreeMap;

use async_nats::jetstream;
use serde_json::Value;

use crate::api::{Api, text};
use crate::until;

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub subject: String,
    /// `Nats-Msg-Id`
    pub id: String,
    pub event: Value,
}

/// Lines of `wf.toml`. `events`: which types, as TOML.
pub fn sink(url: &str, events: &str) -> String {
    format!("[[sink]]\nname = \"bus\"\nkind = \"nats\"\nurl = \"{url}\"\nstream = \"EVENTS\"\nevents = {events}\n")
}

pub fn all_shipped(api: &Api) {
    until("empty outbox", || api.all("/api/v1/outbox?state=pending").is_empty().then_some(()));
}

/// Everything that the stream holds, in its order.
pub fn stream(url: &str) -> Vec<Message> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = async_nats::connect(url).await.expect("the broker");
        let mut stream = jetstream::new(client).get_stream("EVENTS").await.expect("the stream");
        let state = stream.info().await.expect("its state").state.clone();
        let mut messages = Vec::new();
        for sequence in state.first_sequence..=state.last_sequence {
            let raw = stream.get_raw_message(sequence).await.expect("a message");
            let id = raw.headers.get("Nats-Msg-Id").map(ToString::to_string).unwrap_or_default();
            let event = serde_json::from_slice(&raw.payload).expect("JSON");
            messages.push(Message { subject: raw.subject.to_string(), id, event });
        }
        messages
    })
}

/// The types of one instance's events, in the stream's order; each id once, and equal to its event's.
#[track_caller]
pub fn kinds_of(messages: &[Message], instance: &str) -> Vec<String> {
    let own: Vec<&Message> = messages.iter().filter(|message| message.event["subject"] == instance).collect();
    let mut seen = BTreeMap::new();
    for message in &own {
        assert_eq!(message.event["id"], message.id.as_str());
        assert_eq!(seen.insert(&message.id, ()), None, "{} stands twice", message.id);
    }
    own.iter().map(|message| text(&message.event["type"])).collect()
}
