//! P7: compare-and-swap on a column of one's own table.

use crate::{begin, crash, waiting_for_a_lock};
use servers::Database;
use wf_idempotency::postgres::transition::{Swap, Transitions, compare_and_swap};
use wf_idempotency::postgres::{Column, Table};

#[tokio::test]
async fn p7_a_step_is_done_once_and_says_what_it_found() {
    let (database, steps) = orders().await;
    let client = servers::connect(database.url()).await;
    let table: [(&str, &str, &str, Swap); 6] = [
        (ORDER, "new", "paid", Swap::Done),
        (ORDER, "new", "paid", Swap::Already),
        (ORDER, "new", "sent", Swap::Other(Some("paid".to_owned()))),
        (ORDER, "paid", "sent", Swap::Done),
        ("00000000-0000-0000-0000-000000000009", "new", "paid", Swap::Missing),
        (UNSET, "new", "paid", Swap::Other(None)),
    ];
    for (row, from, to, expected) in table {
        assert_eq!(steps.swap(&client, row, from, to).await.unwrap(), expected, "{row}: {from} -> {to}");
    }
    let names = (&Table::new("orders").unwrap(), &Column::new("id").unwrap(), &Column::new("state").unwrap());
    assert_eq!(compare_and_swap(&client, names, ORDER, "sent", "new").await.unwrap(), Swap::Done);
    // A state that the column's type does not have is the caller's mistake.
    steps.swap(&client, ORDER, "new", "unheard-of").await.unwrap_err();
}

#[tokio::test]
async fn p7_of_two_transactions_at_once_one_does_it() {
    let (database, steps) = orders().await;
    let (mut one, mut other) = (servers::connect(database.url()).await, servers::connect(database.url()).await);
    let first = begin(&mut one).await;
    assert_eq!(steps.swap(&first, ORDER, "new", "paid").await.unwrap(), Swap::Done);
    let second = async {
        let second = begin(&mut other).await;
        steps.swap(&second, ORDER, "new", "sent").await.unwrap()
    };
    let commit = async {
        waiting_for_a_lock(&database, 1).await;
        first.commit().await.unwrap();
    };
    assert_eq!(tokio::join!(second, commit).0, Swap::Other(Some("paid".to_owned())));
}

#[tokio::test]
async fn p7_a_crash_before_the_commit_leaves_the_step_to_others() {
    let (database, steps) = orders().await;
    let (mut one, other) = (servers::connect(database.url()).await, servers::connect(database.url()).await);
    let first = begin(&mut one).await;
    assert_eq!(steps.swap(&first, ORDER, "new", "paid").await.unwrap(), Swap::Done);
    let crash = async {
        waiting_for_a_lock(&database, 1).await;
        crash(&database, &first).await;
    };
    let second = steps.swap(&other, ORDER, "new", "sent");
    assert_eq!(tokio::join!(second, crash).0.unwrap(), Swap::Done);
}

const ORDER: &str = "00000000-0000-0000-0000-000000000001";
const UNSET: &str = "00000000-0000-0000-0000-000000000002";

/// With a key and a state of types that the library does not know.
async fn orders() -> (Database, Transitions) {
    let database = servers::database().await;
    database.execute(&format!(
        "CREATE TYPE state AS ENUM ('new', 'paid', 'sent');
         CREATE TABLE orders (id uuid PRIMARY KEY, state state);
         INSERT INTO orders VALUES ('{ORDER}', 'new'), ('{UNSET}', NULL)"
    ));
    let (table, key, state) = (Table::new("orders"), Column::new("id"), Column::new("state"));
    (database, Transitions::new(&table.unwrap(), &key.unwrap(), &state.unwrap()))
}
