//! A table of expressions, their variables as JSON and their values as JSON, checked row by row.

use wf_feel::{Env, Expression, Value};

const NOW_MS: i64 = 1_717_245_296_789; // 2024-06-01T12:34:56.789Z

fn env() -> Env {
    Env { now_ms: NOW_MS, seed: *b"0123456789abcdef", ..Env::default() }
}

pub fn eval(source: &str, variables: &str) -> String {
    let scope = Value::from_json(variables).expect("variables");
    let expression = match Expression::parse(source) {
        Ok(expression) => expression,
        Err(error) => return format!("parse error: {error}"),
    };
    match expression.evaluate(&scope, &env()) {
        Ok(value) => value.to_json().unwrap_or_else(|error| format!("json error: {error}")),
        Err(error) => format!("error: {error}"),
    }
}

pub fn check(rows: &[(&str, &str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(source, variables, expected)| {
            let got = eval(source, variables);
            (got != *expected).then(|| format!("{source}  with {variables}\n  expected {expected}\n  got      {got}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
