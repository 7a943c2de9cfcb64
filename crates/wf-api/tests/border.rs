//! What crosses the border and how: texts that are stored, times, problems.

use wf_api::{Code, Problem, instances, messages, outbox, time};
use wf_core::outcome::Started;
use wf_core::text::rfc3339;
use wf_core::{Command, Outcome};

fn variables(json: &str) -> Vec<(String, String)> {
    let body = format!(r#"{{"processDefinitionId":"p","variables":{json}}}"#);
    match instances::read_start(body.as_bytes()) {
        Ok(Command::StartInstance { variables, .. }) => {
            variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn variables_are_stored_compact_sorted_and_exact() {
    let table = [
        ("{}", vec![]),
        (" { \"b\" : 1 ,\n\"a\":\t[ 1 , 2.50 ] } ", vec![("a", "[1,2.50]"), ("b", "1")]),
        // White space inside strings stays, behind escaped quotes too.
        (r#"{"a": " x \" y \\" , "b" :" "}"#, vec![("a", r#"" x \" y \\""#), ("b", r#"" ""#)]),
        (r#"{"a":{"z": 1, "y": null}}"#, vec![("a", r#"{"z":1,"y":null}"#)]),
        (r#"{"n":12345678901234567890.000, "m":-1E+2}"#, vec![("m", "-1E+2"), ("n", "12345678901234567890.000")]),
        // Names are texts, values are JSON.
        (r#"{"\u00e9\"":"\u00e9"}"#, vec![("é\"", r#""\u00e9""#)]),
    ];
    for (json, expected) in table {
        let expected: Vec<(String, String)> =
            expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(variables(json), expected, "{json}");
    }
}

#[test]
fn keys_are_taken_as_strings_and_as_numbers() {
    for spelled in ["7", "\"7\""] {
        let body = format!(r#"{{"variables":{{}},"scope":{spelled}}}"#);
        let command = instances::read_set_variables(1, body.as_bytes());
        assert!(matches!(command, Ok(Command::SetVariables { scope: Some(7), .. })), "{spelled}");
    }
    for wrong in ["-7", "7.0", "\"\"", "\" 7\"", "9223372036854775808", "true"] {
        let body = format!(r#"{{"variables":{{}},"scope":{wrong}}}"#);
        assert_eq!(instances::read_set_variables(1, body.as_bytes()).unwrap_err().code, Code::Validation, "{wrong}");
    }
}

#[test]
fn an_empty_message_id_is_none() {
    let read = |id: &str| messages::read_publish(format!(r#"{{"name":"n","messageId":{id}}}"#).as_bytes(), 5);
    assert!(matches!(read("\"\""), Ok(Command::PublishMessage { message_id: None, dedup_ms: 5, ttl_ms: 0, .. })));
    assert!(matches!(read("\"a\""), Ok(Command::PublishMessage { message_id: Some(_), .. })));
}

#[test]
fn times_are_written_as_the_calendar_has_them() {
    let mut ms = 0_i64;
    while ms < 253_402_300_799_999 {
        let expected = jiff::Timestamp::from_millisecond(ms).unwrap();
        let ours = rfc3339(ms);
        assert_eq!(ours, format!("{expected:.3}"));
        assert_eq!(time::parse(&ours), Some(ms));
        // About every nine days, at another time of day.
        ms += 777_777_777;
    }
    assert_eq!(rfc3339(i64::MAX), "9999-12-31T23:59:59.999Z");
    assert_eq!(rfc3339(-1), "1970-01-01T00:00:00.000Z");
    assert_eq!(time::parse("2026-11-29T12:00:00+02:00"), time::parse("2026-11-29T10:00:00Z"));
    assert_eq!(time::parse("2026-11-29"), None);
}

#[test]
fn ids_of_the_outbox_survive_a_path() {
    let id = outbox::parse_id("1.17.2.my.sink").unwrap();
    assert_eq!((id.position, id.n, &*id.sink), (17, 2, "my.sink"));
    assert_eq!(outbox::id_text(&id), "1.17.2.my.sink");
    for wrong in ["", "17", "17.2", "17.2.", "x.2.s", "-1.2.s"] {
        assert_eq!(outbox::parse_id(wrong), None, "{wrong}");
    }
}

#[test]
fn written_by_hand_is_json_all_the_same() {
    let process_id = "p\"\\\u{1}\n\u{1F600}";
    let outcome =
        Outcome::Started(Started { key: u64::MAX, process_id: process_id.into(), version: 1, existing: false });
    let answer = instances::render_started(&outcome);
    let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((&json["processDefinitionId"], &json["key"]), (&process_id.into(), &"18446744073709551615".into()));
    let other = instances::render_started(&Outcome::Done { applied: true });
    assert_eq!(other.status, 500);
    let problem = Problem::new(Code::Overloaded, "a \"quote\"").retry_after_ms(1_001);
    assert_eq!(problem.retry_after_s, Some(2));
    assert_eq!(
        String::from_utf8(problem.to_json()).unwrap(),
        r#"{"type":"/problems/overloaded","title":"The queue is full","status":503,"detail":"a \"quote\"","code":"overloaded"}"#
    );
}

#[test]
fn codes_are_unique() {
    let codes: std::collections::BTreeSet<&str> = Code::ALL.into_iter().map(Code::as_str).collect();
    assert_eq!(codes.len(), Code::ALL.len());
    assert!(Code::ALL.into_iter().all(|code| Code::parse(code.as_str()) == Some(code)));
}
