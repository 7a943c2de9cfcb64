//! Lists that pass more rows than one statement does: what is wanted stands far apart.

use std::sync::Arc;

use servers::Database;
use wf_core::{Key, ids};
use wf_store::conformance::samples::KEY_MAX;
use wf_store::conformance::world::TENANT;
use wf_store::*;
use wf_store_postgres::{Options, PostgresStore};

async fn store(database: &Database) -> Arc<dyn Store> {
    Arc::new(PostgresStore::connect(Options::at(database.url())).await.unwrap())
}

/// All pages of a list, each of two items at most.
async fn paged<T>(mut ask: impl AsyncFnMut(Slice) -> Page<T>) -> Vec<T> {
    let mut items = Vec::new();
    let mut after = None;
    loop {
        let page = ask(Slice { after, limit: 2 }).await;
        items.extend(page.items);
        after = page.next;
        if after.is_none() {
            return items;
        }
    }
}

/// Of 30,000 in each of two partitions, the 9,000th and so on.
const JOBS: &str = "
INSERT INTO onceflow.jobs (partition, key, element_key, scope, root, definition, element, tenant, job_type, rank, state,
                           retries, worker, lease, due, steps, headers, lineage)
SELECT p, (p::int8 << 51) + g, 1, 1, 1, 1, 1, 'acme', CASE WHEN g % 9000 = 0 THEN 'pay' ELSE 'other' END, 0, 'READY', 3, '', 0,
       0, 0, '', decode(md5(''), 'hex')
FROM generate_series(1, 2) AS p, generate_series(1, 30000) AS g";

#[tokio::test(flavor = "multi_thread")]
async fn jobs_far_apart_are_found() {
    let database = servers::database().await;
    let store = store(&database).await;
    database.execute(JOBS);
    let want: Vec<Key> =
        [1, 2].into_iter().flat_map(|p| [9000, 18000, 27000].map(|counter| ids::key(p, counter))).collect();
    for instance in [None, Some(1)] {
        let jobs = paged(async |slice| {
            let job_type = Some("pay".to_owned());
            store.jobs(JobQuery { tenant: TENANT.into(), job_type, state: None, instance, slice }).await.unwrap()
        })
        .await;
        assert_eq!(jobs.into_iter().map(|job| job.key).collect::<Vec<_>>(), want, "{instance:?}");
    }
    let gauges = store.gauges().await.unwrap();
    let mut counts: Vec<(String, u64)> =
        gauges.jobs.into_iter().map(|(job_type, _, count)| (job_type.to_string(), count)).collect();
    counts.sort();
    assert_eq!(counts, [("other".to_owned(), 59_994), ("pay".to_owned(), 6)]);
}

const INSTANCES: &str = "
INSERT INTO onceflow.scope (partition, key, root, parent, definition, element, state, active, joins, visits, lineage, tenant,
                            process_id, version, started_at, ended_at, started_position, ended_position, steps)
SELECT p, (p::int8 << 51) + g, (p::int8 << 51) + g, 0, 1, 0, 'ACTIVE', 1, '[]', '[]', decode(md5(''), 'hex'), 'acme', 'order', 1,
       g, 0, 0, 0, 0
FROM generate_series(1, 2) AS p, generate_series(1, 12000) AS g;
INSERT INTO onceflow.variable (partition, scope, name, value)
SELECT p, (p::int8 << 51) + g, 'order', CASE WHEN g IN (5, 11000) THEN '\"A1\"' ELSE to_json('B' || g)::text END
FROM generate_series(1, 2) AS p, generate_series(1, 12000) AS g";

#[tokio::test(flavor = "multi_thread")]
async fn instances_far_apart_are_found() {
    let database = servers::database().await;
    let store = store(&database).await;
    database.execute(INSTANCES);
    let instances = paged(async |slice| {
        let query = InstanceQuery {
            tenant: TENANT.into(),
            state: Some(InstanceState::Active),
            process_id: None,
            started_after: None,
            variables: vec![("order".to_owned(), "A1".to_owned())],
            slice,
        };
        store.instances(query).await.unwrap()
    })
    .await;
    let want = [(2, 11000), (1, 11000), (2, 5), (1, 5)].map(|(partition, counter)| ids::key(partition, counter));
    assert_eq!(instances.into_iter().map(|root| root.key).collect::<Vec<_>>(), want);
}

const AUDIT: &str = "
INSERT INTO onceflow.audit_log (partition, position, time, tenant, actor, count, chain, events)
SELECT p, g, g * 100000::int8, CASE WHEN g % 9000 = 0 THEN 'acme' ELSE 'other' END, 'w', 1, decode(md5(''), 'hex'),
       '[{\"root\":\"7\"}]'
FROM generate_series(1, 2) AS p, generate_series(1, 30000) AS g";

#[tokio::test(flavor = "multi_thread")]
async fn audit_far_apart_is_found() {
    let database = servers::database().await;
    let store = store(&database).await;
    database.execute(AUDIT);
    let tenant = || TENANT.into();
    let rows = paged(async |slice| {
        let query =
            AuditQuery { tenant: tenant(), partition: 1, is_alone: false, from: Some(9001), until: None, slice };
        store.audit(query).await.unwrap()
    })
    .await;
    let places: Vec<(u16, u64)> = rows.into_iter().map(|row| (row.partition, row.position)).collect();
    assert_eq!(places, [(1, 18000), (1, 27000), (2, 9000), (2, 18000), (2, 27000)]);
    let ask = |limit, passed_max| {
        let query =
            TrailQuery { tenant: tenant(), partition: 2, instance: 7, from: 0, until: KEY_MAX, limit, passed_max };
        store.trail(query)
    };
    let shown = |trail: Trail| (trail.rows.into_iter().map(|row| row.position).collect::<Vec<_>>(), trail.next);
    assert_eq!(shown(ask(9, 100_000).await.unwrap()), (vec![9000, 18000, 27000], None));
    assert_eq!(shown(ask(2, 100_000).await.unwrap()), (vec![9000, 18000], Some(27000)));
    assert_eq!(shown(ask(9, 20_000).await.unwrap()), (vec![9000, 18000], Some(20_001)));
}
