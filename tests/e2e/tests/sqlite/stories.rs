//! `wf demo`: the whole story, which checks itself, and any model that somebody brings. `wf bench`: that it measures, not
//! what.

use e2e::node::{Ended, run, wf};

fn demo(args: &[&str]) -> Ended {
    run(wf().arg("demo").args(args))
}

fn repository(path: &str) -> String {
    format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_demo_tells_every_layer_and_finds_each_effect_once() {
    let told = demo(&[]).expect(0).stdout;
    let layers = ["1 API", "2 command queue", "3 job activation", "4 external call", "5 message bus", "6 audit"];
    let places: Vec<usize> = layers.map(|layer| told.find(layer).unwrap_or_else(|| panic!("{layer}: {told}"))).into();
    assert!(places.is_sorted(), "{told}");
    let scenes = [
        "20 × the same start",
        "another amount under that key",
        "double click",
        "kill -9",
        "late worker",
        "charges a card and dies",
        "each message 3 times",
        "dies between sending webhooks and marking",
        "the whole audit",
    ];
    scenes.iter().for_each(|scene| assert!(told.contains(scene), "{scene}: {told}"));
    assert!(told.contains("every effect happened once") && !told.contains('✗'), "{told}");
}

#[test]
fn the_demo_runs_any_model_to_an_end() {
    let files = [
        "tests/corpus/02-payment-error-timer-receive.bpmn",
        "tests/corpus/08-order-eventgateway-parallel.bpmn",
        "tests/corpus/11-spec-message-boundary.bpmn",
        "tests/corpus/12-spec-exclusive-gateway.bpmn",
        "samples/order.bpmn",
    ];
    for path in files {
        let told = demo(&["--bpmn", &repository(path), "--output", "json"]).expect(0).json();
        assert_eq!(told[0]["instance"]["state"], "COMPLETED", "{path}: {told}");
    }
}

#[test]
fn the_demo_says_why_a_model_does_not_run() {
    let refused = demo(&["--bpmn", &repository("tests/corpus/09-inclusive-gateway.bpmn")]).expect(1);
    assert!(refused.stderr.contains("cannot be executed"), "{refused:?}");
    assert!(refused.stderr.contains("line 36, Gateway_01wr5g0: an inclusive gateway"), "{refused:?}");
    let missing = demo(&["--bpmn", "nowhere.bpmn"]).expect(2);
    assert!(missing.stderr.contains("nowhere.bpmn"), "{missing:?}");
    let stuck = tempfile::NamedTempFile::new().expect("a file");
    // Nothing that can be made up makes this condition true.
    let model = r#"<bpmn:startEvent id="start"/><bpmn:sequenceFlow id="in" sourceRef="start" targetRef="fork"/>
<bpmn:exclusiveGateway id="fork"/><bpmn:sequenceFlow id="never" sourceRef="fork" targetRef="end">
<bpmn:conditionExpression>=1 > 2</bpmn:conditionExpression></bpmn:sequenceFlow>
<bpmn:endEvent id="end"/>"#;
    std::fs::write(stuck.path(), e2e::models::model("closed", model)).expect("a file");
    let told = demo(&["--bpmn", &stuck.path().display().to_string()]).expect(1);
    assert!(told.stdout.contains("it stands here") && told.stdout.contains("fork"), "{told:?}");
    assert!(told.stderr.contains("no instance ended of closed"), "{told:?}");
}

/// Issue 2: each result beside what the machine does by itself in the same run. How much that is, is no test's business.
#[test]
fn the_bench_measures_each_scenario_against_the_machine() {
    let scenarios = ["starts", "whole-batched", "duplicates"];
    let mut bench = wf();
    bench.args(["bench", "--seconds", "1", "--clients", "2", "--output", "json", "--only", &scenarios.join(",")]);
    let told = run(&mut bench).expect(0).json();
    assert_eq!(told["scenarios"].as_array().map(Vec::len), Some(scenarios.len()), "{told}");
    for row in told["scenarios"].as_array().unwrap() {
        assert!(scenarios.contains(&row["name"].as_str().unwrap()), "{row}");
        assert_eq!(row["errors"], 0, "{row}");
        let is_measured = ["perSecond", "p50Ms", "p99Ms"].iter().all(|name| row[*name].as_f64() > Some(0.0));
        assert!(is_measured, "{row}");
    }
    let machine = &told["machine"];
    let yardsticks = [&machine["fdatasyncP50Ms"], &machine["sqliteStartsPerSecond"], &machine["bareAxum"]["perSecond"]];
    assert!(yardsticks.iter().all(|yardstick| yardstick.as_f64() > Some(0.0)), "{machine}");
}
