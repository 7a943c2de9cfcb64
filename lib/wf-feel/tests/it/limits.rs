//! Whatever is deployed, nothing panics, overflows the stack or runs without end.
//! Hostile inputs run on a small stack, so that a missing bound shows as a crash of this test.

use std::thread;

use wf_feel::{Budget, Env, EvalError, Expression, Value, add_duration_ms, parse_duration, parse_instant_ms};

const STACK_BYTES: usize = 1 << 20;

fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    thread::Builder::new().stack_size(STACK_BYTES).spawn(work).expect("thread").join().expect("no panic")
}

fn outcome(source: &str) -> String {
    let source = source.to_owned();
    on_a_small_stack(move || {
        let expression = match Expression::parse(&source) {
            Ok(expression) => expression,
            Err(error) => return format!("refused: {}", error.message),
        };
        let scope = Value::from_json(r#"{"s": "aaaaaaaaaaaaaaaa", "xs": [1, 2, 3]}"#).expect("scope");
        match expression.evaluate(&scope, &Env::default()) {
            Ok(value) => {
                let text = value.to_json().unwrap_or_else(|error| format!("unwritten: {error}"));
                text.chars().take(200).collect()
            }
            Err(EvalError::Budget { .. }) => "steps".to_owned(),
            Err(EvalError::Size { .. }) => "bytes".to_owned(),
            Err(error) => error.to_string(),
        }
    })
}

#[test]
fn nesting_is_refused_before_it_hurts() {
    const N: usize = 50_000;
    let deep = "refused: the expression is nested too deeply";
    let rows = [
        "(".repeat(N),
        "[".repeat(N),
        "{a:".repeat(N),
        "count(".repeat(N),
        "xs[".repeat(N),
        "if ".repeat(N),
        "a in (".repeat(N),
        "[1..".repeat(N),
        "]".repeat(N),
        "-[0*]1..(0 < 0+0**".repeat(N),
        "for x in [".repeat(N),
        "for x in xs return ".repeat(N),
        "if a then ".repeat(N),
        "{a: [1]".to_owned()
            + &(0..N / 10).map(|i| format!(", a{i}: [a{}]", i.wrapping_sub(1))).collect::<String>()
            + "}",
        "{a0: [1]".to_owned() + &(1..N / 10).map(|i| format!(", a{i}: [a{}]", i - 1)).collect::<String>() + "}",
    ];
    let outcomes: Vec<String> = rows.iter().map(|source| outcome(source)).collect();
    let wrong: Vec<(&str, &str)> = rows
        .iter()
        .zip(&outcomes)
        .filter(|(_, outcome)| *outcome != deep)
        .map(|(source, outcome)| (source.get(..30).unwrap_or(source), outcome.as_str()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn long_is_not_deep() {
    let sum = "1".to_owned() + &"+1".repeat(20_000);
    let all = "true".to_owned() + &" and true".repeat(20_000);
    let path = "a".to_owned() + &".a".repeat(20_000);
    let minus = "-".repeat(20_001) + "1";
    let cases = "if false then 1 else ".repeat(10_000) + "2";
    let list = format!("count([{}1])", "1,".repeat(20_000));
    let rows = [(sum, "20001"), (all, "true"), (path, "null"), (minus, "-1"), (cases, "2"), (list, "20001")];
    for (source, expected) in rows {
        assert_eq!(outcome(&source), expected, "{}", source.get(..30).unwrap_or(&source));
    }
}

#[test]
fn budgets_end_what_would_not_end() {
    let doubling = |kind: &str| {
        let entries = (1..64).map(|i| kind.replace("X", &format!("a{}", i - 1)).replace("Y", &format!("a{i}")));
        let all: Vec<String> = entries.collect();
        format!("{{a0: s, {}}}", all.join(", "))
    };
    let ranges = "for a in 1..100000, b in 1..100000, c in 1..100000 return 1";
    let rows = [
        ("for i in 1..10000000000 return i".to_owned(), "bytes"),
        ("for i in 1..100000 return partial".to_owned(), "steps"),
        ("for i in 1..1000 return [partial[-1]]".to_owned(), "evaluate the expression: nested deeper than 128"),
        ("some i in 1..1000000000000 satisfies false".to_owned(), "steps"),
        (ranges.to_owned(), "bytes"),
        (doubling("Y: X + X"), "bytes"),
        (doubling("Y: concatenate(X, X)"), "bytes"),
        ("string join(for i in 1..100000 return s, string join(for i in 1..100 return s))".to_owned(), "bytes"),
        ("distinct values(for i in 1..10000 return i)".to_owned(), "steps"),
        (r#"replace(string join(for i in 1..20000 return s), "a", "$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0")"#.to_owned(), "bytes"),
        (r#"matches(string join(for i in 1..20000 return s), "(a*)*(a*)*(a*)*b")"#.to_owned(), "false"),
        (r#"matches(s, "((a{1000}){1000}){1000}")"#.to_owned(), "null"),
        (r#"matches("", string join(for i in 1..1000 return "("))"#.to_owned(), "null"),
        ("9 ** 999999999".to_owned(), "calculate: the number is out of range"),
        ("duration(\"P999999999999999999D\") * 1000000000".to_owned(), "null"),
        ("@\"9999-12-31\" + @\"P1D\"".to_owned(), "null"),
        ("@\"9999-12-31T23:59:59Z\" + @\"P999999999Y\"".to_owned(), "null"),
        ("sublist(xs, 9999999999999999999999999, 99999999999999999999999)".to_owned(), "null"),
        ("xs[99999999999999999999999999]".to_owned(), "null"),
        ("substring(s, -9223372036854775808, 9223372036854775807)".to_owned(), "null"),
        ("decimal(1/3, 99999999999)".to_owned(), "null"),
        ("partition(xs, 9223372036854775807)".to_owned(), "[[1,2,3]]"),
    ];
    for (source, expected) in &rows {
        assert_eq!(&outcome(source), expected, "{}", source.get(..80).unwrap_or(source));
    }
}

#[test]
fn shared_parts_do_not_explode() {
    // 2^60 items as text, 61 small lists in memory.
    let entries: Vec<String> = (1..60).map(|i| format!("a{i}: [a{0}, a{0}]", i - 1)).collect();
    let tree = format!("{{a0: [1], {}}}", entries.join(", "));
    let rows = [
        (format!("count({tree}.a59)"), "2"),
        (format!("{tree}.a59"), "steps"),
        (format!("string({tree})"), "steps"),
        (format!("to json({tree})"), "bytes"),
        (format!("flatten({tree}.a59)"), "bytes"),
        (format!("{tree}.a59 = {tree}.a59"), "steps"),
        (format!("{tree}.a59.x"), "bytes"),
        (format!("list contains({tree}.a59, [1])"), "false"),
    ];
    for (source, expected) in &rows {
        assert_eq!(&outcome(source), expected, "{}", source.get(..30).unwrap_or(source));
    }
}

#[test]
fn a_small_budget_is_kept() {
    let evaluate = |source: &str, budget: Budget| {
        Expression::parse(source).expect(source).evaluate(&(), &Env { budget, ..Env::default() })
    };
    let steps = Budget { steps_max: 10, ..Budget::default() };
    let depth = Budget { depth_max: 3, ..Budget::default() };
    let bytes = Budget { bytes_max: 10, ..Budget::default() };
    assert_eq!(evaluate("1+1+1+1+1+1+1", steps), Err(EvalError::Budget { steps_max: 10 }));
    assert_eq!(evaluate("[[[[1]]]]", depth), Err(EvalError::Depth { depth_max: 3 }));
    assert_eq!(evaluate("\"12345678\" + \"abc\"", bytes), Err(EvalError::Size { bytes_max: 10 }));
    assert_eq!(evaluate("1+1", steps), Ok(Value::from(2)));
}

#[test]
fn json_is_bounded_and_refuses_what_is_none() {
    let refused = [
        "",
        "{",
        "[1,]",
        "{\"a\"}",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "--1",
        "\"\u{1}\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "nul",
        "1 2",
        "{\"a\":1,}",
        "[",
        "\"",
        "NaN",
        "1e99999999999999999999",
        "\"\\u12\"",
        "\"\\ud800\\u0041\"",
    ];
    for text in refused {
        assert!(Value::from_json(text).is_err(), "{text}");
    }
    let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
    on_a_small_stack(move || {
        assert!(Value::from_json(&nested(128)).is_ok());
        assert!(Value::from_json(&nested(100_000)).is_err());
        assert!(Value::from_json(&"[".repeat(1_000_000)).is_err());
    });
    let rows = [
        (
            r#" {"a" : [1 , -0, 1E+2, 1.50 ], "b":"\u00e9\ud83d\ude00\/\n"} "#,
            "{\"a\":[1,-0,1E+2,1.50],\"b\":\"é😀/\\n\"}",
        ),
        (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
        ("\"\\u0000\"", "\"\\u0000\""),
    ];
    for (text, expected) in rows {
        assert_eq!(Value::from_json(text).expect(text).to_json().expect(text), expected);
    }
}

#[test]
fn timers() {
    let at = |text: &str| parse_instant_ms(text).expect(text);
    let rows = [
        ("2024-01-31T00:00:00Z", "P1M", "2024-02-29T00:00:00Z"),
        ("2024-02-29T12:00:00Z", "P1Y", "2025-02-28T12:00:00Z"),
        ("2024-01-01T00:00:00Z", "PT15M", "2024-01-01T00:15:00Z"),
        ("2024-01-01T00:00:00Z", "P1DT2H3M4.5S", "2024-01-02T02:03:04.500Z"),
        ("2024-01-01T00:00:00Z", "P1Y2M3DT4H", "2025-03-04T04:00:00Z"),
        ("2024-01-15T00:00:00Z", "P2W", "2024-01-29T00:00:00Z"),
        ("2024-01-01T00:00:00Z", "-PT1S", "2023-12-31T23:59:59Z"),
        ("2024-01-01T00:00:00Z", "PT-1S", "2023-12-31T23:59:59Z"),
        ("1969-12-31T23:59:59.999Z", "PT0.0005S", "1969-12-31T23:59:59.999Z"),
    ];
    for (start, duration, end) in rows {
        assert_eq!(add_duration_ms(at(start), duration), Some(at(end)), "{start} + {duration}");
        assert_eq!(Value::from(duration).add_to_ms(at(start)), Some(at(end)));
        assert_eq!(Value::from(start).as_instant_ms(), Some(at(start)));
    }
    assert_eq!(at("2024-06-01T12:00:00+02:00"), at("2024-06-01T10:00:00Z"));
    assert_eq!(at("2024-06-01T12:00:00@Europe/Berlin"), at("2024-06-01T10:00:00Z"));
    assert_eq!(at("2024-06-01T12:00:00+02:00[Europe/Berlin]"), at("2024-06-01T10:00:00Z"));
    assert_eq!(at("2024-06-01T12:00:00"), at("2024-06-01T12:00:00Z"));
    assert_eq!(at("2024-06-01"), at("2024-06-01T00:00:00Z"));
    for text in ["", "P", "PT", "1D", "P1", "P1H", "PT1D", "P1D1Y", "P1.5D", "PT1,5S", "P99999999999999999999D", "PxD"]
    {
        assert_eq!(parse_duration(text), None, "{text}");
        assert_eq!(Value::from(text).add_to_ms(0), None, "{text}");
    }
    assert_eq!(add_duration_ms(0, "P999999Y"), None);
    assert_eq!(add_duration_ms(i64::MAX, "PT1S"), None);
    assert_eq!(Value::from(1).as_instant_ms(), None);
}
