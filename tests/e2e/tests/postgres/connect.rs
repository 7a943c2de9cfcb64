//! Ways to the database: through PgBouncer, over TLS, and what is said where there is none.

use e2e::crash::counts::Counts;
use e2e::crash::{started, withstand};
use e2e::node::{Ended, Setup};
use e2e::until;
use servers::{Cluster, Options, PgBouncer};

/// Transaction mode: no session keeps anything. The load comes through, and the log says that nobody is notified.
#[test]
fn through_pgbouncer_in_transaction_mode() {
    let cluster = Cluster::start();
    let url = cluster.create_database(None);
    let bouncer = PgBouncer::start(&cluster);
    let database = url.rsplit('/').next().unwrap();
    let counts = Counts::default();
    let ended = withstand(&Setup::at(&bouncer.url(database)), 0xB0, &counts, |setup, world| {
        let (one, two) = (started(setup, world)?, started(&setup.clone().named("two"), world)?);
        world.goes_on(1_000)?;
        let log = setup.log();
        assert!(log.contains("PgBouncer") || log.contains("LISTEN") || log.contains("polling"), "{log}");
        Ok(vec![one, two])
    });
    ended.unwrap_or_else(|broken| panic!("{broken}"));
}

/// The server's certificate is checked, name and all.
#[test]
fn over_tls_with_a_checked_certificate() {
    let (cluster, other) = (Options::default().tls().start(), Options::default().tls().start());
    let setup = Setup::new();
    let file = |name: &str, cluster: &Cluster| {
        let path = setup.folder.path().join(name);
        std::fs::write(&path, cluster.certificate().unwrap()).unwrap();
        path.display().to_string()
    };
    let (right, wrong) = (file("right.pem", &cluster), file("wrong.pem", &other));
    cluster.execute("CREATE DATABASE engine");
    let url = |mode: &str, ca: &str| {
        format!("postgres://postgres@{}/engine?sslmode={mode}&sslrootcert={ca}", cluster.address())
    };
    let node = Setup::at(&url("verify-full", &right)).start();
    until("ready", || (node.api.get("/readyz").status == 200).then_some(()));
    let encrypted = "SELECT count(*) > 0 AND bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
        WHERE a.datname = 'engine' AND a.backend_type = 'client backend'";
    assert_eq!(cluster.execute(encrypted), [["t"]]);
    drop(node);
    refused(&url("verify-full", &wrong), &["certificate"]);
    refused(&url("verify-full", "/nowhere.pem"), &["/nowhere.pem"]);
    refused(&url("disable", &right).replace("&sslrootcert", "&application_name"), &["encryption"]);
}

/// A clear word and an exit code; no password in it.
#[test]
fn limits_a_database_that_cannot_be_reached_is_named() {
    let cluster = Options::default().password("correct").start();
    let url = cluster.create_database(None);
    let address = cluster.address();
    refused(&url.replace("correct", "wr0ng"), &[&address, "password authentication failed"]);
    refused(&format!("{}_not", url), &["does not exist"]);
    cluster.stop_fast();
    refused(&url, &[&address, "refused"]);
}

#[track_caller]
fn refused(url: &str, said: &[&str]) {
    let Err(Ended { status, stderr, .. }) = Setup::at(url).try_start() else { panic!("{url}: it started") };
    assert_eq!(status.code(), Some(1), "{stderr}");
    said.iter().for_each(|said| assert!(stderr.contains(said), "{said}: {stderr}"));
    assert!(!stderr.contains("panicked") && !stderr.contains("wr0ng") && !stderr.contains(":correct"), "{stderr}");
}
