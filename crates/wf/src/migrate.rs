//! `wf migrate`: the schema of a PostgreSQL database, brought up by hand or only looked at. A node that starts does the same;
//! by hand it needs the owner's role only here. What a migration is stands in `wf_store_postgres`.

use wf_store_postgres::{MigrateError, Versions};

use crate::cli::MigrateArgs;
use crate::config::databases;
use crate::output::{self, Done, Failure};

pub async fn migrate(args: MigrateArgs) -> Done {
    for url in databases(&args.store) {
        let place = wf_store_postgres::address_of(&url);
        let said = match args.check {
            true => check(&url).await?,
            false => bring_up(&url).await?,
        };
        output::print(&format!("{place}: {said}"))?;
    }
    Ok(())
}

async fn check(url: &str) -> Result<String, Failure> {
    let found = fitting(wf_store_postgres::check(url).await)?;
    match found.found >= found.known {
        true => Ok(format!("nothing to do: {}", words(found))),
        false => Err(Failure::work(format!("to be migrated: {}", words(found)))),
    }
}

async fn bring_up(url: &str) -> Result<String, Failure> {
    let before = fitting(wf_store_postgres::migrate(url).await)?;
    Ok(match before.found >= before.known {
        true => format!("nothing to do: {}", words(before)),
        false => format!("migrated: {}", words(before)),
    })
}

/// A schema that this program cannot work with is no answer.
fn fitting(versions: Result<Versions, MigrateError>) -> Result<Versions, Failure> {
    let versions = versions.map_err(Failure::work)?;
    match versions.known < versions.oldest {
        true => {
            let Versions { found, known, oldest } = versions;
            Err(Failure::work(MigrateError::Newer { found, known, oldest }))
        }
        false => Ok(versions),
    }
}

fn words(versions: Versions) -> String {
    let stood = match versions.found {
        0 => "the database had no store".to_owned(),
        found => format!("the database had schema version {found}"),
    };
    format!("{stood}, this program has schema version {}", versions.known)
}
