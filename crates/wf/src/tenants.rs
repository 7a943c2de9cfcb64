//! `wf tenants`: where tenants live, where several databases share them. It asks the databases, not a server.

use serde::Serialize;
use wf_store_postgres::DatabaseInfo;

use crate::cli::{Output, TenantsArgs, TenantsCommand};
use crate::config::databases;
use crate::output::{self, Done, Failure};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    database: String,
    first_partition: u16,
    last_partition: u16,
    tenants: Vec<String>,
}

pub async fn run(args: TenantsArgs) -> Done {
    match args.command {
        TenantsCommand::List { all, output } => list(&databases(&all.store), output).await,
        TenantsCommand::Settle { tenant, on, all } => settle(&databases(&all.store), &tenant, &on).await,
    }
}

async fn list(urls: &[String], shown_as: Output) -> Done {
    let first = urls.first().map(String::as_str).unwrap_or_default();
    let found = wf_store_postgres::databases(first).await.map_err(Failure::work)?;
    let row = |info: DatabaseInfo| Row {
        database: info.address,
        first_partition: info.first_partition,
        last_partition: info.last_partition,
        tenants: info.tenants,
    };
    let rows: Vec<Row> = found.into_iter().map(row).collect();
    match shown_as {
        Output::Json => output::print(&output::json(&rows)),
        Output::Table => {
            output::print(&output::table(&["database", "partitions", "tenants"], rows.into_iter().map(cells).collect()))
        }
    }
}

fn cells(row: Row) -> Vec<String> {
    vec![
        row.database,
        format!("{}-{}", row.first_partition, row.last_partition),
        output::or_dash(Some(&row.tenants.join(" "))),
    ]
}

async fn settle(urls: &[String], tenant: &str, on: &str) -> Done {
    if !wf_server::auth::is_tenant(tenant) {
        return Err(Failure::usage("a tenant's name is 1 to 63 of A-Z a-z 0-9 . _ -"));
    }
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    wf_store_postgres::settle_tenant(&urls, tenant, on).await.map_err(Failure::work)?;
    output::print(&format!("{tenant} lives in {on}"))
}
