//! The dialect as a table: an expression, its variables as JSON, its value as JSON. Next: `functions.rs`.
//! Rows marked "Camunda" are where the dialect differs from the DMN standard.

use wf_feel::Expression;

use crate::support::check;

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
