//! Proofs on a real store: replay, verify, archive, audit verify and export, beside a running server, by a server and
//! on a stopped folder; and what they say after somebody has opened the database with a shell.

use std::path::Path;

use e2e::api::text;
use e2e::models::one_task;
use e2e::node::{Ended, Node, Setup, run, wf};
use rusqlite::Connection;
use serde_json::{Value, json};

/// A store with a day's work, in two epochs.
fn worked() -> (Setup, Node) {
    let setup = Setup::new().test_clock();
    let node = setup.start();
    node.api.deploy(&one_task("one", "work")).answer().expect(201);
    for n in 0..5 {
        node.api.start("one", json!({"n": n, "amount": 12.25})).key(&format!("k-{n}")).answer().expect(201);
    }
    for job in node.api.activated("work", "w", 3) {
        node.api.complete(&job, "w", json!({"done": true})).answer().expect(200);
    }
    assert!(node.stop().success());
    let node = setup.start();
    node.api.started("one", json!({"n": 9}));
    (setup, node)
}

/// On a folder, without a server's help.
fn on(data: &Path, args: &[&str]) -> Ended {
    run(wf().args(args).arg("--data").arg(data))
}

fn json_on(data: &Path, args: &[&str], code: i32) -> Value {
    run(wf().args(args).args(["--output", "json"]).arg("--data").arg(data)).expect(code).json()
}

fn shell(setup: &Setup) -> Connection {
    Connection::open(setup.file()).unwrap()
}

/// Somebody who means it: the triggers are no wall for who owns the file.
fn forge(setup: &Setup, sql: &str) {
    let connection = shell(setup);
    let drop = "DROP TRIGGER IF EXISTS command_log_no_update; DROP TRIGGER IF EXISTS command_log_no_delete;
                DROP TRIGGER IF EXISTS audit_log_no_update; DROP TRIGGER IF EXISTS audit_log_no_delete;";
    connection.execute_batch(drop).unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0, "{sql} changed nothing");
}

fn position(setup: &Setup, verb: &str, nth: u32) -> u64 {
    let sql = "SELECT position FROM command_log WHERE verb = ?1 ORDER BY position LIMIT 1 OFFSET ?2";
    shell(setup).query_row(sql, rusqlite::params![verb, nth], |row| row.get::<_, i64>(0)).unwrap() as u64
}

#[test]
fn l2_3_a_store_is_replayed_beside_its_server_by_it_and_without_it() {
    let (setup, node) = worked();
    let data = setup.data();
    let beside = json_on(&data, &["debug", "replay"], 0);
    assert_eq!((&beside["identical"], &beside["tables"]["agree"]), (&json!(true), &json!(true)), "{beside}");
    let commands = beside["commands"].as_u64().unwrap();
    assert!(commands >= 13, "{beside}");
    let by_it = run(&mut node.wf(&["debug", "replay", "--output", "json"])).expect(0).json();
    assert_eq!(by_it, beside, "the same store");
    let words = run(&mut node.wf(&["debug", "replay"])).expect(0).stdout;
    assert!(words.starts_with(&format!("identical up to position {}", text(&beside["position"]))), "{words}");
    // It goes on beside a server that works.
    node.api.started("one", json!({"n": 10}));
    assert_eq!(json_on(&data, &["debug", "replay"], 0)["commands"], commands + 1);
    assert_eq!(run(&mut node.wf(&["debug", "verify", "--output", "json"])).expect(0).json()["agree"], true);
    let second = position(&setup, "start-instance", 1);
    let part = json_on(&data, &["debug", "replay", "--to", &second.to_string()], 0);
    assert_eq!((text(&part["position"]), &part["tables"]), (second.to_string(), &Value::Null));
    assert!(node.stop().success());
    assert_eq!(json_on(&data, &["debug", "replay"], 0)["identical"], true);
    assert_eq!(json_on(&data, &["debug", "verify"], 0)["agree"], true);
    assert!(on(Path::new("/nowhere"), &["debug", "replay"]).expect(1).stderr.contains("there is no store in it"));
}

#[test]
fn l2_3_a_change_behind_the_engines_back_is_named() {
    let (setup, node) = worked();
    assert!(node.stop().success());
    forge(
        &setup,
        "UPDATE variable SET value = '99.99' WHERE name = 'amount' AND scope = (SELECT min(scope) FROM variable)",
    );
    let data = setup.data();
    let verify = on(&data, &["debug", "verify"]).expect(1);
    assert!(verify.stdout.contains("changed behind the engine's back"), "{verify:?}");
    let replay = on(&data, &["debug", "replay"]).expect(1);
    assert!(replay.stdout.contains("the tables are not"), "{replay:?}");
    for part in ["Variable", "amount", "99.99", "12.25"] {
        assert!(replay.stdout.contains(part), "{part}: {replay:?}");
    }
    let at = position(&setup, "start-instance", 2);
    let sql = format!("UPDATE command_log SET payload = replace(payload, '12.25', '13') WHERE position = {at}");
    forge(&setup, &sql);
    let diverged = json_on(&data, &["debug", "replay"], 1);
    assert_eq!(text(&diverged["divergence"]["position"]), at.to_string(), "{diverged}");
    assert!(text(&diverged["divergence"]["told"]).contains("12.25"), "{diverged}");
    assert!(text(&diverged["divergence"]["tells"]).contains("\"amount\":13"), "{diverged}");
}

/// L2.1: the log is kept for ever by default; an archive is an explicit act, and takes nothing from later proofs.
#[test]
fn l2_3_an_archived_log_replays_from_its_checkpoint() {
    let (setup, node) = worked();
    let data = setup.data();
    let cut = position(&setup, "activate-jobs", 0);
    let before = cut.to_string();
    let held = on(&data, &["log", "archive", "--before", &before]).expect(1);
    assert!(held.stderr.contains("another process holds it"), "{held:?}");
    assert!(node.stop().success());
    let all: u64 =
        shell(&setup).query_row("SELECT count(*) FROM command_log", [], |row| row.get::<_, i64>(0)).unwrap() as u64;
    on(&data, &["log", "archive", "--before", "yesterday"]).expect(2);
    let archived = on(&data, &["log", "archive", "--before", &before]).expect(0);
    assert!(archived.stdout.contains("7 commands"), "{archived:?}");
    let file = std::fs::read_dir(data.join("archive")).unwrap().next().unwrap().unwrap().path();
    let lines: Vec<Value> =
        std::fs::read_to_string(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (lines.len(), &lines[0]["verb"], &lines[6]["verb"]),
        (7, &json!("open-epoch"), &json!("start-instance"))
    );
    assert!(on(&data, &["log", "archive", "--before", &before]).expect(0).stdout.contains("nothing"));
    // The rest replays from the checkpoint, beside a server too, and that server goes on as ever.
    let node = setup.start();
    node.api.start("one", json!({"n": 0, "amount": 12.25})).key("k-0").answer().expect(201);
    let report = run(&mut node.wf(&["debug", "replay", "--output", "json"])).expect(0).json();
    assert_eq!((&report["identical"], &report["commands"]), (&json!(true), &json!(all - 7 + 1)), "{report}");
    assert_ne!(report["base"], "0");
    assert_eq!(run(&mut node.wf(&["audit", "verify", "--output", "json"])).expect(0).json()["complete"], true);
    assert!(node.stop().success());
    // A second archive begins where the first one ended; without its checkpoint the rest can no longer be proven.
    let later = position(&setup, "open-epoch", 0).to_string();
    on(&data, &["log", "archive", "--before", &later]).expect(0);
    assert_eq!(json_on(&data, &["debug", "replay"], 0)["identical"], true);
    std::fs::remove_dir_all(data.join("checkpoints")).unwrap();
    assert!(on(&data, &["debug", "replay"]).expect(1).stderr.contains("the checkpoint from just before"));
}

/// As a kill between two of its transactions leaves the store: the archive is whole, and some of its rows are in the log yet.
#[test]
fn l2_3_an_interrupted_archiving_goes_on() {
    let (setup, node) = worked();
    assert!(node.stop().success());
    let (data, before) = (setup.data(), position(&setup, "activate-jobs", 0).to_string());
    let left: Vec<rusqlite::types::Value> = shell(&setup)
        .query_row("SELECT * FROM command_log ORDER BY position LIMIT 1 OFFSET 4", [], |row| {
            (0..8).map(|column| row.get(column)).collect()
        })
        .unwrap();
    on(&data, &["log", "archive", "--before", &before]).expect(0);
    let put_back = "INSERT INTO command_log VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    shell(&setup).execute(put_back, rusqlite::params_from_iter(left)).unwrap();
    assert_eq!(json_on(&data, &["debug", "replay"], 0)["identical"], true);
    assert_eq!(json_on(&data, &["audit", "verify"], 0)["complete"], true);
    on(&data, &["log", "archive", "--before", &before]).expect(0);
    let below = format!("SELECT count(*) FROM command_log WHERE position < {before}");
    assert_eq!(shell(&setup).query_row(&below, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    assert_eq!(json_on(&data, &["debug", "replay"], 0)["identical"], true);
    on(&data, &["debug", "replay", "--from", "2", "--to", "1"]).expect(2);
}

/// L6.2: complete, chained, and the first wrong row is named.
#[test]
fn l6_2_the_audit_is_verified() {
    let (setup, node) = worked();
    let report = run(&mut node.wf(&["audit", "verify", "--output", "json"])).expect(0).json();
    assert_eq!((&report["complete"], &report["fault"]), (&json!(true), &Value::Null), "{report}");
    let words = run(&mut node.wf(&["audit", "verify"])).expect(0).stdout;
    assert!(words.contains(&text(&report["chain"])), "{words}");
    assert!(node.stop().success());
    let data = setup.data();
    let at = position(&setup, "complete-job", 1);
    for (sql, want) in [
        (format!("UPDATE audit_log SET actor = 'nobody' WHERE position = {at}"), "was changed"),
        (
            format!("UPDATE audit_log SET events = replace(events, '\"w\"', '\"x\"') WHERE position = {at}"),
            "was changed",
        ),
        (format!("DELETE FROM audit_log WHERE position = {at}"), "audit row is missing"),
    ] {
        let copy = Setup::new();
        std::fs::create_dir(copy.data()).unwrap();
        std::fs::copy(setup.file(), copy.file()).unwrap();
        forge(&copy, &sql);
        let fault = on(&copy.data(), &["audit", "verify"]).expect(1).stdout;
        assert!(fault.starts_with(&format!("ev-1-{at}: ")) && fault.contains(want), "{sql}: {fault}");
    }
    let inserted = format!(
        "INSERT INTO audit_log SELECT position + 1, partition, time, tenant, actor, count, chain, events FROM audit_log
         WHERE position = (SELECT max(position) FROM audit_log) AND {at} > 0"
    );
    forge(&setup, &inserted);
    assert!(on(&data, &["audit", "verify"]).expect(1).stdout.contains("without a command in the log"));
}

/// L6.2: ids are the events' own: a repeated export brings the same lines, and putting rows in again changes nothing.
#[test]
fn l6_2_exports_repeat_and_rows_put_in_again_change_nothing() {
    let (setup, node) = worked();
    let data = setup.data();
    let lines = |ended: Ended| -> Vec<String> { ended.expect(0).stdout.lines().map(str::to_owned).collect() };
    let first = lines(on(&data, &["audit", "export"]));
    assert_eq!(lines(on(&data, &["audit", "export"])), first);
    let ids: Vec<String> =
        first.iter().map(|line| text(&serde_json::from_str::<Value>(line).unwrap()["eventId"])).collect();
    let at = ids.len() / 2;
    assert_eq!(lines(on(&data, &["audit", "export", "--from", &ids[at]])), first[at..], "from an event on, inclusive");
    let own: Vec<&String> = first.iter().filter(|line| line.contains("\"tenant\":\"default\"")).collect();
    let by_server = lines(run(&mut node.wf(&["audit", "export"])));
    assert_eq!(by_server.len(), own.len(), "a tenant's own");
    on(&data, &["audit", "export", "--from", "ev-x"]).expect(2);
    assert!(node.stop().success());
    let connection = shell(&setup);
    for verb in ["INSERT OR IGNORE", "INSERT OR REPLACE", "INSERT"] {
        connection.execute(&format!("{verb} INTO audit_log SELECT * FROM audit_log"), []).unwrap();
        connection.execute(&format!("{verb} INTO command_log SELECT * FROM command_log"), []).unwrap();
    }
    drop(connection);
    assert_eq!(lines(on(&data, &["audit", "export"])), first);
    on(&data, &["audit", "verify"]).expect(0);
    on(&data, &["debug", "replay"]).expect(0);
}

/// Proofs tell of all tenants: they are an operator's, and one runs at a time.
#[test]
fn proofs_are_an_operators() {
    let hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"; // of `secret`
    let key = |name: &str, role: &str| {
        format!("[[api_key]]\nname = \"{name}\"\ntenant = \"acme\"\nsha256 = \"{hash}\"\nroles = [\"{role}\"]\n")
    };
    let reader = Setup::new().config(&key("reader", "reader")).start();
    for kind in ["replay", "tables", "audit"] {
        let path = format!("/api/v1/proofs/{kind}");
        reader.api.get(&path).expect(401);
        reader.api.bearer("secret").get(&path).expect(403);
    }
    // Kept: the folder goes with its setup, and the server reads it.
    let setup = Setup::new().config(&key("admin", "admin"));
    let admin = setup.start();
    admin.api.bearer("secret").get("/api/v1/proofs/replay").expect(200);
    admin.api.bearer("secret").get("/api/v1/proofs/replay?from=x").expect(400);
}
