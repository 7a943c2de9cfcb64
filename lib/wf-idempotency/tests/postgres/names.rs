//! Any text is a name, and none is a piece of SQL.

use wf_idempotency::postgres::transition::{Swap, Transitions};
use wf_idempotency::postgres::{Column, NameError, Table};

#[test]
fn names_are_quoted() {
    let shown = |name: &str| Table::new(name).map(|table| table.to_string());
    assert_eq!(shown("orders").unwrap(), r#""orders""#);
    assert_eq!(shown(r#"a"; DROP TABLE b; --"#).unwrap(), r#""a""; DROP TABLE b; --""#);
    assert_eq!(Table::in_schema("my.shop", "Orders").unwrap().to_string(), r#""my.shop"."Orders""#);
    assert_eq!(shown("").unwrap_err(), NameError::Empty);
    assert_eq!(shown("a\0b").unwrap_err(), NameError::Nul);
    assert!(shown(&"x".repeat(63)).is_ok());
    assert_eq!(shown(&"ü".repeat(32)).unwrap_err(), NameError::TooLong("ü".repeat(32)));
    assert_eq!(Column::new("").unwrap_err(), NameError::Empty);
}

/// A name that looks like a statement's placeholder, or ends a quotation, stays a name.
#[tokio::test]
async fn odd_names_work() {
    let database = servers::database().await;
    let client = servers::connect(database.url()).await;
    let (table, key, state) = (r#"{key}"; SELECT 1; --"#, "{state}", r#"a"b"#);
    let quoted = |name: &str| name.replace('"', "\"\"");
    let create = format!(
        r#"CREATE TABLE "{}" ("{key}" int PRIMARY KEY, "{}" text); INSERT INTO "{}" VALUES (1, 'new')"#,
        quoted(table),
        quoted(state),
        quoted(table)
    );
    client.batch_execute(&create).await.unwrap();
    let steps = Transitions::new(&Table::new(table).unwrap(), &Column::new(key).unwrap(), &Column::new(state).unwrap());
    assert_eq!(steps.swap(&client, "1", "new", "old").await.unwrap(), Swap::Done);
}
