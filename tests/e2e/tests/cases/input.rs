//! Issue 2, item 10, what comes in through the door: each piece of rubbish gets a clear problem, nothing is lost, and the
//! server goes on. What is wrong around the process (disk, folder, configuration): `limits.rs`.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use e2e::api::{Api, text};
use e2e::http::read_answer;
use e2e::models::{model, one_task};
use e2e::node::Node;
use serde_json::{Value, json};

use crate::fresh_setup;

fn node() -> Node {
    let node = fresh_setup().start();
    node.api.deploy(&one_task("one", "work")).answer().expect(201);
    node
}

/// Proof of life: a write that commits.
#[track_caller]
fn lives(api: &Api) {
    api.started("one", json!({}));
}

/// L4: what is no model is refused with the reason; where there is a place, with its line.
#[test]
fn input_files_that_are_no_models_are_refused_with_the_reason() {
    let node = node();
    let open =
        r#"<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="p" isExecutable="true">"#;
    let bomb = r#"<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><definitions>&b;</definitions>"#;
    let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    let table = [
        ("", "XML"),
        ("<", "XML"),
        ("{\"not\": \"xml\"}", "XML"),
        (open, "XML"),
        (bomb, "DTD"),
        (&*deep, "nesting"),
        ("<html/>", "definitions"),
        (&*model("p", "<bpmn:startEvent id=\"s\"/><bpmn:startEvent id=\"s\"/>"), "s"),
        (&*model("p", "<bpmn:sequenceFlow id=\"f\" sourceRef=\"nowhere\" targetRef=\"nobody\"/>"), "nowhere"),
        (&*e2e::models::script("p", "=1 +"), "FEEL"),
    ];
    for (xml, said) in table {
        let shown: String = xml.chars().take(60).collect();
        let problem = node.api.deploy(xml).answer().expect_problem(422, "definition-invalid");
        let errors = problem["errors"].to_string();
        assert!(errors.to_lowercase().contains(&said.to_lowercase()), "{shown}: {problem}");
    }
    let mut bytes = one_task("p", "work").into_bytes();
    bytes.splice(200..200, [0xFF, 0xFE]);
    let not_utf8 = node.api.call("POST", "/api/v1/definitions").body("application/xml", &bytes);
    not_utf8.answer().expect_problem(422, "definition-invalid");
    assert_eq!(node.api.all("/api/v1/definitions").len(), 1);
    lives(&node.api);
}

/// 413 before a byte of it is read, and with a length that nobody announced.
#[test]
fn input_bodies_of_100_mb_are_refused_and_the_server_lives() {
    const HUGE: usize = 100 << 20;
    let node = node();
    let head = |framing: &str| {
        format!("POST /api/v1/instances HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{framing}\r\n\r\n")
    };
    let mut announced = TcpStream::connect(&node.api.address).unwrap();
    announced.write_all(head(&format!("content-length: {HUGE}")).as_bytes()).unwrap();
    read_answer(&mut announced).unwrap().expect_problem(413, "payload-too-large");
    let mut chunked = TcpStream::connect(&node.api.address).unwrap();
    chunked.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut reading = chunked.try_clone().unwrap();
    let answer = std::thread::spawn(move || read_answer(&mut reading));
    let chunk = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    chunked.write_all(head("transfer-encoding: chunked").as_bytes()).unwrap();
    // The server stops reading somewhere; what is written after that is nobody's.
    let written = (0..HUGE >> 20).take_while(|_| chunked.write_all(&chunk).is_ok()).count();
    match answer.join().unwrap() {
        Ok(answer) => drop(answer.expect_problem(413, "payload-too-large")),
        Err(error) => assert!(written < HUGE >> 20, "all of it was taken: {error}"),
    }
    let xml = one_task("big", &"x".repeat(5 << 20));
    node.api.deploy(&xml).answer().expect_problem(413, "payload-too-large");
    lives(&node.api);
}

#[test]
fn input_json_is_checked_at_the_door() {
    let node = node();
    let raw = |body: &str| node.api.call("POST", "/api/v1/instances").body("application/json", body.as_bytes());
    let with = |variables: &str| raw(&format!("{{\"processDefinitionId\":\"one\",\"variables\":{variables}}}"));
    let nested = |depth: usize| format!("{{\"v\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let table = [
        (raw(""), ""),
        (raw("{"), ""),
        (raw("null"), ""),
        (raw("[]"), ""),
        (raw("{\"processDefinitionId\":\"one\"} x"), ""),
        (raw("{\"processDefinitionId\":\"one\",\"processDefinitionID\":1}"), "processDefinitionID"),
        (raw("{\"variables\":{}}"), "processDefinitionId"),
        (raw("{\"processDefinitionId\":7}"), "processDefinitionId"),
        (raw("{\"processDefinitionId\":\"one\",\"version\":0}"), "version"),
        (with("[]"), "variables"),
        (with("{\"v\":\"a\\u0000b\"}"), "variables"),
        (with("{\"v\\u0000\":1}"), "variables"),
        (with("{\"v\":{\"deep\":[\"\\u0000\"]}}"), "variables"),
        (with(&nested(200)), ""),
        (with(&nested(1_000_000)), ""),
        (with("{\"v\":\"\\ud800\"}"), ""),
    ];
    for (call, field) in table {
        let shown: String = String::from_utf8_lossy(&call.request.body).chars().take(80).collect();
        let answer = call.key("same-key").answer();
        assert_eq!(answer.status, 400, "{shown}: {}", answer.text());
        let problem = answer.expect_problem(400, "validation");
        assert!(problem["errors"].to_string().contains(field), "{shown}: {problem}");
    }
    with("{\"v\":[[[1e400,12345678901234567890.10]]]}").key("same-key").answer().expect(201);
    // Refusals left the key free, and numbers come back as they went in.
    let instance = node.api.all("/api/v1/instances").remove(0);
    let shown = node.api.get(&format!("/api/v1/instances/{}", text(&instance["key"]))).text();
    assert!(shown.contains("[[[1e400,12345678901234567890.10]]]"), "{shown}");
}

/// L1.8, and answers for what is not there: always a problem, never a page of somebody else's.
#[test]
fn l1_8_unknown_things_and_malformed_keys_are_problems() {
    let node = node();
    let api = &node.api;
    api.start("nobody", json!({})).answer().expect_problem(404, "definition-not-found");
    assert_eq!(api.activated("no-such-type", "w", 10), Vec::<Value>::new());
    api.get("/api/v1/instances/1").expect_problem(404, "instance-not-found");
    api.get("/api/v1/instances/abc").expect_problem(404, "not-found");
    api.post("/api/v1/jobs/1/complete", json!({"worker": "w"})).answer().expect_problem(404, "job-not-found");
    api.post("/api/v1/incidents/1/resolve", json!({})).answer().expect_problem(404, "incident-not-found");
    api.put("/api/v1/clock", json!({"advanceMs": 1})).answer().expect_problem(404, "not-found");
    api.get("/nowhere").expect_problem(404, "not-found");
    api.call("DELETE", "/api/v1/instances").answer().expect_problem(405, "method-not-allowed");
    let form = api.call("POST", "/api/v1/instances").body("application/x-www-form-urlencoded", b"a=b");
    form.answer().expect_problem(415, "unsupported-media-type");
    let long = "k".repeat(256);
    for key in ["", " ", "\"\"", "\"open", "a,b", "a b", "ä", &long] {
        let answer = api.start("one", json!({})).key(key).answer();
        assert_eq!(answer.status, 400, "{key:?}: {}", answer.text());
        answer.expect_problem(400, "idempotency-key-malformed");
    }
    let twice = api.start("one", json!({})).key("same").key("same").answer();
    twice.expect_problem(400, "idempotency-key-malformed");
    assert_eq!(api.all("/api/v1/instances"), Vec::<Value>::new());
    let required = fresh_setup().config("[idempotency]\nrequire = [\"POST /api/v1/instances\"]").start();
    required.api.deploy(&one_task("one", "work")).answer().expect(201);
    required.api.start("one", json!({})).answer().expect_problem(400, "idempotency-key-missing");
    required.api.start("one", json!({})).key("k").answer().expect(201);
}

/// A FEEL error stops one instance, says why, and waits for somebody; corrected, the instance goes on.
#[test]
fn input_a_feel_error_at_run_time_is_an_incident_that_can_be_resolved() {
    let node = node();
    let api = &node.api;
    let fork = r#"<bpmn:startEvent id="start"/><bpmn:sequenceFlow id="in" sourceRef="start" targetRef="fork"/>
<bpmn:exclusiveGateway id="fork"/><bpmn:sequenceFlow id="big" sourceRef="fork" targetRef="end">
<bpmn:conditionExpression>=amount &gt; 5</bpmn:conditionExpression></bpmn:sequenceFlow>
<bpmn:endEvent id="end"/>"#;
    api.deploy(&model("forked", fork)).answer().expect(201);
    let instance = api.started("forked", json!({"amount": "a lot"}));
    let incident = api.all("/api/v1/incidents").remove(0);
    assert_eq!((&incident["processInstanceKey"], &incident["elementId"]), (&json!(instance), &json!("fork")));
    assert!(text(&incident["message"]).contains("amount"), "{incident}");
    assert_eq!(api.instance(&instance)["activeElements"][0]["waitingFor"]["kind"], "incident");
    let resolve = format!("/api/v1/incidents/{}/resolve", text(&incident["key"]));
    api.post(&resolve, json!({})).answer().expect(200);
    let still = api.all("/api/v1/incidents");
    assert_eq!(still.len(), 1, "nothing was corrected: {still:?}");
    let variables = format!("/api/v1/instances/{instance}/variables");
    api.put(&variables, json!({"variables": {"amount": 6}})).answer().expect(200);
    let resolve = format!("/api/v1/incidents/{}/resolve", text(&still[0]["key"]));
    api.post(&resolve, json!({})).answer().expect(200);
    assert_eq!(api.state(&instance), "COMPLETED");
    assert_eq!(api.all("/api/v1/incidents"), Vec::<Value>::new());
}

/// One poisoned command gets 500 with the id that stands in the log; the requests around it do not notice.
#[test]
fn input_a_command_that_panics_is_answered_and_the_engine_goes_on() {
    let setup = fresh_setup().env("WF_PANIC_AT", "set-variables");
    let node = setup.start();
    let api = &node.api;
    api.deploy(&one_task("one", "work")).answer().expect(201);
    let instance = api.started("one", json!({"v": 1}));
    let variables = format!("/api/v1/instances/{instance}/variables");
    let set = api.put(&variables, json!({"variables": {"v": 2}})).key("poison");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..10).for_each(|_| lives(api)));
        }
        for _ in 0..5 {
            let problem = set.answer().expect_problem(500, "internal");
            let error_id = text(&problem["errorId"]);
            e2e::until("line with the error's id", || setup.log().contains(&error_id).then_some(()));
            let shown = problem.to_string();
            assert!(!shown.contains("panic") && !shown.contains("WF_PANIC_AT"), "{shown}");
        }
    });
    assert_eq!(api.instance(&instance)["variables"], json!({"v": 1}));
    assert_eq!(api.all("/api/v1/instances").len(), 31);
    assert!(node.stop().success());
    // The key was not used up: the same request runs where nothing panics.
    let healthy = setup.clone().env("WF_PANIC_AT", "").start();
    healthy.api.put(&variables, json!({"variables": {"v": 2}})).key("poison").answer().expect(200);
    assert_eq!(healthy.api.instance(&instance)["variables"], json!({"v": 2}));
}

/// The same for what the engine does by itself: the poisoned timer stops its own instance, which waits for somebody.
#[test]
fn input_engine_work_that_panics_is_put_aside_and_can_be_tried_again() {
    let setup = fresh_setup().test_clock();
    let poisoned = setup.clone().env("WF_PANIC_AT", "fire-timer").start();
    let api = &poisoned.api;
    api.deploy(&one_task("one", "work")).answer().expect(201);
    let wait = r#"<bpmn:startEvent id="start"/><bpmn:sequenceFlow id="in" sourceRef="start" targetRef="wait"/>
<bpmn:intermediateCatchEvent id="wait"><bpmn:timerEventDefinition><bpmn:timeDuration>PT1M</bpmn:timeDuration>
</bpmn:timerEventDefinition></bpmn:intermediateCatchEvent>
<bpmn:sequenceFlow id="out" sourceRef="wait" targetRef="end"/><bpmn:endEvent id="end"/>"#;
    api.deploy(&model("waiting", wait)).answer().expect(201);
    let instance = api.started("waiting", json!({}));
    api.advance(60_000);
    let incident = e2e::until("incident", || api.all("/api/v1/incidents").pop());
    assert_eq!(incident["processInstanceKey"], instance, "{incident}");
    assert_eq!(api.state(&instance), "ACTIVE");
    lives(api);
    poisoned.kill();
    let node = setup.start();
    let resolve = format!("/api/v1/incidents/{}/resolve", text(&incident["key"]));
    node.api.post(&resolve, json!({})).answer().expect(200);
    e2e::until("end", || (node.api.state(&instance) == "COMPLETED").then_some(()));
    assert_eq!(node.api.events("timer.fired"), 1);
}
