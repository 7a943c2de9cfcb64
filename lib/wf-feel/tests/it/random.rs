//! Whatever is thrown at it: nothing panics, the same input gives the same value, numbers survive exactly.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use wf_feel::{Budget, Env, Expression, Number, Value, add_duration_ms, parse_instant_ms};

/// Pieces of which hostile sequences are made.
const PIECES: &[&str] = &[
    "1",
    "2.5",
    "x",
    "xs",
    "\"a\"",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ".",
    "..",
    "+",
    "-",
    "*",
    "/",
    "**",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "and",
    "or",
    "not",
    "if",
    "then",
    "else",
    "for",
    "in",
    "return",
    "some",
    "every",
    "satisfies",
    "between",
    "instance",
    "of",
    "null",
    "true",
    "false",
    "?",
    "@",
    "@\"P1D\"",
    "@\"2024-01-01\"",
    "function",
    "a:",
    "sort(",
    "count(",
    "date(",
    "date and time(",
    "string join(",
    "get value(",
    "is defined(",
    "substring(",
    "replace(",
    "item",
    "#",
    "`b c`",
    "append(",
    "time offset",
    "context put(",
    "for i in 1..3 return",
    "if x then",
    "decimal(",
    "duration(",
];

fn survive(source: &str) {
    let Ok(expression) = Expression::parse(source) else { return };
    let mut scope: BTreeMap<Arc<str>, Value> = BTreeMap::new();
    scope.insert("x".into(), Value::from(3));
    scope.insert("xs".into(), Value::from_json("[1, 2, {\"a\": null}]").expect("json"));
    let budget = Budget { steps_max: 20_000, bytes_max: 1 << 20, ..Budget::default() };
    let env = Env { budget, ..Env::default() };
    let first = expression.evaluate(&scope, &env);
    let json = first.as_ref().map(Value::to_json);
    let again = expression.evaluate(&scope, &env);
    assert_eq!(format!("{json:?}"), format!("{:?}", again.as_ref().map(Value::to_json)), "{source}");
}

/// A well-formed expression of some depth, so that the evaluator is reached and not only the parser.
fn well_formed() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "1",
        "0",
        "-2.5",
        "x",
        "xs",
        "null",
        "true",
        "\"abc\"",
        "\"\"",
        "[]",
        "{}",
        "@\"2024-02-29\"",
        "@\"PT36H\"",
        "@\"P14M\"",
        "now()",
        "today()",
        "@\"10:00:00\"",
        "@\"12:00:00+01:00\"",
        "item",
        "99999999999999999999",
        "0.000001",
        "[1..3]",
        "uuid()",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(4, 40, 3, |inner| {
        let operator =
            prop::sample::select(vec!["+", "-", "*", "/", "**", "=", "!=", "<", ">=", " and ", " or ", " in ", ","]);
        let function = prop::sample::select(vec![
            "not",
            "is defined",
            "string",
            "number",
            "count",
            "min",
            "max",
            "sum",
            "mean",
            "median",
            "stddev",
            "mode",
            "floor",
            "abs",
            "sqrt",
            "exp",
            "log",
            "odd",
            "reverse",
            "distinct values",
            "flatten",
            "is empty",
            "upper case",
            "trim",
            "date",
            "time",
            "date and time",
            "duration",
            "get entries",
            "context merge",
            "to json",
            "from json",
            "string length",
            "union",
            "day of week",
            "last day of month",
            "string join",
            "duplicate values",
            "week of year",
        ]);
        let function2 = prop::sample::select(vec![
            "list contains",
            "append",
            "concatenate",
            "index of",
            "substring",
            "substring before",
            "substring after",
            "contains",
            "matches",
            "split",
            "extract",
            "get value",
            "modulo",
            "decimal",
            "round up",
            "round half up",
            "partition",
            "sublist",
            "remove",
            "string join",
            "date and time",
            "years and months duration",
            "number",
            "get or else",
            "fromAi",
            "remove",
        ]);
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(a, op, b)| match op {
                "," => format!("[{a}, {b}]"),
                op => format!("({a}){op}({b})"),
            }),
            (function, inner.clone()).prop_map(|(f, a)| format!("{f}({a})")),
            (function2, inner.clone(), inner.clone()).prop_map(|(f, a, b)| format!("{f}({a}, {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("if {a} then {b} else {c}")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("context put({{a: {a}}}, {b}, {c})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("replace({a}, {b}, {c})")),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("for x in {a} return {b}").replace("in -", "in 0-")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("some x in ({a}) satisfies {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{a: {a}, b: [a, {b}], c: b}}")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("sort({a}, function(x, item) {b})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn any_text_is_survived(source in "\\PC{0,60}") {
        survive(&source);
    }

    #[test]
    fn any_tokens_are_survived(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..24)) {
        survive(&pieces.join(" "));
    }

    #[test]
    fn any_expression_is_survived_and_deterministic(source in well_formed()) {
        prop_assert!(Expression::parse(&source).is_ok() || source.contains("for x in"), "{}", source);
        survive(&source);
    }

    #[test]
    fn any_json_text_is_survived(text in "[\\[\\]{}\",:0-9eE+\\-.\\\\untrfalse ]{0,40}") {
        if let Ok(value) = Value::from_json(&text) {
            let written = value.to_json().expect("what was read can be written");
            prop_assert_eq!(Value::from_json(&written).expect("again").to_json().expect("again"), written);
        }
    }

    #[test]
    fn any_time_text_is_survived(text in "[-+PYMWDTHS0-9.:@Z\\[\\]/aé]{0,30}", start in any::<i64>()) {
        let _ = (add_duration_ms(start, &text), parse_instant_ms(&text));
        survive(&format!("[@\"{text}\", duration(\"{text}\"), date and time(\"{text}\"), time(\"{text}\"), date(\"{text}\")]"));
    }

    #[test]
    fn json_numbers_are_copied_exactly(text in "-?(0|[1-9][0-9]{0,50})(\\.[0-9]{1,50})?([eE][+-]?[0-9]{1,10})?") {
        prop_assert_eq!(Value::from_json(&text).expect("a number").to_json().expect("json"), text);
    }

    #[test]
    fn canonical_numbers_read_back_equal(text in "-?(0|[1-9][0-9]{0,50})(\\.[0-9]{1,50})?([eE][+-]?[0-9]{1,5})?") {
        let number = Number::parse(&text).expect("a number");
        prop_assert_eq!(Number::parse(&number.to_string()).expect("canonical"), number);
    }

    #[test]
    fn small_decimals_calculate_as_integers(a in -10_i64.pow(12)..10_i64.pow(12), b in -10_i64.pow(12)..10_i64.pow(12)) {
        // Thousandths on both sides; the product is in millionths.
        let text = |n: i128, scale: u32| {
            let unit = 10_u128.pow(scale);
            let sign = if n < 0 { "-" } else { "" };
            let width = usize::try_from(scale).expect("small");
            format!("{sign}{}.{:0width$}", n.unsigned_abs() / unit, n.unsigned_abs() % unit)
        };
        let (a, b) = (i128::from(a), i128::from(b));
        let evaluate = |source: String| Expression::parse(&source).expect("parses").evaluate(&(), &Env::default());
        let number = |n: i128, scale: u32| Ok(Value::Number(Number::parse(&text(n, scale)).expect("a number")));
        let (x, y) = (text(a, 3), text(b, 3));
        prop_assert_eq!(evaluate(format!("({x}) + ({y})")), number(a + b, 3));
        prop_assert_eq!(evaluate(format!("({x}) - ({y})")), number(a - b, 3));
        prop_assert_eq!(evaluate(format!("({x}) * ({y})")), number(a * b, 6));
        prop_assert_eq!(evaluate(format!("({x}) < ({y})")), Ok(Value::Bool(a < b)));
        if b != 0 {
            prop_assert_eq!(evaluate(format!("modulo({x}, {y})")), number((a % b + b) % b, 3));
        }
    }
}
