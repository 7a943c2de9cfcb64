//! `[[sink]]` as users write it, and what they are told.

use expect_test::expect;
use serde::Deserialize;
use wf_ship::{Kind, OnDead, SinkConfig, problems};

#[derive(Deserialize)]
struct File {
    sink: Vec<SinkConfig>,
}

fn read(text: &str) -> Result<Vec<SinkConfig>, toml::de::Error> {
    toml::from_str::<File>(text).map(|file| file.sink)
}

#[test]
fn defaults_are_as_documented() {
    let sinks = read("[[sink]]\nname = \"bus\"\nkind = \"nats\"\nurl = \"nats://localhost\"").unwrap();
    let sink = &sinks[0];
    assert_eq!(sink, &SinkConfig::new("bus", Kind::Nats, "nats://localhost"));
    assert_eq!((&*sink.subject_prefix, sink.attempts_max, sink.on_dead), ("wf", 20, OnDead::Block));
    assert_eq!((&sink.stream, &sink.secret, &*sink.events), (&None, &None, &["*".to_owned()][..]));
    assert_eq!(problems(&sinks), [""; 0]);
}

#[test]
fn an_unknown_field_is_named() {
    let error = read("[[sink]]\nname = \"a\"\nkind = \"stdout\"\nurll = \"x\"").unwrap_err();
    assert!(error.message().contains("unknown field `urll`"), "{error}");
}

#[test]
fn all_problems_are_listed_together_and_secrets_never() {
    let sinks = read(
        r#"
        [[sink]]
        name = "a b"
        kind = "nats"
        url = "nats://one:4222,http://two"
        stream = "a.b"
        subject_prefix = "wf.*"
        events = ["instance.started", "instance.stopped"]
        attempts_max = 0
        [[sink]]
        name = "hook"
        kind = "webhook"
        url = "https://user:word@example.org/hook"
        secret = "whsec_?"
        [[sink]]
        name = "hook"
        kind = "stdout"
        stream = "s"
        secret = "hidden"
        events = []
        on_dead = "pass"
        "#,
    )
    .unwrap();
    assert!(!format!("{sinks:?}").contains("hidden"));
    expect![[r#"
        sink "a b": name: 1 to 63 of A-Z a-z 0-9 _ -
        sink "a b": url: must begin with nats:// or tls://
        sink "a b": stream: one or more of A-Z a-z 0-9 _ -
        sink "a b": subject_prefix: words of A-Z a-z 0-9 _ - with dots between them
        sink "a b": events: "instance.stopped" is none of *, instance.started, instance.completed, instance.canceled, job.completed, incident.created
        sink "a b": attempts_max: 1 to 1000
        sink "hook": url: no user and password in it
        sink "hook": secret: no base64 behind whsec_
        sink "hook": stream: only nats has streams
        sink "hook": events: none; leave it out for all
        sink "hook": secret: stdout has no use for one
        sink "hook": name: taken by another sink"#]]
    .assert_eq(&problems(&sinks).join("\n"));
}
