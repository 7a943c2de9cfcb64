//! Other hands at the database: locks that somebody forgot, deadlocks, transactions that the server gives up.

use e2e::crash::started;
use servers::Options;

use crate::session::Session;

use super::{SOME, Server, withstands};

/// A whole table, and the rows that every commit needs. Requests wait or hear 503; afterwards it goes on by itself.
#[test]
fn somebodys_long_transaction_holds_what_every_commit_needs() {
    let locks = [
        "LOCK TABLE onceflow.jobs IN ACCESS EXCLUSIVE MODE",
        "LOCK TABLE onceflow.command_log IN SHARE MODE",
        "SELECT 1 FROM onceflow.partition FOR UPDATE",
        "SELECT 1 FROM onceflow.jobs FOR UPDATE",
    ];
    let server = Server::start();
    withstands(&server.setup(), 0x10C4, |setup, world| {
        let (one, two) = super::two_nodes(setup, world)?;
        for lock in locks {
            world.goes_on(SOME)?;
            let session = Session::open(&server.url);
            session.run(&format!("BEGIN; {lock}"));
            world.is_refused(1)?;
            drop(session);
        }
        world.goes_on(SOME)?;
        Ok(vec![one, two])
    });
}

/// Somebody takes rows in the other order: the server ends one of the two, and where it is ours, the turn runs again.
#[test]
fn l2_4_deadlocks_are_run_again() {
    let server = Server::with(Options::default().set("deadlock_timeout", "20ms"));
    withstands(&server.setup(), 0xDEAD, |setup, world| {
        let node = started(setup, world)?;
        world.goes_on(SOME)?;
        let stranger = Session::open(&server.url);
        let deadlocks =
            || server.rows("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")[0][0].clone();
        while deadlocks() == "0" && !world.has_faults() {
            let both =
                "BEGIN; SELECT 1 FROM onceflow.jobs FOR UPDATE; SELECT 1 FROM onceflow.partition FOR UPDATE; COMMIT";
            if stranger.try_run(both).is_err() {
                stranger.run("ROLLBACK");
            }
            world.goes_on(1)?;
        }
        world.goes_on(SOME)?;
        Ok(vec![node])
    });
}

/// The server gives up a transaction now and then, as one under load does: here by a trigger that fails with its codes.
#[test]
fn l2_4_serialization_failures_are_run_again() {
    let server = Server::start();
    withstands(&server.setup(), 0x4001, |setup, world| {
        let node = started(setup, world)?;
        world.goes_on(SOME)?;
        server.rows(GIVES_UP);
        world.goes_on(4 * SOME)?;
        server.rows("DROP TRIGGER gives_up ON onceflow.audit_log");
        world.goes_on(SOME)?;
        Ok(vec![node])
    });
    let told = server.cluster.log();
    assert!(told.contains("could not serialize access") && told.contains("deadlock detected"), "nothing was given up");
}

const GIVES_UP: &str = "CREATE FUNCTION gives_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF random() < 0.05 THEN RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001'; END IF;
    IF random() < 0.05 THEN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END IF;
    RETURN NULL; END $$;
    CREATE TRIGGER gives_up AFTER INSERT ON onceflow.audit_log FOR EACH STATEMENT EXECUTE FUNCTION gives_up()";
