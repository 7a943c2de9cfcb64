//! Statements that stand side by side in nearly every transaction, made into one (`sql.rs` lists them): each by itself costs
//! a message to the server and one back, and a small transaction costs little else. The server may write the parts of one
//! statement in any order, all from one snapshot: no two of them may touch one table, and none may read what another one
//! writes. Checks are made before what nobody checks is written (so it is in PostgreSQL, not promised by its manual; a test
//! holds it): a fence still comes first. Next: `sql.rs`.

use std::fmt::Write;

use crate::connection::Values;
use crate::sql::{RUNS, Sql, types_of};

/// Where the parts of a run stand side by side, the run takes their place.
pub fn fold(all: &mut Vec<(Sql, Values<'_>)>) {
    for (run, parts) in RUNS {
        let stands = |window: &[(Sql, Values)]| window.iter().map(|(sql, _)| sql).eq(*parts);
        let Some(at) = all.windows(parts.len()).position(stands) else { continue };
        let values = all.drain(at..at + parts.len()).fold(Values::none(), |before, (_, values)| before.and(values));
        all.insert(at, (*run, values));
    }
}

/// One statement of several: their parameters one after the other.
pub fn joined(parts: &[&str]) -> String {
    let (mut written, mut checks, mut parameters) = (Vec::new(), Vec::new(), 0);
    for (n, part) in parts.iter().enumerate() {
        let text = renumbered(part.trim_end().trim_end_matches(';'), parameters);
        parameters += types_of(part).len();
        match text.strip_prefix("WITH met AS (").and_then(|rest| rest.split_once("\n)\nSELECT ")) {
            Some((body, check)) => {
                written.push(format!("met_{n} AS ({body}\n)"));
                checks.push(format!("(SELECT {})", check.replace("FROM met", &format!("FROM met_{n}"))));
            }
            None => written.push(format!("part_{n} AS (\n{text}\n)")),
        }
    }
    let checks = if checks.is_empty() { "0".to_owned() } else { checks.join(", ") };
    format!("WITH {}\nSELECT {checks}", written.join(", "))
}

/// `$1` becomes `$4` behind three others.
fn renumbered(text: &str, before: usize) -> String {
    let mut parts = text.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = part.split_at(digits);
        // A dollar without a number is none of ours.
        let _ = match number.parse::<usize>() {
            Ok(number) => write!(out, "${}{rest}", number + before),
            Err(_) => write!(out, "${part}"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::TABLES;

    /// What a turn with a start, and one with a completion, sends.
    #[test]
    fn what_stands_side_by_side_is_one_statement() {
        let folded = |names: &[Sql]| {
            let mut all = names.iter().map(|sql| (*sql, Values::none())).collect();
            fold(&mut all);
            all.into_iter().map(|(sql, _)| sql).collect::<Vec<_>>()
        };
        let begin = [Sql::Fence, Sql::InsertCommand, Sql::InsertAudit];
        let end = [Sql::InsertOutbox, Sql::PutRecord, Sql::PutAnswer];
        let inserts: Vec<Sql> = TABLES[2..6].iter().map(|table| table.insert).collect();
        let start = folded(&[&begin[..], &inserts, &end].concat());
        assert_eq!(start, [Sql::BeginTurn, Sql::StartTask, Sql::InsertOutbox, Sql::PutAnswered]);
        let updates: Vec<Sql> = TABLES.iter().map(|table| table.update).collect();
        let at = updates.iter().position(|sql| *sql == Sql::UpdateScope).unwrap();
        let touched = [Sql::DeleteElement, updates[at], Sql::UpdateJob, Sql::InsertVariable];
        assert_eq!(folded(&[&begin[..2], &touched].concat())[2..], [Sql::FinishTask, Sql::InsertVariable]);
    }

    #[test]
    fn guards_keep_their_checks_and_parameters_their_order() {
        let guarded = "WITH met AS (\n    UPDATE a SET x = $2::int8 WHERE b = $1::int2[]\n    RETURNING 1\n)\nSELECT CASE WHEN count(*) = cardinality($1) THEN 0 END FROM met;\n";
        let plain = "INSERT INTO c SELECT unnest($1::text[]), unnest($2::text[]);\n";
        let one = "WITH met_0 AS (\n    UPDATE a SET x = $2::int8 WHERE b = $1::int2[]\n    RETURNING 1\n), \
                   part_1 AS (\nINSERT INTO c SELECT unnest($3::text[]), unnest($4::text[])\n)\n\
                   SELECT (SELECT CASE WHEN count(*) = cardinality($1) THEN 0 END FROM met_0)";
        assert_eq!(joined(&[guarded, plain]), one);
        assert_eq!(
            joined(&[plain]),
            "WITH part_0 AS (\nINSERT INTO c SELECT unnest($1::text[]), unnest($2::text[])\n)\nSELECT 0"
        );
    }
}
