//! The dialect as a table: an expression, its variables as JSON, its value as JSON.
//! Rows marked "Camunda" are where the dialect differs from the DMN standard.

use wf_feel::{Env, Expression, Value};

const NOW_MS: i64 = 1_717_245_296_789; // 2024-06-01T12:34:56.789Z

fn env() -> Env {
    Env { now_ms: NOW_MS, seed: *b"0123456789abcdef", ..Env::default() }
}

fn eval(source: &str, variables: &str) -> String {
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

fn check(rows: &[(&str, &str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(source, variables, expected)| {
            let got = eval(source, variables);
            (got != *expected).then(|| format!("{source}  with {variables}\n  expected {expected}\n  got      {got}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn literals_and_names() {
    check(&[
        ("null", "{}", "null"),
        ("true", "{}", "true"),
        ("1", "{}", "1"),
        ("-1.50", "{}", "-1.5"),
        (".5", "{}", "0.5"),
        ("007", "{}", "7"),
        (r#""a\"b\\c\n\u00e9 \d""#, "{}", r#""a\"b\\c\né \\d""#),
        (r#""\uD83D\uDE00 \U01F600""#, "{}", r#""😀 😀""#),
        ("\"\"", "{}", "\"\""),
        ("x", r#"{"x": 1}"#, "1"),
        ("x", "{}", "null"),
        ("größe_1", r#"{"größe_1": 2}"#, "2"),
        ("名前", r#"{"名前": "n"}"#, "\"n\""),
        ("`a b+c`", r#"{"a b+c": 3}"#, "3"),
        ("`a b`.`c d`", r#"{"a b": {"c d": 3}}"#, "3"),
        ("$x", r#"{"$x": 3}"#, "3"),
        ("nullable", r#"{"nullable": 3}"#, "3"),
        ("trueish and inside", r#"{"trueish": true, "inside": true}"#, "true"),
        ("a.b.c", r#"{"a": {"b": {"c": 1}}}"#, "1"),
        ("a.b.c", r#"{"a": {}}"#, "null"),
        ("a.b.c", "{}", "null"),
        ("a.in.then", r#"{"a": {"in": {"then": 1}}}"#, "1"),
        ("a.b", r#"{"a": [{"b": 1}, {"b": 2}, {}]}"#, "[1,2,null]"),
        ("a . b", r#"{"a": {"b": 1}}"#, "1"),
        ("1 // one\n + /* two */ 2", "{}", "3"),
        ("for", r#"{"for": 1}"#, "1"),
        ("{a: if}", r#"{"if": 1}"#, r#"{"a":1}"#),
    ]);
}

#[test]
fn numbers_are_exact_decimals() {
    check(&[
        ("0.1 + 0.2", "{}", "0.3"),
        ("9007199254740992 + 1", "{}", "9007199254740993"),
        ("1 = 1.0", "{}", "true"),
        ("x = 1", r#"{"x": 1.00}"#, "true"),
        ("x", r#"{"x": 1.00}"#, "1.00"),
        ("x + 0", r#"{"x": 1.00}"#, "1"),
        ("{y: x}", r#"{"x": 12345678901234567890.10}"#, r#"{"y":12345678901234567890.10}"#),
        ("[x]", r#"{"x": 1e400}"#, "[1e400]"),
        ("x > 1", r#"{"x": 1e400}"#, "true"),
        ("x > y", r#"{"x": 1e1000000000, "y": 1e999999999}"#, "true"),
        ("x = y", r#"{"x": 1e1000000000, "y": 10e999999999}"#, "true"),
        ("-x < x", r#"{"x": 1e1000000000}"#, "true"),
        ("x + 1", r#"{"x": 1e1000000000}"#, "error: calculate: the number is out of range"),
        ("1e3", "{}", "parse error: an operator or the end is expected, found 'e3' (at offset 1)"),
        ("1/3", "{}", "0.3333333333333333333333333333333333"),
        ("2/3", "{}", "0.6666666666666666666666666666666667"),
        ("1/3*3", "{}", "0.9999999999999999999999999999999999"),
        ("10/4", "{}", "2.5"),
        ("1/0", "{}", "null"),
        ("2 ** 10", "{}", "1024"),
        ("2 ** -2", "{}", "0.25"),
        ("-2 ** 2", "{}", "4"),
        ("2 ** 3 ** 2", "{}", "64"),
        ("4 ** 0.5", "{}", "2"),
        ("0 ** 0", "{}", "1"),
        ("1.1 ** 100", "{}", "13780.61233982227018411833717208964"),
        ("10 ** 10000", "{}", "error: calculate: the number is out of range"),
        ("99999999999999999999999999999999999 + 1", "{}", "100000000000000000000000000000000000"),
        ("12345678901234567890123456789012345 + 0", "{}", "12345678901234567890123456789012340"),
        ("2 + 3 * 4 - 6 / 2", "{}", "11"),
        ("(2 + 3) * 4", "{}", "20"),
        ("10 - 2 - 3", "{}", "5"),
        ("--3", "{}", "3"),
        ("- x", r#"{"x": 3}"#, "-3"),
        ("1 - -1", "{}", "2"),
        ("1e", r#"{"e": 1}"#, "parse error: an operator or the end is expected, found 'e' (at offset 1)"),
        ("1000000000000000000000 * 1000000000000000000000", "{}", "1e42"),
        ("0.000001 * 0.000001", "{}", "0.000000000001"),
        ("1 + \"a\"", "{}", "null"),
        ("null + 1", "{}", "null"),
    ]);
}

#[test]
fn strings_and_comparison() {
    check(&[
        (r#""a" + "b""#, "{}", r#""ab""#),
        (r#""a" + 1"#, "{}", "null"),
        (r#""a" + string(1)"#, "{}", r#""a1""#),
        ("1 < 2", "{}", "true"),
        ("2 <= 2", "{}", "true"),
        ("3 > 4", "{}", "false"),
        ("3 != 4", "{}", "true"),
        (r#""a" < "b""#, "{}", "true"),
        ("x = null", "{}", "true"),
        ("x != null", r#"{"x": 1}"#, "true"),
        ("null = null", "{}", "true"),
        ("1 = \"1\"", "{}", "null"),
        ("1 != \"1\"", "{}", "null"),
        ("x < 1", "{}", "null"),
        ("x > 1", r#"{"x": "2"}"#, "null"),
        ("true = true", "{}", "true"),
        ("true < false", "{}", "null"),
        ("[1, 2] = [1, 2.0]", "{}", "true"),
        ("[1, 2] = [1, \"2\"]", "{}", "false"),
        ("{a: 1, b: 2} = {b: 2, a: 1}", "{}", "true"),
        ("{a: 1} = {a: 1, b: 2}", "{}", "false"),
        ("5 between 1 and 10", "{}", "true"),
        ("5 between 6 and 10", "{}", "false"),
        ("x between 6 and 10", "{}", "null"),
        ("5 between 1 and 10 and false", "{}", "false"),
        ("1 < 2 and 2 < 3", "{}", "true"),
    ]);
}

#[test]
fn membership() {
    check(&[
        ("5 in [1..10]", "{}", "true"),
        ("1 in (1..10]", "{}", "false"),
        ("10 in [1..10)", "{}", "false"),
        ("1 in ]1..10[", "{}", "false"),
        ("5 in (1..10)", "{}", "true"),
        ("\"a\" in [1..10]", "{}", "null"),
        ("5 in (1, 5)", "{}", "true"),
        ("5 in (1, 4)", "{}", "false"),
        ("5 in [1, 5]", "{}", "true"),
        ("5 in > 3", "{}", "true"),
        ("5 in (> 6, < 3)", "{}", "false"),
        ("5 in (> 6, [4..5])", "{}", "true"),
        ("x in list", r#"{"x": "b", "list": ["a", "b"]}"#, "true"),
        ("x in (\"a\", \"b\")", r#"{"x": "c"}"#, "false"),
        ("x in (null)", "{}", "true"),
        ("5 in (? > 4)", "{}", "true"),
        ("5 in 5 and true", "{}", "true"),
        ("5 in ? < 10", "{}", "true"),
        ("5 in (> 6, ? < 3, 1)", "{}", "false"),
        ("date(\"2024-02-01\") in [date(\"2024-01-01\")..date(\"2024-03-01\")]", "{}", "true"),
        ("[1..5].start", "{}", "1"),
        ("[1..5]", "{}", "json error: write a range as JSON"),
    ]);
}

#[test]
fn three_valued_logic() {
    check(&[
        ("true and true", "{}", "true"),
        ("true and x", "{}", "null"),
        ("false and x", "{}", "false"),
        ("x and false", "{}", "false"),
        ("true or x", "{}", "true"),
        ("x or true", "{}", "true"),
        ("false or x", "{}", "null"),
        ("1 and true", "{}", "null"),
        ("true or false and false", "{}", "true"),
        ("not(true)", "{}", "false"),
        ("not(x)", "{}", "null"),
        ("not(a = 1) and b", r#"{"a": 2, "b": true}"#, "true"),
        ("if true then 1 else 2", "{}", "1"),
        ("if x then 1 else 2", "{}", "2"),
        ("if 1 then 1 else 2", "{}", "2"),
        ("if (a > 1) then \"big\" else if a = 1 then \"one\" else \"small\"", r#"{"a": 1}"#, "\"one\""),
        ("if a then b else c + 1", r#"{"c": 1}"#, "2"),
        ("all([true, false])", "{}", "false"),
        ("and(true, null)", "{}", "null"),
        ("any(false, true)", "{}", "true"),
        ("or([])", "{}", "false"),
        ("1 instance of number", "{}", "true"),
        ("\"a\" instance of number", "{}", "false"),
        ("null instance of Any", "{}", "false"),
        ("duration(\"P1D\") instance of days and time duration", "{}", "true"),
        ("now() instance of date and time", "{}", "true"),
    ]);
}

#[test]
fn lists_filters_and_loops() {
    check(&[
        ("[]", "{}", "[]"),
        ("[1, \"a\", [2]]", "{}", "[1,\"a\",[2]]"),
        ("[1,2,3][1]", "{}", "1"),
        ("[1,2,3][-1]", "{}", "3"),
        ("[1,2,3][0]", "{}", "null"),
        ("[1,2,3][4]", "{}", "null"),
        ("[1,2,3][i]", r#"{"i": 2}"#, "2"),
        ("[1,2,3][item > 1]", "{}", "[2,3]"),
        ("[1,2,3][item > 9]", "{}", "[]"),
        ("[1,2,3][even(item)]", "{}", "[2]"),
        ("[1,2,3][count(xs)]", r#"{"xs": [0, 0]}"#, "2"),
        ("xs[a = 1]", r#"{"xs": [{"a": 1, "b": 2}, {"a": 2}]}"#, r#"[{"a":1,"b":2}]"#),
        ("xs[a = 1].b", r#"{"xs": [{"a": 1, "b": 2}, {"a": 2}]}"#, "[2]"),
        ("xs[a = 1][1].b", r#"{"xs": [{"a": 1, "b": 2}, {"a": 2}]}"#, "2"),
        ("xs[item.a = y]", r#"{"xs": [{"a": 1}, {"a": 2}], "y": 2}"#, r#"[{"a":2}]"#),
        ("xs[a > 1 and b]", r#"{"xs": [{"a": 2, "b": true}, {"a": 2}]}"#, r#"[{"a":2,"b":true}]"#),
        ("xs[ok]", r#"{"xs": [{"ok": true, "n": 1}, {"ok": false, "n": 2}]}"#, r#"[{"ok":true,"n":1}]"#),
        ("[[1,2],[3]][1][2]", "{}", "2"),
        ("5[1]", "{}", "null"),
        ("x[1]", "{}", "null"),
        ("[][item > 1]", "{}", "[]"),
        ("for x in [1,2,3] return x * 2", "{}", "[2,4,6]"),
        ("for i in 1..4 return i", "{}", "[1,2,3,4]"),
        ("for i in 3..1 return i", "{}", "[3,2,1]"),
        ("for i in 1..count(xs) return xs[i]", r#"{"xs": ["a","b"]}"#, "[\"a\",\"b\"]"),
        ("for x in [1,2], y in [10,20] return x + y", "{}", "[11,21,12,22]"),
        ("for x in xs return {n: x.n, y: y}", r#"{"xs": [{"n": 1}], "y": 2}"#, r#"[{"n":1,"y":2}]"#),
        ("for x in y return x", "{}", "null"),
        ("for i in [1..3] return i", "{}", "[1,2,3]"),
        ("for x in 1..5 return if (x = 1) then 1 else x + sum(partial)", "{}", "[1,3,7,15,31]"),
        ("for i in 1..6 return if (i <= 2) then 1 else partial[-1] + partial[-2]", "{}", "[1,1,2,3,5,8]"),
        ("for i in 1..3 return partial", "{}", "[[],[[]],[[],[[]]]]"),
        ("some x in [1,2,3] satisfies x > 2", "{}", "true"),
        ("every x in [1,2,3] satisfies x > 2", "{}", "false"),
        ("every x in [] satisfies x > 2", "{}", "true"),
        ("some x in [] satisfies x > 2", "{}", "false"),
        ("some x in [1, \"a\"] satisfies x > 2", "{}", "null"),
        ("some x in [1,2], y in [2,3] satisfies x = y", "{}", "true"),
        ("sort([3,1,2], function(a, b) a < b)", "{}", "[1,2,3]"),
        ("sort(list: [{n: 1}, {n: 3}, {n: 2}], precedes: function(x, y) x.n > y.n).n", "{}", "[3,2,1]"),
        ("sort([1,2], function(a, b) a)", "{}", "null"),
    ]);
}

#[test]
fn contexts() {
    check(&[
        ("{}", "{}", "{}"),
        (
            "{a: 1, \"b c\": 2, d e: 3, content-type: 4, `f g`: 5}",
            "{}",
            r#"{"a":1,"b c":2,"d e":3,"content-type":4,"f g":5}"#,
        ),
        ("{a: 1, b: a + 1, c: a + b}", "{}", r#"{"a":1,"b":2,"c":3}"#),
        ("{a: x}.a", r#"{"x": 1}"#, "1"),
        ("{z: 1, a: 2}", "{}", r#"{"z":1,"a":2}"#),
        ("{a: 1, a: 2}", "{}", r#"{"a":2}"#),
        ("{a: {b: {c: [1, {d: 2}]}}}", "{}", r#"{"a":{"b":{"c":[1,{"d":2}]}}}"#),
        ("{if: 1, null: 2, for: 3}", "{}", r#"{"if":1,"null":2,"for":3}"#),
        ("get value({a: 1}, \"a\")", "{}", "1"),
        ("get value({a: {b: 1}}, [\"a\", \"b\"])", "{}", "1"),
        ("get value({a: 1}, \"x\")", "{}", "null"),
        ("get entries({a: 1})", "{}", r#"[{"key":"a","value":1}]"#),
        ("context put({a: 1}, \"b\", 2)", "{}", r#"{"a":1,"b":2}"#),
        ("context put({a: 1}, \"a\", 2)", "{}", r#"{"a":2}"#),
        ("context put({a: {b: 1}}, [\"a\", \"c\"], 2)", "{}", r#"{"a":{"b":1,"c":2}}"#),
        ("context put(context: {}, key: \"x\", value: 1)", "{}", r#"{"x":1}"#),
        ("context merge({a: 1}, {b: 2})", "{}", r#"{"a":1,"b":2}"#),
        ("context merge([{a: 1}, {a: 3}])", "{}", r#"{"a":3}"#),
        ("context([{key: \"a\", value: 1}])", "{}", r#"{"a":1}"#),
    ]);
}

#[test]
fn functions_on_values_and_strings() {
    check(&[
        ("is defined(x)", "{}", "false"),
        ("is defined(x.y)", r#"{"x": {"y": 1}}"#, "true"),
        ("get or else(x, 1)", "{}", "1"),
        ("string(1.0)", "{}", "\"1\""),
        ("string(true)", "{}", "\"true\""),
        ("string(null)", "{}", "null"),
        ("string([1, \"a\"])", "{}", r#""[1, \"a\"]""#),
        ("string({a: 1})", "{}", "\"{a:1}\""),
        ("string(date(\"2024-01-02\"))", "{}", "\"2024-01-02\""),
        ("number(\"1.5\")", "{}", "1.5"),
        ("number(\"1 000,5\", \" \", \",\")", "{}", "1000.5"),
        ("number(\"x\")", "{}", "null"),
        ("substring(\"foobar\", 3)", "{}", "\"obar\""),
        ("substring(\"foobar\", 3, 3)", "{}", "\"oba\""),
        ("substring(\"foobar\", -2, 1)", "{}", "\"a\""),
        ("substring(\"äöü\", 2, 1)", "{}", "\"ö\""),
        ("substring(string: \"foobar\", start position: 3, length: 2)", "{}", "\"ob\""),
        ("substring before(\"foobar\", \"bar\")", "{}", "\"foo\""),
        ("substring before(\"foobar\", \"x\")", "{}", "\"\""),
        ("substring after(\"foobar\", \"ob\")", "{}", "\"ar\""),
        ("substring after(\"foobar\", \"\")", "{}", "\"foobar\""),
        ("string length(\"foo\")", "{}", "3"),
        ("upper case(\"aBc\")", "{}", "\"ABC\""),
        ("lower case(\"aBc\")", "{}", "\"abc\""),
        ("contains(\"foobar\", \"ob\")", "{}", "true"),
        ("starts with(\"foobar\", \"fo\")", "{}", "true"),
        ("ends with(\"foobar\", \"fo\")", "{}", "false"),
        ("trim(\"  a b \")", "{}", "\"a b\""),
        ("is blank(\" \")", "{}", "true"),
        ("matches(\"foobar\", \"^fo*b\")", "{}", "true"),
        (r#"matches("a1", "\d")"#, "{}", "true"),
        (r#"matches("a1", "^\\w\\d$")"#, "{}", "true"),
        ("matches(\"FOO\", \"foo\", \"i\")", "{}", "true"),
        ("matches(\"a\", \"(?=a)\")", "{}", "null"),
        ("replace(\"abcd\", \"(ab)|(a)\", \"[1=$1][2=$2]\")", "{}", "\"[1=ab][2=]cd\""),
        ("replace(\"0123456789\", \"(\\d{3})(\\d{3})(\\d{4})\", \"($1) $2-$3\")", "{}", "\"(012) 345-6789\""),
        ("replace(\"a-b-c\", \"-\", \"\")", "{}", "\"abc\""),
        ("replace(\"a\", \"a\", \"$9\")", "{}", "null"),
        ("split(\"a;b;;c\", \";\")", "{}", r#"["a","b","","c"]"#),
        ("split(\"John Doe\", \"\\s\")", "{}", r#"["John","Doe"]"#),
        ("extract(\"a1b22\", \"[0-9]+\")", "{}", r#"["1","22"]"#),
        ("string join([\"a\", null, \"b\"], \", \")", "{}", "\"a, b\""),
        ("string join([\"a\", \"b\"])", "{}", "\"ab\""),
        ("string join([\"a\"], \",\", \"<\", \">\")", "{}", "\"<a>\""),
        ("string join([1])", "{}", "null"),
        ("fromAi(toolCall.q, \"the question\", \"string\")", r#"{"toolCall": {"q": "hm"}}"#, "\"hm\""),
        ("fromAi(value: x, description: \"d\")", r#"{"x": 1}"#, "1"),
        ("upper case(1)", "{}", "null"),
        ("assert(x, x != null, \"x is missing\")", "{}", "error: x is missing"),
        ("from json(\"{\\\"a\\\": [1.0]}\")", "{}", r#"{"a":[1.0]}"#),
        ("to json({a: [1]})", "{}", r#""{\"a\":[1]}""#),
        ("to base64(\"Camunda\") + to base64(\"FEEL\") + to base64(\"é\")", "{}", "\"Q2FtdW5kYQ==RkVFTA==w6k=\""),
        ("from base64(\"Q2FtdW5kYQ==\") + from base64(\"RkVFTA\")", "{}", "\"CamundaFEEL\""),
        ("from base64(\"!!!\")", "{}", "null"),
        ("uuid() = uuid()", "{}", "false"),
        ("matches(uuid(), \"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$\")", "{}", "true"),
    ]);
}

#[test]
fn functions_on_lists_and_numbers() {
    check(&[
        ("list contains([1,2], 2)", "{}", "true"),
        ("list contains(list: [1], element: \"1\")", "{}", "false"),
        ("list contains([null], null)", "{}", "true"),
        ("append([1], 2, 3)", "{}", "[1,2,3]"),
        ("append(xs, {a: 1})", r#"{"xs": []}"#, r#"[{"a":1}]"#),
        ("append(xs, 1)", "{}", "null"),
        ("concatenate([1],[2,3])", "{}", "[1,2,3]"),
        ("is empty([])", "{}", "true"),
        ("is empty(x)", "{}", "null"),
        ("count([1,null])", "{}", "2"),
        ("min([3,1,2])", "{}", "1"),
        ("max(3,1,2)", "{}", "3"),
        ("max([])", "{}", "null"),
        ("min([1,\"a\"])", "{}", "null"),
        ("max([\"a\",\"b\"])", "{}", "\"b\""),
        ("sum([0.1,0.2])", "{}", "0.3"),
        ("sum(1,2,3)", "{}", "6"),
        ("sum([])", "{}", "null"),
        ("sum(xs.price)", r#"{"xs": [{"price": 1.10}, {"price": 2.20}]}"#, "3.3"),
        ("mean([1,2,4])", "{}", "2.333333333333333333333333333333333"),
        ("median([8,2,5,3])", "{}", "4"),
        ("stddev(2,4,7,5)", "{}", "2.081665999466132735282297706979931"),
        ("mode([6,1,9,6,1])", "{}", "[1,6]"),
        ("product([2,3,4])", "{}", "24"),
        ("reverse([1,2])", "{}", "[2,1]"),
        ("sublist([1,2,3], 2)", "{}", "[2,3]"),
        ("sublist([1,2,3], -2, 1)", "{}", "[2]"),
        ("insert before([1,3], 2, 2)", "{}", "[1,2,3]"),
        ("remove([1,2,3], 2)", "{}", "[1,3]"),
        ("distinct values([1,2,1,1.0])", "{}", "[1,2]"),
        ("duplicate values([1,2,1,3,2])", "{}", "[1,2]"),
        ("flatten([[1,[2]],3])", "{}", "[1,2,3]"),
        ("index of([1,2,1], 1)", "{}", "[1,3]"),
        ("union([1,2],[2,3])", "{}", "[1,2,3]"),
        ("partition([1,2,3], 2)", "{}", "[[1,2],[3]]"),
        ("floor(1.5)", "{}", "1"),
        ("floor(-1.5)", "{}", "-2"),
        ("ceiling(1.2)", "{}", "2"),
        ("floor(1.56, 1)", "{}", "1.5"),
        ("decimal(2.5, 0)", "{}", "2"),
        ("decimal(1/3, 2)", "{}", "0.33"),
        ("decimal(2.5, 0, \"half_up\")", "{}", "3"),
        ("round up(-1.126, 2)", "{}", "-1.13"),
        ("round down(1.126, 2)", "{}", "1.12"),
        ("round half up(5.5, 0)", "{}", "6"),
        ("round half up(0.04, 0)", "{}", "0"),
        ("round half down(5.5, 0)", "{}", "5"),
        ("round up(0.001, 0)", "{}", "1"),
        ("round half up(1234, -2)", "{}", "1200"),
        ("abs(-3)", "{}", "3"),
        ("modulo(12, 5)", "{}", "2"),
        ("modulo(-12, 5)", "{}", "3"),
        ("modulo(12, -5)", "{}", "-3"),
        ("modulo(10.1, 4.5)", "{}", "1.1"),
        ("modulo(1, 0)", "{}", "null"),
        ("odd(3)", "{}", "true"),
        ("odd(-3)", "{}", "true"),
        ("even(2)", "{}", "true"),
        ("sqrt(16)", "{}", "4"),
        ("sqrt(2)", "{}", "1.414213562373095048801688724209698"),
        ("exp(0)", "{}", "1"),
        ("log(1)", "{}", "0"),
        ("random number() < 1", "{}", "true"),
    ]);
}

#[test]
fn dates_times_and_durations() {
    check(&[
        ("now()", "{}", "\"2024-06-01T12:34:56.789Z\""),
        ("today()", "{}", "\"2024-06-01\""),
        ("today() + duration(\"P1D\")", "{}", "\"2024-06-02\""),
        ("now() + duration(\"PT1H30M\")", "{}", "\"2024-06-01T14:04:56.789Z\""),
        ("@\"2024-01-31\" + @\"P1M\"", "{}", "\"2024-02-29\""),
        ("@\"P1M\" + @\"2024-01-31\"", "{}", "\"2024-02-29\""),
        ("date(\"2024-13-01\")", "{}", "null"),
        ("date(2024, 2, 29)", "{}", "\"2024-02-29\""),
        ("date(date and time(\"2024-02-29T10:00:00Z\"))", "{}", "\"2024-02-29\""),
        ("date(\"2024-03-01\") - date(\"2024-02-01\")", "{}", "\"P29D\""),
        ("(date(\"2024-03-01\") - date(\"2024-02-01\")).days", "{}", "29"),
        ("date(\"2024-03-01\") > date(\"2024-02-01\")", "{}", "true"),
        ("date(\"2024-03-01\").year", "{}", "2024"),
        ("today().weekday", "{}", "6"),
        ("date and time(\"2024-01-01T00:00:00+02:00\")", "{}", "\"2024-01-01T00:00:00+02:00\""),
        ("date and time(\"2024-01-01T00:00\")", "{}", "\"2024-01-01T00:00:00\""),
        ("date and time(\"2024-07-01T00:00:00@Europe/Berlin\")", "{}", "\"2024-07-01T00:00:00+02:00[Europe/Berlin]\""),
        ("string(date and time(\"2024-07-01T00:00:00@Europe/Berlin\"))", "{}", "\"2024-07-01T00:00:00@Europe/Berlin\""),
        ("@\"2024-07-01T00:00:00@Europe/Berlin\" = @\"2024-06-30T22:00:00Z\"", "{}", "true"),
        ("date and time(@\"2024-01-01\", @\"10:00:00\")", "{}", "\"2024-01-01T10:00:00\""),
        ("date and time(@\"2024-07-01T12:00:00Z\", \"Europe/Berlin\").hour", "{}", "14"),
        ("date and time(\"2024-01-01T00:00:00@Moon/Base\")", "{}", "null"),
        ("time(\"10:30:00\") + duration(\"PT14H\")", "{}", "\"00:30:00\""),
        ("time(10, 30, 0)", "{}", "\"10:30:00\""),
        ("time(\"10:30:00+01:00\").time offset", "{}", "\"PT1H\""),
        ("time(\"25:00:00\")", "{}", "null"),
        ("time(\"T10:30:00\")", "{}", "\"10:30:00\""),
        ("duration(\"PT90M\")", "{}", "\"PT1H30M\""),
        ("duration(\"P14M\")", "{}", "\"P1Y2M\""),
        ("duration(\"P1Y1D\")", "{}", "null"),
        ("duration(\"-PT1.5S\")", "{}", "\"-PT1.5S\""),
        ("duration(\"P2W\")", "{}", "\"P14D\""),
        ("duration(\"PT\")", "{}", "null"),
        ("duration(\"PT1H\") * 3", "{}", "\"PT3H\""),
        ("duration(\"PT1H\") / 4", "{}", "\"PT15M\""),
        ("duration(\"P1D\") / duration(\"PT6H\")", "{}", "4"),
        ("duration(\"PT1H\") + duration(\"PT1M\") < duration(\"PT2H\")", "{}", "true"),
        ("-duration(\"P1D\")", "{}", "\"-P1D\""),
        ("abs(duration(\"-P1D\"))", "{}", "\"P1D\""),
        ("duration(\"P1DT2H3M4S\").minutes", "{}", "3"),
        ("years and months duration(@\"2011-12-22\", @\"2013-08-24\")", "{}", "\"P1Y8M\""),
        ("day of week(@\"2019-09-17\")", "{}", "\"Tuesday\""),
        ("month of year(@\"2019-09-17\")", "{}", "\"September\""),
        ("day of year(@\"2019-09-17\")", "{}", "260"),
        ("week of year(@\"2019-09-17\")", "{}", "38"),
        ("last day of month(@\"2024-02-01\")", "{}", "\"2024-02-29\""),
        ("@\"nonsense\"", "{}", "null"),
    ]);
}

#[test]
fn ranges() {
    check(&[
        ("before(1, 10)", "{}", "true"),
        ("before(1, [1..10])", "{}", "false"),
        ("before(1, (1..10])", "{}", "true"),
        ("before([1..10), 10)", "{}", "true"),
        ("before([1..5], [5..10])", "{}", "false"),
        ("after([5..10], [1..5))", "{}", "true"),
        ("meets([1..5], [5..10])", "{}", "true"),
        ("meets([1..5), [5..10])", "{}", "false"),
        ("met by([5..10], [1..5])", "{}", "true"),
        ("overlaps([1..5], [3..8])", "{}", "true"),
        ("overlaps([1..5), [5..8])", "{}", "false"),
        ("overlaps before([1..5], [3..8])", "{}", "true"),
        ("overlaps after([3..8], [1..5])", "{}", "true"),
        ("finishes(10, [1..10])", "{}", "true"),
        ("finishes(10, [1..10))", "{}", "false"),
        ("finished by([1..10], [5..10])", "{}", "true"),
        ("includes([1..10], 5)", "{}", "true"),
        ("includes([1..10), 10)", "{}", "false"),
        ("during([2..3], [1..10])", "{}", "true"),
        ("starts([1..5], [1..10])", "{}", "true"),
        ("started by([1..10], 1)", "{}", "true"),
        ("coincides([1..5], [1..5])", "{}", "true"),
        ("coincides(3, 4)", "{}", "false"),
        ("includes(5, 5)", "{}", "null"),
        ("before(1, @\"2024-01-01\")", "{}", "null"),
        ("before(point: 1, range: [5..6])", "{}", "true"),
    ]);
}

#[test]
fn refusals_name_the_place() {
    check(&[
        ("foo(1)", "{}", "parse error: unknown function 'foo' (at offset 0)"),
        ("1 + list contain([1], 1)", "{}", "parse error: unknown function 'list contain' (at offset 4)"),
        ("count()", "{}", "parse error: function 'count' does not take 0 arguments (at offset 7)"),
        ("count(x: 1)", "{}", "parse error: function 'count' does not take these named arguments (at offset 11)"),
        ("", "{}", "parse error: a value is expected, found the end (at offset 0)"),
        ("1 +", "{}", "parse error: a value is expected, found the end (at offset 3)"),
        ("(1", "{}", "parse error: ')' is expected, found the end (at offset 2)"),
        ("\"abc", "{}", "parse error: the string does not end (at offset 0)"),
        ("a b", "{}", "parse error: an operator or the end is expected, found 'b' (at offset 2)"),
        ("if a then b", "{}", "parse error: 'else' is expected, found the end (at offset 11)"),
        ("a # b", "{}", "parse error: an operator or the end is expected, found '#' (at offset 2)"),
        ("/* x", "{}", "parse error: the comment does not end (at offset 0)"),
    ]);
}

#[test]
fn variables_are_the_free_names() {
    let names = |source: &str| Expression::parse(source).expect(source).variables().join(" ");
    let rows = [
        ("1", ""),
        ("b.c + a[1] + b", "a b"),
        ("for x in xs return x + y", "xs y"),
        ("for x in x return x", "x"),
        ("some x in xs, y in x.ys satisfies y = z", "xs z"),
        ("{a: 1, b: a + c}", "c"),
        ("{a: a}", "a"),
        ("xs[price > limit and item.ok]", "limit price xs"),
        ("v in (a, > b)", "a b v"),
        ("sort(xs, function(l, r) l < r + q)", "q xs"),
        ("if a then b else c", "a b c"),
        ("now() + d", "d"),
        ("for x in xs return partial", "xs"),
        ("partial + 1", "partial"),
        ("for x in partial return for y in partial return x", "partial"),
    ];
    for (source, expected) in rows {
        assert_eq!(names(source), expected, "{source}");
    }
}
