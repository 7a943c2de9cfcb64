//! The line between a node and the database: cut in the middle of a COMMIT, gone without a word, back again.

use e2e::api::text;
use e2e::crash::started;
use e2e::models::one_task;
use serde_json::json;
use servers::{Line, Proxy};

use super::{SOME, Server, withstands};

/// Within a commit's bytes, and nowhere else.
const MARK: &str = "mark-of-the-doomed-one";

/// L1.6: done, and the node does not know. The client hears 503 `outcome-unknown`, or the answer where the node found out in
/// time; its repeat gets the stored answer, and the effect is there once.
#[test]
fn l1_6_a_line_that_is_cut_behind_a_commit_leaves_one_effect_and_its_answer() {
    cut_at_a_commit(|line| line.cut_at_answer(MARK.as_bytes(), b"COMMIT"), true);
}

/// Not done, and the node does not know either.
#[test]
fn l1_6_a_line_that_is_cut_before_a_commit_leaves_nothing() {
    cut_at_a_commit(|line| line.cut_before(MARK.as_bytes()), false);
}

fn cut_at_a_commit(lay: impl Fn(&Proxy), is_done: bool) {
    let server = Server::start();
    let line = Proxy::to(&server.cluster.address());
    let node = server.setup().by(&line.through(&server.url)).start();
    let api = &node.api;
    api.deploy(&one_task("one", "work")).answer().expect(201);
    let start = || api.start("one", json!({"mark": MARK})).key("doomed").answer();
    lay(&line);
    let first = start();
    line.wait_for_trapped(1);
    if first.status != 201 {
        assert!(first.header("retry-after").is_some());
        let code = text(&first.clone().expect(503).json()["code"]);
        assert!(code == "outcome-unknown" || (code == "unavailable" && !is_done), "{code}");
    }
    let again = e2e::until("a definite answer", || Some(start()).filter(|answer| answer.status != 503));
    let again = again.expect(201);
    assert_eq!(again.is_replay(), is_done || first.status == 201, "{}", first.text());
    let third = start();
    assert!(third.is_replay() && third.body == again.body);
    assert_eq!(api.all("/api/v1/instances").len(), 1);
    assert_eq!(api.events("instance.started"), 1);
}

const CUTS: usize = 30;

/// The same again and again, at whichever commit comes.
#[test]
fn l1_6_a_line_that_is_cut_behind_commits_under_load() {
    let server = Server::start();
    let line = Proxy::to(&server.cluster.address());
    withstands(&server.setup().by(&line.through(&server.url)), 0xC07, |setup, world| {
        let node = started(setup, world)?;
        for cut in 1..=CUTS {
            world.goes_on(20)?;
            line.cut_at_answer(b"COMMIT", b"COMMIT");
            line.wait_for_trapped(cut);
        }
        world.goes_on(SOME)?;
        Ok(vec![node])
    });
}

/// The database is out of reach for one node, for a moment: it goes on with what it owns.
#[test]
fn a_line_that_is_gone_for_a_moment() {
    let server = Server::start();
    let line = Proxy::to(&server.cluster.address());
    withstands(&server.setup().by(&line.through(&server.url)), 0x11E, |setup, world| {
        let (one, two) = (started(setup, world)?, started(&setup.clone().by(&server.url).named("two"), world)?);
        for _ in 0..3 {
            world.goes_on(SOME)?;
            line.set(Line::Refuse);
            line.cut();
            world.is_refused(5)?;
            line.set(Line::Pass);
        }
        world.goes_on(SOME)?;
        Ok(vec![one, two])
    });
}

/// Bytes vanish without a word, for longer than a lease: the other node takes everything, the one that is cut off gives no
/// false answer meanwhile, and takes its share again when the line is back.
#[test]
fn l2_4_a_node_that_is_cut_off_is_fenced_and_comes_back() {
    let server = Server::start();
    let line = Proxy::to(&server.cluster.address());
    withstands(&server.setup().by(&line.through(&server.url)), 0xB1AC, |setup, world| {
        let (one, two) = (started(setup, world)?, started(&setup.clone().by(&server.url).named("two"), world)?);
        e2e::until("a share each", || (server.owned_by("one") > 0 && server.owned_by("two") > 0).then_some(()));
        world.goes_on(SOME)?;
        line.set(Line::BlackHole);
        e2e::until("a take-over", || (server.owned_by("one") == 0 && server.free() == 0).then_some(()));
        world.goes_on(SOME)?;
        line.set(Line::Pass);
        e2e::until("a share again", || (server.owned_by("one") > 0).then_some(()));
        world.goes_on(SOME)?;
        Ok(vec![one, two])
    });
}
