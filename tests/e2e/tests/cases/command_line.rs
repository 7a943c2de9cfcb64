//! The command line: what each command prints and ends with, and workers that are shell commands, S6 and S7 among them.
//! `wf demo` and the tour: `stories.rs`, `tour.rs`. Outbox replays: `scenarios/` (S3).

use std::process::{Command, Stdio};

use e2e::Process;
use e2e::api::text;
use e2e::models::{file, one_task};
use e2e::node::{Ended, Node, Setup, run};
use e2e::until;
use serde_json::{Value, json};

use crate::fresh_setup;

struct Shell {
    setup: Setup,
    node: Node,
}

impl Shell {
    fn new() -> Shell {
        Shell::on(fresh_setup())
    }

    fn on(setup: Setup) -> Shell {
        let setup = setup.test_clock();
        let node = setup.start();
        node.api.deploy(&one_task("one", "work")).answer().expect(201);
        Shell { setup, node }
    }

    /// Run in the test's folder.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.node.wf(args);
        command.current_dir(self.setup.folder.path());
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        run(&mut self.command(args))
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--output", "json"]].concat()).expect(0).json()
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.setup.folder.path().join(name)).unwrap_or_default()
    }

    /// A worker under this name, until it has done so many jobs.
    fn worker(&self, name: &str, max: &str, exec: &str) -> Command {
        self.command(&["worker", "--type", "work", "--name", name, "--max", max, "--exec", exec])
    }
}

#[test]
fn cli_one_instance_from_deployment_to_its_end() {
    let shell = Shell::new();
    std::fs::write(shell.setup.folder.path().join("order.bpmn"), file("samples/order.bpmn")).unwrap();
    let deployed = shell.json(&["deploy", "order.bpmn"]);
    assert_eq!(deployed["definitions"][0]["processDefinitionId"], "order");
    assert_eq!(shell.json(&["deploy", "order.bpmn"])["definitions"][0]["duplicate"], true);
    let start = ["start", "order", "--var", "orderId=O-1", "--var", "total=99.90", "--key", "k-1"];
    let started = shell.json(&start);
    assert_eq!(shell.json(&start), started, "the same key, the same answer");
    assert!(shell.run(&start).expect(0).stdout.contains("started before under this key"));
    let key = text(&started["key"]);
    let conflict = shell.run(&["start", "order", "--var", "orderId=O-2", "--key", "k-1"]).expect(1);
    assert!(conflict.stderr.contains("idempotency-conflict"), "{conflict:?}");
    let twin = ["start", "order", "--var", "orderId=O-9", "--unique", "orderId"];
    assert_eq!(shell.json(&twin)["key"], shell.json(&twin)["key"]);
    let second = text(&shell.json(&twin)["key"]);
    assert_eq!(shell.json(&["cancel", &second])["state"], "CANCELED");
    assert!(shell.run(&["cancel", &second]).expect(1).stderr.contains("instance-finished"));
    assert_eq!(shell.json(&["instances", "--state", "active"]).as_array().map(Vec::len), Some(1));
    let jobs = shell.json(&["jobs", "--instance", &key]);
    assert_eq!((&jobs[0]["type"], &jobs[0]["state"]), (&json!("charge-card"), &json!("READY")));
    let exec = "cat > job.json; echo '{\"charged\": true}'";
    let worker = ["worker", "--type", "charge-card", "--once", "--exec", exec];
    assert!(shell.run(&worker).expect(0).stdout.contains("1 completed"));
    let job: Value = serde_json::from_str(&shell.file("job.json")).unwrap();
    assert_eq!(job["variables"], serde_json::from_str::<Value>(r#"{"orderId":"O-1","total":99.90}"#).unwrap());
    assert_eq!(job["customHeaders"], json!({"currency": "EUR"}));
    let message = ["message", "parcel-picked-up", "--correlate", "O-1", "--id", "c-1"];
    assert_eq!(shell.json(&message)["correlated"][0]["processInstanceKey"], key);
    let repeat = shell.json(&message);
    assert_eq!((&repeat["duplicate"], &repeat["correlated"]), (&json!(true), &json!([])));
    let picture = shell.run(&["instance", &key]).expect(0).stdout;
    assert!(picture.contains("●") && picture.contains("job send-invoice"), "{picture}");
    let worker = ["worker", "--type", "send-invoice", "--once", "--exec", "echo '{\"invoiceNumber\": \"I-1\"}'"];
    shell.run(&worker).expect(0);
    let shown = shell.json(&["instance", &key]);
    assert_eq!((&shown["state"], &shown["variables"]["invoiceNumber"]), (&json!("COMPLETED"), &json!("I-1")));
    // Two repeats of the start, one of the message; they are stored with the next turn, or a second later.
    let check = || shell.json(&["debug", "idempotency-check", "--tenant", "default", "--hours", "24"])["totals"].take();
    until("counts", || Some(check()).filter(|totals| totals["hits"] == 3 && totals["conflicts"] == 1));
    assert_eq!(shell.json(&["outbox"]), json!([]));
}

/// 0 done, 1 the work failed, 2 wrong usage; the reason on stderr, and nothing on stdout.
#[test]
fn cli_exit_codes_and_words_for_failures() {
    let shell = Shell::new();
    let table: [(&[&str], i32, &str); 11] = [
        (&["instances"], 0, ""),
        (&["start", "nobody"], 1, "definition-not-found"),
        (&["instance", "42"], 1, "instance-not-found"),
        (&["resolve", "42"], 1, "incident-not-found"),
        (&["deploy", "nowhere.bpmn"], 2, "nowhere.bpmn"),
        (&["start"], 2, "<ID>"),
        (&["start", "one", "--var", "novalue"], 2, "NAME=VALUE"),
        (&["instances", "--server", "gopher://x"], 2, "http://HOST:PORT"),
        (&["frobnicate"], 2, "frobnicate"),
        (&["worker", "--type", "work"], 2, "--exec"),
        (&["jobs", "--output", "yaml"], 2, "yaml"),
    ];
    for (args, code, said) in table {
        let ended = shell.run(args).expect(code);
        assert!(ended.stderr.contains(said), "{args:?}: {ended:?}");
        assert!(code == 0 || ended.stdout.is_empty(), "{args:?}: {ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{args:?}: {ended:?}");
    }
    // A refused file says where and why, as the API does.
    let path = format!("{}/../corpus/09-inclusive-gateway.bpmn", env!("CARGO_MANIFEST_DIR"));
    let refused = shell.run(&["deploy", &path]).expect(1);
    assert!(refused.stderr.contains("line 36") && refused.stderr.contains("inclusive"), "{refused:?}");
    // A tenant of its own by the environment.
    let elsewhere = run(shell.command(&["instances", "--output", "json"]).env("WF_TENANT", "elsewhere")).expect(0);
    assert_eq!(elsewhere.json(), json!([]));
}

/// L3.5: a command that fails uses up the retries, an incident says why, and somebody resolves it.
#[test]
fn l3_5_a_worker_that_fails_ends_in_an_incident_and_resolving_it_goes_on() {
    let shell = Shell::new();
    let api = &shell.node.api;
    let instance = api.started("one", json!({}));
    let exec = "echo \"$WF_IDEMPOTENCY_KEY\" >> keys; echo 'the printer is on fire' >&2; exit 3";
    let mut worker = Process::start(shell.worker("w", "3", exec).stdout(Stdio::null()).stderr(Stdio::null()));
    for retries in [2, 1] {
        let waits = || api.all("/api/v1/jobs?state=BACKOFF").pop().filter(|job| job["retries"] == retries);
        until("failed job that waits", waits);
        api.advance(1_000);
    }
    assert!(worker.ends().success());
    let incident = &shell.json(&["incidents"])[0];
    assert!(text(&incident["message"]).contains("the printer is on fire"), "{incident}");
    assert_eq!(incident["processInstanceKey"], instance);
    assert_eq!(api.metric("wf_incidents_total"), 1.0);
    let keys: Vec<String> = shell.file("keys").lines().map(str::to_owned).collect();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| *key == keys[0]), "L4.1: one key for every attempt: {keys:?}");
    assert_eq!(shell.json(&["resolve", &text(&incident["key"]), "--retries", "1"])["state"], "RESOLVED");
    let done = run(&mut shell.worker("w", "1", "echo \"$WF_IDEMPOTENCY_KEY\" >> keys")).expect(0);
    assert!(done.stdout.contains("1 completed"), "{done:?}");
    assert_eq!(shell.file("keys").lines().last(), Some(&*keys[0]));
    assert_eq!(shell.json(&["instance", &instance])["state"], "COMPLETED");
}

/// A worker that is asked to stop finishes the job in its hands, and takes no other.
#[test]
fn cli_a_worker_that_is_stopped_finishes_its_job() {
    // The oldest job first: within a partition.
    let shell = Shell::on(fresh_setup().one_partition());
    let api = &shell.node.api;
    let instances = [0, 1].map(|n| api.started("one", json!({"n": n})));
    let folder = shell.setup.folder.path();
    assert!(Command::new("mkfifo").arg(folder.join("gate")).status().is_ok_and(|status| status.success()));
    let exec = "touch begun; cat gate > opened; echo '{\"done\": true}'";
    let mut worker = Process::start(shell.worker("w", "9", exec).stdout(Stdio::null()).stderr(Stdio::null()));
    until("job in its hands", || folder.join("begun").exists().then_some(()));
    worker.signal("TERM");
    // Opens when the command reads it, which waits for this.
    std::fs::write(folder.join("gate"), "open").unwrap();
    assert_eq!(worker.ends().code(), Some(0));
    assert_eq!(instances.map(|key| api.state(&key)), ["COMPLETED", "ACTIVE"]);
}

/// Several files are one deployment: all or none.
#[test]
fn cli_a_deployment_with_one_bad_file_deploys_nothing() {
    let shell = Shell::new();
    let folder = shell.setup.folder.path();
    let inclusive = file("tests/corpus/09-inclusive-gateway.bpmn");
    for (name, xml) in [("a.bpmn", one_task("a", "work")), ("b.bpmn", inclusive), ("c.bpmn", one_task("c", "work"))] {
        std::fs::write(folder.join(name), xml).unwrap();
    }
    let refused = shell.run(&["deploy", "a.bpmn", "b.bpmn", "c.bpmn"]).expect(1);
    assert!(refused.stderr.contains("b.bpmn") && refused.stderr.contains("inclusive"), "{refused:?}");
    assert_eq!(shell.node.api.all("/api/v1/definitions").len(), 1);
    let deployed = shell.json(&["deploy", "a.bpmn", "c.bpmn"]);
    assert_eq!(deployed["definitions"].as_array().map(Vec::len), Some(2));
}
