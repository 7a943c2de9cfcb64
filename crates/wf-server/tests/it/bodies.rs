//! What bodies may hold. Every refusal names its field, and all that is wrong is said at once.

use crate::support::*;

async fn check(service: &Service, path: &str, table: &[(&str, &str)]) {
    for (body, expected) in table {
        assert_eq!(service.post(path, body).await.verdict(), *expected, "{path} {body}");
    }
}

#[tokio::test]
async fn starts() {
    let service = Service::plain().await;
    service.deploy(WORK).await;
    let with = |variables: &str| format!(r#"{{"processDefinitionId":"order","variables":{variables}}}"#);
    let deep = |levels: usize| with(&format!("{{\"a\":{}1{}}}", "[".repeat(levels), "]".repeat(levels)));
    let long_name = with(&format!("{{\"{}\":1}}", "n".repeat(256)));
    let refused: [(&str, &str); 24] = [
        ("", "400 validation: processDefinitionId"),
        ("[]", "400 validation: body"),
        ("{", "400 validation: body"),
        ("{} {}", "400 validation: body"),
        ("{\"processDefinitionId\":\"order\",}", "400 validation: body"),
        (r#"{"processDefinitionId":null}"#, "400 validation: processDefinitionId"),
        (r#"{"processDefinitionId":7,"version":"x","nope":1}"#, "400 validation: processDefinitionId, version, nope"),
        (r#"{"processDefinitionId":"a\nb"}"#, "400 validation: processDefinitionId"),
        (r#"{"processDefinitionId":"a","processDefinitionId":"b"}"#, "400 validation: processDefinitionId"),
        (r#"{"processDefinitionId":"order","version":0}"#, "400 validation: version"),
        (r#"{"processDefinitionId":"order","version":1.5}"#, "400 validation: version"),
        (r#"{"processDefinitionId":"order","awaitMs":100}"#, "400 validation: awaitMs"),
        (r#"{"processDefinitionId":"order","uniquenessKey":"id"}"#, "400 validation: uniquenessKey"),
        (&with("[]"), "400 validation: variables"),
        (&with(r#"{"a":1,"b":2,"a":3}"#), "400 validation: variables.a"),
        (&with(r#"{"a":"x\u0000y"}"#), "400 validation: variables.a"),
        (&with(r#"{"a":{"b":["\u0000"]},"c":1}"#), "400 validation: variables.a"),
        (&with(r#"{"a\u0000":1}"#), "400 validation: variables.a\u{FFFD}"),
        (&with(r#"{"":1}"#), "400 validation: variables."),
        (&with(r#"{"a":"\ud800"}"#), "400 validation: body"),
        (&with("{\"a\":01}"), "400 validation: body"),
        (&with("{\"a\":\"\t\"}"), "400 validation: body"),
        (&deep(127), "400 validation: body"),
        (&long_name, &format!("400 validation: variables.{}", "n".repeat(64))),
    ];
    check(&service, "/api/v1/instances", &refused).await;
    let taken = [
        (deep(126), "201"),
        (with(r#"{"z":1e999,"a":"\ud83d\ude00","\u00e9":-0.0}"#), "201"),
        (r#"{"processDefinitionId":"order","version":null,"variables":null,"uniquenessKey":null}"#.to_owned(), "201"),
        (r#"{"processDefinitionId":"order","version":2}"#.to_owned(), "404 definition-not-found"),
    ];
    for (body, expected) in &taken {
        assert_eq!(service.post("/api/v1/instances", body).await.verdict(), *expected, "{body}");
    }
    let invalid = service.send("POST /api/v1/instances", &[JSON], vec![b'{', 0xFF, b'}']).await;
    assert_eq!(invalid.verdict(), "400 validation: body");
}

#[tokio::test]
async fn jobs() {
    let service = Service::plain().await;
    let step = "s".repeat(129);
    check(
        &service,
        "/api/v1/jobs/activate",
        &[
            ("{}", "400 validation: type, worker"),
            (r#"{"type":"t","worker":""}"#, "400 validation: worker"),
            (
                r#"{"type":"t","worker":"w","maxJobs":0,"leaseMs":86400001,"waitMs":60001}"#,
                "400 validation: waitMs, maxJobs, leaseMs",
            ),
            (r#"{"type":"t","worker":"w","maxJobs":1001}"#, "400 validation: maxJobs"),
            (r#"{"type":"t","worker":"w","fetchVariables":"a"}"#, "400 validation: fetchVariables"),
            (r#"{"type":"t","worker":"w","fetchVariables":[1]}"#, "400 validation: fetchVariables"),
            (r#"{"type":"t","worker":"w","fetchVariables":[]}"#, "200"),
            (r#"{"type":"t","worker":"w\u0007"}"#, "400 validation: worker"),
        ],
    )
    .await;
    check(
        &service,
        "/api/v1/jobs/complete",
        &[
            (r#"{"worker":"w"}"#, "400 validation: jobs"),
            (r#"{"worker":"w","jobs":[]}"#, "400 validation: jobs"),
            (r#"{"worker":"w","jobs":[{"key":1},{"kee":"2"},3]}"#, "400 validation: jobs[1].key, jobs[1].kee, jobs[2]"),
            (r#"{"worker":"w","jobs":[{"key":1,"variables":{"a":"\u0000"}}]}"#, "400 validation: jobs[0].variables.a"),
            (r#"{"worker":"w","jobs":[{"key":"x"}]}"#, "400 validation: jobs[0].key"),
        ],
    )
    .await;
    check(
        &service,
        "/api/v1/jobs/1/complete",
        &[
            (r#"{"worker":"w","lease":"nobody's"}"#, "400 validation: lease"),
            (r#"{"worker":"w","lease":"7"}"#, "404 job-not-found"),
        ],
    )
    .await;
    check(
        &service,
        "/api/v1/jobs/1/fail",
        &[(r#"{"worker":"w","retries":-1,"backoffMs":-1}"#, "400 validation: message, retries, backoffMs")],
    )
    .await;
    check(&service, "/api/v1/jobs/1/error", &[(r#"{"worker":"w"}"#, "400 validation: errorCode")]).await;
    check(&service, "/api/v1/jobs/1/extend", &[(r#"{"worker":"w"}"#, "400 validation: leaseMs")]).await;
    for (name, body, expected) in [
        (&*step, r#"{"worker":"w","result":1}"#, "400 validation: name"),
        ("a%00b", r#"{"worker":"w","result":1}"#, "400 validation: name"),
        ("a", r#"{"worker":"w"}"#, "400 validation: result"),
        ("a", r#"{"worker":"w","result":"\u0000"}"#, "400 validation: result"),
        ("%C3%A9", r#"{"worker":"w","result":null}"#, "404 job-not-found"),
    ] {
        let reply = service.send(&format!("PUT /api/v1/jobs/1/steps/{name}"), &[JSON], body).await;
        assert_eq!(reply.verdict(), expected, "{name}");
    }
}

#[tokio::test]
async fn others() {
    let service = Service::plain().await;
    check(
        &service,
        "/api/v1/messages",
        &[
            ("{}", "400 validation: name"),
            (r#"{"name":"m","ttlMs":-1,"messageId":"a\nb"}"#, "400 validation: messageId, ttlMs"),
            (r#"{"name":"m","messageId":""}"#, "200"),
        ],
    )
    .await;
    check(
        &service,
        "/api/v1/incidents/1/resolve",
        &[(r#"{"retries":0}"#, "400 validation: retries"), ("", "404 incident-not-found")],
    )
    .await;
    check(&service, "/api/v1/outbox/1.1.1.s/retry", &[(r#"{"force":"yes"}"#, "400 validation: force")]).await;
    check(&service, "/api/v1/instances/1/cancel", &[(r#"{"why":1}"#, "400 validation: why")]).await;
    for (body, expected) in [
        ("{}", "400 validation: advanceMs"),
        (r#"{"advanceMs":1,"now":"2030-01-01T00:00:00Z"}"#, "400 validation: now"),
        (r#"{"advanceMs":-1}"#, "400 validation: advanceMs"),
        (r#"{"now":"tomorrow"}"#, "400 validation: now"),
    ] {
        assert_eq!(service.send("PUT /api/v1/clock", &[JSON], body).await.verdict(), expected, "{body}");
    }
}
