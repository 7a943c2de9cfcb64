//! Weeks that leave the logs of a database, beside a node that goes on: what is left is proven as before, what is gone stands
//! in files, and whoever may not do it, or is in the way, is named.

use std::path::{Path, PathBuf};

use e2e::api::text;
use e2e::models::one_task;
use e2e::node::{Ended, Node, Setup, run, wf};
use serde_json::{Value, json};

use crate::session::Session;

const WEEK_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// A store with commands in three weeks, which have all ended as far as its archive knows. Nobody runs on it.
struct Old {
    setup: Setup,
    third: String,
    fourth: String,
    folder: PathBuf,
}

impl Old {
    fn new() -> Old {
        let setup = Setup::postgres().test_clock();
        let node = setup.start();
        node.api.deploy(&one_task("one", "work")).answer().expect(201);
        work(&node, "a", 20);
        node.api.advance(WEEK_MS);
        work(&node, "b", 20);
        node.api.advance(WEEK_MS);
        work(&node, "c", 5);
        assert!(node.stop().success());
        // Not the database's clock, which nodes compare with theirs.
        let later = format!("onceflow.clock_ms() + {}", 4 * WEEK_MS);
        let made = "pg_get_functiondef('onceflow.archivable_weeks'::regproc)";
        rows(&setup, &format!("DO $$ BEGIN EXECUTE replace({made}, 'onceflow.clock_ms()', '{later}'); END $$"));
        let last = "SELECT max(time) FROM command_log WHERE verb = 'start-instance'";
        let begin = |later: u64| {
            let begin = format!("to_timestamp((({last}) / {WEEK_MS} + {later}) * {WEEK_MS} / 1000) AT TIME ZONE 'UTC'");
            one(&setup, &format!("SELECT to_char({begin}, 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"))
        };
        let folder = setup.data();
        Old { third: begin(0), fourth: begin(1), setup, folder }
    }

    /// What stands before the third week.
    fn archives(&self, what: &str, url: &str) -> Ended {
        self.archives_before(&self.third, what, url)
    }

    fn archives_before(&self, time: &str, what: &str, url: &str) -> Ended {
        run(wf().args([what, "archive", "--store", url, "--before", time]).arg("--data").arg(&self.folder))
    }

    fn url(&self) -> String {
        self.setup.store_words()[1].clone()
    }

    fn replay(&self, folder: &Path) -> Ended {
        run(wf().args(["debug", "replay", "--store", &self.url(), "--output", "json"]).arg("--archived-in").arg(folder))
    }

    fn lines(&self, prefix: &str) -> Vec<Value> {
        let files = std::fs::read_dir(self.folder.join("archive")).unwrap().map(|file| file.unwrap());
        let ours = files.filter(|file| file.file_name().to_string_lossy().starts_with(prefix));
        let texts = ours.map(|file| std::fs::read_to_string(file.path()).unwrap());
        texts
            .flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>())
            .collect()
    }
}

fn rows(setup: &Setup, sql: &str) -> Vec<Vec<String>> {
    setup.database().rows(sql)
}

fn one(setup: &Setup, sql: &str) -> String {
    rows(setup, sql)[0][0].clone()
}

/// What a proof says of each partition.
fn parts<'r>(report: &'r Value, proof: &str) -> Vec<&'r Value> {
    report.as_array().unwrap().iter().map(|part| &part[proof]).collect()
}

fn work(node: &Node, keys: &str, count: usize) {
    for n in 0..count {
        node.api.start("one", json!({"n": n})).key(&format!("{keys}-{n}")).answer().expect(201);
    }
    for job in node.api.activated("work", "w", 3) {
        node.api.complete(&job, "w", json!({})).answer().expect(200);
    }
}

/// L2.1, L2.3: an explicit act, beside a node that works; nothing of the proofs is lost.
#[test]
fn l2_3_weeks_leave_the_command_log_by_drop() {
    let old = Old::new();
    let node = old.setup.start();
    let weeks = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'onceflow.command_log'::regclass";
    let before: u64 = one(&old.setup, weeks).parse().unwrap();
    let all = rows(&old.setup, "SELECT id FROM command_log").len();
    let said = old.archives("log", &old.url()).expect(0).stdout;
    assert!(said.contains("2 weeks were dropped"), "{said}");
    assert_eq!(one(&old.setup, weeks).parse::<u64>().unwrap(), before - 2);
    let left = rows(&old.setup, "SELECT id FROM command_log");
    let kept = old.lines("log-");
    assert!(left.len() < all && left.len() + kept.len() == all, "{} of {all} left, {} kept", left.len(), kept.len());
    assert!(kept.iter().filter(|line| line["verb"] == "start-instance").count() >= 40, "two weeks' starts");
    assert!(old.archives("log", &old.url()).expect(0).stdout.contains("no week"));
    // Beside the node, and by it: they begin at the checkpoints, and agree.
    work(&node, "d", 5);
    let beside = old.replay(&old.folder).expect(0).json();
    assert!(parts(&beside, "replay").iter().all(|part| part["identical"] == true), "{beside}");
    assert!(parts(&beside, "replay").iter().any(|part| part["base"] != "0"), "{beside}");
    let by_it = run(&mut node.wf(&["debug", "replay", "--output", "json"])).expect(0).json();
    assert_eq!(by_it, beside);
    run(wf().args(["audit", "verify", "--store", &old.url()])).expect(0);
    let elsewhere = old.replay(&old.folder.join("elsewhere")).expect(1);
    assert!(elsewhere.stderr.contains("the checkpoint from just before"), "{elsewhere:?}");
}

/// A partition that has done nothing since keeps its last command: what its tables sum up to stands there.
#[test]
fn l2_3_the_last_command_of_an_idle_partition_stays() {
    let old = Old::new();
    let said = old.archives_before(&old.fourth, "log", &old.url()).expect(0).stdout;
    assert!(said.contains("3 weeks were dropped"), "{said}");
    let last = "SELECT count(*) FROM partition AS p JOIN command_log AS l ON (l.partition, l.position) = (p.id, p.last_position)";
    assert_eq!(one(&old.setup, last), "8");
    assert_eq!(one(&old.setup, "SELECT count(*) FROM command_log"), "8");
    old.archives_before(&old.fourth, "audit", &old.url()).expect(0);
    assert_eq!(one(&old.setup, "SELECT count(*) FROM audit_log"), "0");
    run(wf().args(["audit", "verify", "--store", &old.url()])).expect(0);
    old.replay(&old.folder).expect(0);
    let node = old.setup.start();
    work(&node, "d", 20);
    old.replay(&old.folder).expect(0);
    run(wf().args(["audit", "verify", "--store", &old.url()])).expect(0);
    // What was started then is explained, with a word about what is gone.
    let instance = one(&old.setup, "SELECT min(key) FROM scope WHERE parent = 0");
    let explained = run(&mut node.wf(&["debug", "explain", "--instance", &instance])).expect(0).stdout;
    assert!(explained.contains("the oldest events were archived"), "{explained}");
}

/// L6.2: the chain goes on behind what has left; and nothing leaves that is not what was told.
#[test]
fn l6_2_weeks_leave_the_audit_by_drop() {
    let old = Old::new();
    let node = old.setup.start();
    let chain_of = |report: &Value| parts(report, "audit").iter().map(|part| text(&part["chain"])).collect::<Vec<_>>();
    let verify = || run(wf().args(["audit", "verify", "--output", "json", "--store", &old.url()]));
    let before = verify().expect(0).json();
    let all = rows(&old.setup, "SELECT position FROM audit_log").len();
    let said = old.archives("audit", &old.url()).expect(0).stdout;
    assert!(said.contains("2 weeks were dropped"), "{said}");
    let after = verify().expect(0).json();
    assert_eq!(chain_of(&after), chain_of(&before));
    assert!(parts(&after, "audit").iter().any(|part| part["archived"].is_string()), "{after}");
    let left = rows(&old.setup, "SELECT position FROM audit_log").len();
    let kept = old.lines("audit-");
    assert_eq!(left + kept.len(), all);
    assert!(kept.iter().all(|line| line["events"].as_array().unwrap().len() as u64 == line["count"]), "{kept:?}");
    // The commands go later than their events did.
    old.archives("log", &old.url()).expect(0);
    verify().expect(0);
    work(&node, "d", 5);
    verify().expect(0);
    run(wf().args(["audit", "export", "--store", &old.url()])).expect(0);
    old.replay(&old.folder).expect(0);
}

/// Two at once: what is gone stands in the folder of each that says it is done. One folder is for one of them, and one database.
#[test]
fn l2_3_two_archives_at_once_lose_nothing() {
    let old = Old::new();
    let all = rows(&old.setup, "SELECT id FROM command_log").len();
    let url = old.url();
    let both = std::thread::scope(|scope| {
        let other = scope.spawn(|| old.archives("log", &url));
        [old.archives("log", &url), other.join().unwrap()]
    });
    assert!(both.iter().any(|ended| ended.status.success()), "{both:?}");
    assert_eq!(std::fs::read_dir(old.folder.join("checkpoints")).unwrap().count(), 8);
    let left = rows(&old.setup, "SELECT id FROM command_log").len();
    assert_eq!(left + old.lines("log-").len(), all, "{both:?}");
    old.replay(&old.folder).expect(0);
    let another = Old::new();
    let mixed = run(wf()
        .args(["log", "archive", "--store", &another.url(), "--before", &old.third])
        .arg("--data")
        .arg(&old.folder));
    assert!(mixed.expect(1).stderr.contains("another database"));
    let sqlite = Setup::new();
    assert!(sqlite.start().stop().success());
    let mixed =
        run(wf().args(["audit", "archive", "--store", &url, "--before", &old.third]).arg("--data").arg(sqlite.data()));
    assert!(mixed.expect(1).stderr.contains("a store of its own"));
}

#[test]
fn l6_2_a_forged_audit_is_not_archived() {
    let old = Old::new();
    rows(
        &old.setup,
        "SET session_replication_role = replica;
         UPDATE audit_log SET actor = 'nobody' WHERE (partition, position) IN (
             SELECT partition, position FROM audit_log WHERE events LIKE '%created%' ORDER BY time LIMIT 1)",
    );
    let all = one(&old.setup, "SELECT count(*) FROM audit_log");
    let refused = old.archives("audit", &old.url()).expect(1);
    assert!(refused.stderr.contains("was changed") && refused.stderr.contains("nothing was archived"), "{refused:?}");
    assert_eq!(one(&old.setup, "SELECT count(*) FROM audit_log"), all);
}

/// Nothing is dropped by who does not own it, nor while somebody reads it; both are told so, and may try again.
#[test]
fn l2_1_a_log_is_dropped_by_its_owner_when_nobody_reads_it() {
    let old = Old::new();
    let node = old.setup.start();
    let url = old.url();
    rows(&old.setup, include_str!("../../../../crates/wf-store-postgres/roles.sql"));
    let role = format!("worker_{}", std::process::id());
    rows(&old.setup, &format!("CREATE ROLE {role} LOGIN PASSWORD 'x' IN ROLE onceflow_app"));
    let (scheme, rest) = url.split_once("://").unwrap();
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let theirs = format!("{scheme}://{role}:x@{place}");
    let refused = old.archives("log", &theirs).expect(1);
    assert!(refused.stderr.contains("owner"), "{refused:?}");
    let reader = Session::open(&url);
    reader.run("BEGIN; SELECT count(*) FROM onceflow.command_log");
    let busy = old.archives("log", &url).expect(1);
    assert!(busy.stderr.contains("is being read"), "{busy:?}");
    work(&node, "d", 5);
    reader.run("COMMIT");
    old.archives("log", &url).expect(0);
    old.replay(&old.folder).expect(0);
    run(wf().args(["debug", "replay", "--store", &theirs]).arg("--archived-in").arg(&old.folder)).expect(0);
    run(wf().args(["log", "archive", "--store", &url, "--before", &old.third])).expect(2);
    let wrong = run(wf().args(["log", "archive", "--store", &url, "--data", "x", "--before", "ev-1-5"])).expect(2);
    assert!(wrong.stderr.contains("whole weeks"), "{wrong:?}");
}
