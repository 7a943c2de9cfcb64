//! The ground the other end-to-end tests stand on: the binary runs, a broker of one's own starts, dies and comes back.

use e2e::nats::Nats;
use std::process::{Command, Stdio};

#[test]
fn the_release_binary_runs() {
    let status = Command::new(e2e::wf_binary()).arg("--help").stdin(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()));
}

#[test]
fn two_brokers_live_side_by_side_and_survive_a_kill() {
    let (mut one, two) = (Nats::start(), Nats::start());
    assert_ne!(one.port, two.port);
    let port = one.port;
    one.kill();
    one.restart();
    assert_eq!(one.url(), format!("nats://127.0.0.1:{port}"));
}
