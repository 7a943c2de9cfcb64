//! Issue 2, item 10, SQLite's file and folder: a full disk, a folder that may not be written, a store that somebody else holds.
//! A clear word and an exit code; what was answered stays.

use std::os::unix::fs::PermissionsExt;

use e2e::api::text;
use e2e::database::audit_gaps;
use e2e::models::one_task;
use e2e::node::{Ended, Node, Setup};
use e2e::{until, wf_binary};
use serde_json::json;

/// SQLite's own limit: refused as on a full disk, and nothing is half done.
#[test]
fn limits_a_full_database_refuses_and_keeps_what_it_answered() {
    let setup = Setup::new();
    full_disk(&setup, &setup.clone().config("[sqlite]\npages_max = 150"), &["unavailable"]);
}

/// The system's limit for a file: the write itself fails, in the middle of a commit.
#[test]
fn limits_a_full_disk_refuses_and_keeps_what_it_answered() {
    let setup = Setup::new();
    // In kilobytes.
    let limited = ["bash", "-c", "ulimit -f 1500; exec \"$@\"", "bash"];
    full_disk(&setup, &setup.clone().before(&limited), &["unavailable", "outcome-unknown"]);
}

/// Fills the store until it refuses; then without the limit: everything that was answered is there, nothing else is.
fn full_disk(setup: &Setup, limited: &Setup, codes: &[&str]) {
    let node = limited.start();
    node.api.deploy(&one_task("one", "work")).answer().expect(201);
    let ballast = "x".repeat(20_000);
    let start = |node: &Node, n: usize| {
        node.api.start("one", json!({"n": n, "ballast": ballast})).key(&format!("start-{n}")).answer()
    };
    let mut answered = Vec::new();
    let refused = (0..1000).find_map(|n| match start(&node, n) {
        answer if answer.status == 201 => {
            answered.push(text(&answer.json()["key"]));
            None
        }
        answer => Some(answer),
    });
    let refused = refused.expect("a limit");
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.header("retry-after").is_some());
    let code = text(&refused.json()["code"]);
    assert!(codes.contains(&code.as_str()), "{code}");
    assert!(answered.len() > 5, "{answered:?}");
    // Reads go on, and say so where nothing can be written.
    assert_eq!(node.api.state(&answered[0]), "ACTIVE");
    assert_eq!(node.api.get("/livez").status, 200);
    // What room is left takes small ones for a while, and lets the engine come back in between.
    let (refused, mut small, mut unknown) = (answered.len(), 0, usize::from(code == "outcome-unknown"));
    until("not ready", || {
        small += 1;
        let answer = node.api.start("one", json!({"n": small})).key(&format!("small-{small}")).answer();
        match answer.status {
            201 => answered.push(text(&answer.json()["key"])),
            _ => unknown += usize::from(answer.json()["code"] == "outcome-unknown"),
        }
        (node.api.get("/readyz").status == 503).then_some(())
    });
    assert!(start(&node, 0).is_replay(), "a stored answer needs no disk");
    assert_eq!(start(&node, refused).status, 503);
    let log = limited.log();
    assert!(!log.contains("panicked"), "{log}");
    node.kill();
    let node = setup.start();
    let mut found: Vec<String> = node.api.all("/api/v1/instances").iter().map(|found| text(&found["key"])).collect();
    found.sort();
    answered.sort();
    let uncertain = found.len().saturating_sub(answered.len());
    assert!(uncertain <= unknown, "{found:?} {answered:?}");
    assert!(answered.iter().all(|key| found.contains(key)), "{found:?} {answered:?}");
    // The one that was refused runs now, under its key, once.
    let again = start(&node, refused).expect(201);
    assert_eq!(node.api.all("/api/v1/instances").len(), found.len() + usize::from(!again.is_replay()));
    assert_eq!(audit_gaps(&setup.database()), Vec::<String>::new());
}

/// The engine comes back by itself when the disk has room again, without a restart.
#[test]
#[cfg(target_os = "linux")]
fn limits_room_on_the_disk_ends_the_refusals_without_a_restart() {
    let setup = Setup::new().before(&["bash", "-c", "ulimit -Sf 1500; exec \"$@\"", "bash"]);
    let node = setup.start();
    node.api.deploy(&one_task("one", "work")).answer().expect(201);
    let ballast = "x".repeat(20_000);
    let start = |n: usize| node.api.start("one", json!({"n": n, "ballast": ballast})).key(&format!("{n}")).answer();
    let refused = (0..1000).find(|n| start(*n).status == 503).expect("a limit");
    let freed = std::process::Command::new("prlimit")
        .args(["--pid", &node.process.id().to_string(), "--fsize=unlimited"])
        .status();
    assert!(freed.is_ok_and(|status| status.success()));
    let answer = until("answer", || Some(start(refused)).filter(|answer| answer.status != 503));
    answer.expect(201);
    assert_eq!(node.api.all("/api/v1/instances").len(), refused + 1);
    until("ready", || (node.api.get("/readyz").status == 200).then_some(()));
}

#[test]
fn limits_a_folder_that_may_not_be_written_is_named() {
    let setup = Setup::new();
    let folder = setup.folder.path();
    let closed = folder.join("wf-data");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    let ended = unprivileged(&setup).try_start().map(|_| ()).unwrap_err();
    failed(&ended, &["write to the data directory", &closed.display().to_string(), "ermission denied"]);
    std::fs::remove_dir(&closed).unwrap();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    std::fs::write(folder.join("wf.toml"), "").ok();
    let ended = unprivileged(&setup).try_start().map(|_| ()).unwrap_err();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    failed(&ended, &["create the data directory", &closed.display().to_string(), "ermission denied"]);
}

/// Permissions mean nothing to root.
fn unprivileged(setup: &Setup) -> Setup {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        return setup.clone();
    }
    let words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"];
    // The build may stand where only its owner may look.
    let copy = setup.folder.path().join("wf");
    if !copy.exists() {
        std::fs::copy(wf_binary(), &copy).unwrap();
    }
    setup.clone().before(&words).binary(&copy)
}

#[test]
fn limits_a_store_that_another_process_holds_is_named_with_its_holder() {
    let setup = Setup::new();
    let node = setup.start();
    let second = setup.clone().try_start().map(|_| ()).unwrap_err();
    let holder = format!("process {}", node.process.id());
    failed(&second, &["another process holds it", &setup.data().display().to_string(), &holder]);
    assert_eq!(node.api.get("/readyz").status, 200);
    node.kill();
    // The lock goes with its process, however that ended.
    setup.start();
}

#[test]
fn limits_what_is_no_store_is_left_alone() {
    let setup = Setup::new();
    std::fs::create_dir(setup.data()).unwrap();
    let text = "these are not the rows that you are looking for\n".repeat(200);
    std::fs::write(setup.file(), &text).unwrap();
    let ended = setup.try_start().map(|_| ()).unwrap_err();
    failed(&ended, &[&setup.data().display().to_string(), "not a database"]);
    assert_eq!(std::fs::read_to_string(setup.file()).unwrap(), text);
}

#[track_caller]
fn failed(ended: &Ended, said: &[&str]) {
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    said.iter().for_each(|said| assert!(ended.stderr.contains(said), "{said}: {ended:?}"));
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    assert_eq!(ended.stdout, "");
}
