//! Several databases that share the tenants: numbered apart, each tenant in one, and none of them ever taken for the whole.
//! Next: `tests/e2e/tests/postgres/databases.rs`, with servers on them.

use std::collections::BTreeMap;

use servers::{Database, database};
use wf_core::Partitions;
use wf_store::{Directory, Store};
use wf_store_postgres::{JoinError, OpenError, Options, PostgresDirectory, PostgresStore, connect_all, settle_tenant};

use crate::{fence, store, turn};

fn all_of(databases: &[&Database]) -> Vec<Options> {
    databases.iter().map(|database| Options::at(database.url())).collect()
}

async fn opened(databases: &[&Database]) -> (Vec<PostgresStore>, PostgresDirectory) {
    let (stores, directory) = connect_all(all_of(databases)).await.unwrap();
    (stores, directory.unwrap())
}

async fn refused(databases: &[&Database]) -> JoinError {
    match connect_all(all_of(databases)).await.map_err(|failed| failed.error) {
        Err(OpenError::Join(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opened"),
    }
}

fn numbers(stores: &[PostgresStore]) -> Vec<(u16, u16)> {
    stores.iter().map(|store| (store.partitions().first(), store.partitions().last())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_database_has_numbers_of_its_own_and_keeps_them() {
    let (a, b, c) = (database().await, database().await, database().await);
    assert_eq!(numbers(&opened(&[&a, &b]).await.0), [(1, 8), (9, 16)]);
    // Another one joins, and two nodes that start at once agree.
    let nodes = (0..4).map(|_| connect_all(all_of(&[&a, &b, &c])));
    for opened in futures_util::future::join_all(nodes).await {
        assert_eq!(numbers(&opened.unwrap().0), [(1, 8), (9, 16), (17, 24)]);
    }
    // The order of the others is nobody's concern.
    assert_eq!(numbers(&opened(&[&a, &c, &b]).await.0), [(1, 8), (17, 24), (9, 16)]);
    let (stores, _) = opened(&[&a, &b, &c]).await;
    stores[1].commit(turn(fence(&stores[1], 9).await).into()).await.unwrap();
    assert!(stores[1].open(1).await.is_err(), "partition 1 is another database's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_one_home_whoever_asks() {
    let (a, b) = (database().await, database().await);
    let (_, one) = opened(&[&a, &b]).await;
    let (_, other) = opened(&[&a, &b]).await;
    assert_eq!(one.home("new", false).await.unwrap(), None, "a look gives no place");
    let mut homes = BTreeMap::<usize, usize>::new();
    for tenant in (0..20).map(|n| format!("t-{n}")) {
        let asked = futures_util::future::join_all([&one, &other].map(|directory| directory.home(&tenant, true))).await;
        let homes_of: Vec<usize> = asked.into_iter().map(|home| home.unwrap().unwrap()).collect();
        assert_eq!(homes_of[0], homes_of[1], "{tenant}");
        *homes.entry(homes_of[0]).or_default() += 1;
    }
    assert_eq!(homes, BTreeMap::from([(0, 10), (1, 10)]), "they are spread");
    assert_eq!(opened(&[&a, &b]).await.1.home("t-3", false).await.unwrap(), one.home("t-3", false).await.unwrap());
}

/// A store that stood alone becomes the first of several: who worked there stays there.
#[tokio::test(flavor = "multi_thread")]
async fn tenants_that_were_there_before_stay_in_the_first() {
    let (a, b) = (database().await, database().await);
    let alone = store(a.url()).await;
    alone.commit(turn(fence(&alone, 1).await).into()).await.unwrap();
    for table in [
        "api_idempotency (tenant, key, key_hash, route, fingerprint, mac_key_id, created_at, expires_at, state) \
         VALUES ('keyed', 'k', '\\x00', 'r', '\\x00', 1, 1, 2, 'IN_PROGRESS')",
        "definition (partition, key, tenant, process_id, version, resource, checksum, deployed_at, xml) \
         VALUES (1, 1, 'deployed', 'p', 1, 'r', '\\x00', 1, '\\x00')",
        "deduplication (tenant, name, message_id, partition, key, content, expires_at) \
         VALUES ('messaged', 'n', 'm', 3, 1, '\\x00', 2)",
    ] {
        a.execute(&format!("INSERT INTO onceflow.{table}"));
    }
    let (_, directory) = opened(&[&a, &b]).await;
    for n in 0..3 {
        directory.home(&format!("new-{n}"), true).await.unwrap();
    }
    for tenant in ["keyed", "deployed", "messaged"] {
        assert_eq!(directory.home(tenant, true).await.unwrap(), Some(0), "{tenant}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_is_never_taken_for_the_whole() {
    let (a, b, c) = (database().await, database().await, database().await);
    drop(opened(&[&a, &b]).await);
    assert!(matches!(refused(&[&a]).await, JoinError::Missing(_)), "half of the tenants");
    assert!(matches!(refused(&[&b]).await, JoinError::NotFirst), "the other half");
    assert!(matches!(refused(&[&b, &a]).await, JoinError::NotFirst), "the directory is in a");
    assert!(matches!(refused(&[&a, &c]).await, JoinError::Missing(_)), "b is not named");
    assert!(matches!(refused(&[&c, &b]).await, JoinError::Foreign), "b is a's");
    assert!(matches!(refused(&[&a, &b, &a]).await, JoinError::Twice));
    // What was refused was not touched: c goes where it likes.
    assert_eq!(store(c.url()).await.partitions(), Partitions::of(8));
}

/// Keys carry the partition: two stores that both count from 1 cannot become one.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_stood_alone_joins_as_the_first_or_not_at_all() {
    let (a, b) = (database().await, database().await);
    drop((store(a.url()).await, store(b.url()).await));
    assert!(matches!(refused(&[&a, &b]).await, JoinError::Foreign));
    assert_eq!(store(a.url()).await.partitions(), Partitions::of(8), "it goes on alone");
    let c = database().await;
    assert_eq!(numbers(&opened(&[&b, &c]).await.0), [(1, 8), (9, 16)]);
}

/// A node that knows one database alone would work there for tenants that live in another.
#[tokio::test(flavor = "multi_thread")]
async fn no_node_runs_that_knows_one_database_alone() {
    let (a, b) = (database().await, database().await);
    let alone = store(a.url()).await;
    alone.cluster().unwrap().join().await.unwrap();
    assert!(matches!(refused(&[&a, &b]).await, JoinError::Busy), "it still runs");
    let paused = store(a.url()).await;
    alone.cluster().unwrap().leave().await.unwrap();
    let (stores, _) = opened(&[&a, &b]).await;
    stores[0].cluster().unwrap().join().await.unwrap();
    for node in [&alone, &paused] {
        let cluster = node.cluster().unwrap();
        for refused in [cluster.join().await.err().unwrap(), cluster.renew().await.err().unwrap()] {
            assert!(refused.to_string().contains("shared with other databases"), "{refused}");
        }
    }
    stores[0].cluster().unwrap().renew().await.unwrap();
    // Nor is a third one added under nodes that know two.
    let c = database().await;
    assert!(matches!(refused(&[&a, &b, &c]).await, JoinError::Busy), "they would not know where its tenants live");
    stores[0].cluster().unwrap().leave().await.unwrap();
    drop(opened(&[&a, &b, &c]).await);
}

/// The first database may come back older than the others: it has forgotten who was settled since.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_worked_stays_also_when_the_directory_has_forgotten() {
    let (a, b) = (database().await, database().await);
    let (_, directory) = opened(&[&a, &b]).await;
    assert_eq!(directory.home("early", true).await.unwrap(), Some(0));
    assert_eq!(directory.home("late", true).await.unwrap(), Some(1));
    b.execute(
        "INSERT INTO onceflow.message (partition, key, tenant, name, correlation_key, expires_at, correlated, variables) \
         VALUES (11, 1, 'late', 'n', '', 1, '', '')",
    );
    a.execute("DELETE FROM onceflow.tenant");
    let (_, directory) = opened(&[&a, &b]).await;
    assert_eq!(directory.home("late", true).await.unwrap(), Some(1));
    // Two that say so: nobody decides.
    a.execute(
        "INSERT INTO onceflow.deduplication (tenant, name, message_id, partition, key, content, expires_at) \
         VALUES ('torn', 'n', 'm', 3, 1, '\\x00', 2)",
    );
    b.execute(
        "INSERT INTO onceflow.deduplication (tenant, name, message_id, partition, key, content, expires_at) \
         VALUES ('torn', 'n', 'm', 9, 1, '\\x00', 2)",
    );
    let torn = directory.home("torn", true).await.err().unwrap();
    assert!(torn.to_string().contains("more than one database"), "{torn}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_settles_who_has_not_worked() {
    let (a, b) = (database().await, database().await);
    let (_, directory) = opened(&[&a, &b]).await;
    let urls = [a.url(), b.url()];
    let listed = || async { wf_store_postgres::databases(a.url()).await.unwrap() };
    let addresses: Vec<String> = listed().await.into_iter().map(|info| info.address).collect();
    for _ in 0..2 {
        settle_tenant(&urls, "big", &addresses[1]).await.unwrap();
    }
    assert_eq!(listed().await[1].tenants, ["big"]);
    assert_eq!(directory.home("big", true).await.unwrap(), Some(1));
    let refused = |urls: Vec<String>, tenant: &'static str, address: String| async move {
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        settle_tenant(&urls, tenant, &address).await.err().unwrap()
    };
    let all = || urls.map(str::to_owned).to_vec();
    let error = refused(all(), "big", addresses[0].clone()).await;
    assert!(matches!(error, OpenError::Join(JoinError::Lives { .. })), "{error}");
    let error = refused(all(), "new", "nowhere:1/x".to_owned()).await;
    assert!(matches!(error, OpenError::Join(JoinError::Unknown { .. })), "{error}");
    let error = refused(all()[..1].to_vec(), "new", addresses[0].clone()).await;
    assert!(matches!(error, OpenError::Join(JoinError::Missing(_))), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_4095_numbers() {
    let (a, b, c) = (database().await, database().await, database().await);
    let of = |database: &Database, partitions| Options { partitions, ..Options::at(database.url()) };
    drop(connect_all(vec![of(&a, 4_090), of(&b, 5)]).await.unwrap());
    let failed = connect_all(vec![of(&a, 1), of(&b, 1), of(&c, 1)]).await.err().unwrap();
    assert!(matches!(failed.error, OpenError::Join(JoinError::Full(1))), "{failed}");
}

/// A list that is not one, by a wrong letter between: what follows would be taken for a name, and shown with its password.
#[tokio::test]
async fn a_malformed_list_shows_no_password() {
    let second = "postgres://u:geheim@127.0.0.1:1/b";
    for list in [format!("postgres://u@127.0.0.1:1/a;{second}"), format!("postgres://u@127.0.0.1:1/a?x={second}")] {
        let failed = connect_all(vec![Options::at(list)]).await.err().unwrap().to_string();
        assert!(failed.contains("more than one database") && !failed.contains("geheim"), "{failed}");
    }
}
