//! What the text of a FEEL expression tells about the values that it expects: the paths that it reads, and for each
//! the literals that it is compared with and the operators around it. A rough reading: whether a value fits is then
//! tried by evaluating the expression (`guess.rs`).

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wf_feel::Expression;

/// A variable's name, and the members below it.
pub type Path = Vec<String>;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Text(String),
    Number(String),
    Name(String),
    Sign(&'static str),
}

const SIGNS: [&str; 22] = [
    "<=", ">=", "!=", "..", "**", "->", "=", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", "+", "-", "*", "/",
];

/// Values worth a try for each path, the likeliest first.
pub fn hints(expression: &Expression) -> BTreeMap<Path, Vec<Value>> {
    let tokens = tokens(expression.source());
    let mut hints = direct_hints(expression, &tokens);
    for (item, list) in item_names(&tokens) {
        let members = members_of(&tokens, &item);
        hints.entry(list).or_default().splice(0..0, [json!([members, members, members])]);
    }
    let literals = tokens.iter().filter_map(|token| match token {
        Token::Text(text) => Some(json!(text)),
        _ => None,
    });
    let literals: Vec<Value> = literals.collect();
    hints.values_mut().for_each(|values| values.extend(literals.clone()));
    hints
}

/// `some x in order.lines`: the item's name and the list's path.
fn item_names(tokens: &[Token]) -> Vec<(String, Path)> {
    let windows = tokens.windows(4).enumerate().filter_map(|(at, window)| match window {
        [Token::Name(word), Token::Name(item), Token::Name(of), Token::Name(_)]
            if matches!(word.as_str(), "some" | "every" | "for") && of == "in" =>
        {
            Some((item.clone(), path(tokens, at + 3).0))
        }
        _ => None,
    });
    windows.collect()
}

/// An item as the expression uses it: a context where it reads members, else a number.
fn members_of(tokens: &[Token], item: &str) -> Value {
    let mut members = serde_json::Map::new();
    for at in 0..tokens.len() {
        if !matches!(tokens.get(at), Some(Token::Name(name)) if name == item) {
            continue;
        }
        let (path, end) = path(tokens, at);
        if let Some(member) = path.get(1) {
            let value = around(tokens, at, end).into_iter().next().unwrap_or_else(|| json!(1));
            members.insert(member.clone(), value);
        }
    }
    if members.is_empty() { json!(1) } else { Value::Object(members) }
}

/// The parts that must all be true, for each of the ways in which the condition can be: its `or` and `and` outside of
/// any bracket, taken apart.
pub fn ways(condition: &Expression) -> Vec<Vec<Expression>> {
    let parse = |source: &str| Expression::parse(source.trim()).ok();
    let way = |source: &str| split(source, "and").iter().filter_map(|part| parse(part)).collect();
    split(condition.source(), "or").iter().map(|source| way(source)).collect()
}

fn split<'s>(source: &'s str, word: &str) -> Vec<&'s str> {
    let (mut parts, mut begin, mut depth, mut in_text) = (Vec::new(), 0, 0_i32, false);
    for (at, c) in source.char_indices() {
        match c {
            '"' => in_text = !in_text,
            '(' | '[' | '{' if !in_text => depth += 1,
            ')' | ']' | '}' if !in_text => depth -= 1,
            ' ' | '\n' | '\t' if !in_text && depth == 0 => {
                let rest = source.get(at + 1..).unwrap_or_default();
                let tail = rest.strip_prefix(word).filter(|tail| tail.starts_with([' ', '\n', '\t', '(']));
                // The `and` of a range is not one between conditions.
                let so_far = source.get(begin..at).unwrap_or_default();
                if let Some(tail) = tail.filter(|_| !(word == "and" && so_far.trim_end().contains(" between "))) {
                    parts.push(so_far);
                    begin = source.len() - tail.len();
                }
            }
            _ => (),
        }
    }
    parts.push(source.get(begin..).unwrap_or_default());
    parts
}

fn direct_hints(expression: &Expression, tokens: &[Token]) -> BTreeMap<Path, Vec<Value>> {
    let is_variable = |name: &str| expression.variables().iter().any(|variable| **variable == *name);
    let mut hints: BTreeMap<Path, Vec<Value>> = BTreeMap::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let follows_dot = at > 0 && tokens.get(at - 1) == Some(&Token::Sign("."));
        match token {
            Token::Name(name) if is_variable(name) && !follows_dot => {
                let (path, end) = path(tokens, at);
                let found = around(tokens, at, end);
                hints.entry(path).or_default().extend(found);
                at = end;
            }
            _ => at += 1,
        }
    }
    hints
}

/// `a.b.c` from its first name on, and where it ends.
fn path(tokens: &[Token], begin: usize) -> (Path, usize) {
    let mut path = Path::new();
    let mut at = begin;
    while let Some(Token::Name(name)) = tokens.get(at) {
        path.push(name.clone());
        at += 1;
        if tokens.get(at) != Some(&Token::Sign(".")) {
            break;
        }
        at += 1;
    }
    (path, at)
}

/// What stands to the left and to the right of a path.
fn around(tokens: &[Token], begin: usize, end: usize) -> Vec<Value> {
    let before = begin.checked_sub(1).and_then(|at| tokens.get(at));
    let mut values = match (before, tokens.get(end)) {
        (_, Some(Token::Sign(sign))) if is_comparison(sign) => near(sign, tokens.get(end + 1)),
        (Some(Token::Sign(sign)), _) if is_comparison(sign) && begin >= 2 => near(sign, tokens.get(begin - 2)),
        (_, Some(Token::Name(word))) if word == "in" || word == "between" => following(tokens, end + 1),
        (Some(Token::Name(word)), _) if word == "in" => vec![json!([1, 2, 3])],
        (_, Some(Token::Sign("["))) => vec![json!([1, 2, 3])],
        (_, Some(Token::Sign("-" | "*" | "/" | "**"))) => vec![json!(1)],
        (Some(Token::Sign("-" | "*" | "/" | "**")), _) => vec![json!(1)],
        (Some(Token::Sign("(")), _) => argument(tokens, begin),
        _ => Vec::new(),
    };
    if let (_, Some(Token::Sign("+"))) | (Some(Token::Sign("+")), _) = (before, tokens.get(end)) {
        values.extend([json!("text"), json!(1)]);
    }
    values
}

fn is_comparison(sign: &str) -> bool {
    matches!(sign, "=" | "!=" | "<" | "<=" | ">" | ">=")
}

/// A value that makes the comparison true, then ones that make it false.
fn near(sign: &str, other: Option<&Token>) -> Vec<Value> {
    match other {
        Some(Token::Text(text)) => vec![json!(text), json!("another text")],
        Some(Token::Name(word)) if word == "true" || word == "false" => {
            vec![json!(word == "true"), json!(word != "true")]
        }
        Some(Token::Name(word)) if word == "null" => vec![Value::Null, json!("text")],
        Some(Token::Number(digits)) => numbers(sign, digits),
        _ => Vec::new(),
    }
}

fn numbers(sign: &str, digits: &str) -> Vec<Value> {
    let Ok(number) = digits.parse::<f64>() else { return Vec::new() };
    let as_json = |number: f64| if number.fract() == 0.0 { json!(number as i64) } else { json!(number) };
    let order = match sign {
        "<" | "<=" => [number - 1.0, number, number + 1.0],
        ">" | ">=" => [number + 1.0, number, number - 1.0],
        _ => [number, number + 1.0, number - 1.0],
    };
    order.map(as_json).to_vec()
}

/// Literals of a list or range that comes next.
fn following(tokens: &[Token], from: usize) -> Vec<Value> {
    let literals = tokens.iter().skip(from).take(12).filter_map(|token| match token {
        Token::Text(text) => Some(json!(text)),
        Token::Number(digits) => serde_json::from_str(digits).ok(),
        _ => None,
    });
    literals.collect()
}

/// What a function of that name wants to have.
fn argument(tokens: &[Token], begin: usize) -> Vec<Value> {
    // Names of functions have several words: the last one is telling enough.
    let Some(Token::Name(word)) = begin.checked_sub(2).and_then(|at| tokens.get(at)) else { return Vec::new() };
    match word.as_str() {
        "count" | "sum" | "min" | "max" | "mean" | "append" | "concatenate" | "reverse" | "all" | "any" | "values"
        | "join" | "contains" | "empty" => vec![json!([1, 2, 3]), json!([]), json!("text")],
        "duration" => vec![json!("PT1S")],
        "time" => vec![json!("2026-01-01T00:00:00Z")],
        "date" => vec![json!("2026-01-01")],
        "number" => vec![json!("1")],
        "defined" => vec![json!("text"), Value::Null],
        "not" => vec![json!(false), json!(true)],
        "abs" | "floor" | "ceiling" | "round" | "modulo" | "odd" | "even" | "sqrt" => vec![json!(1)],
        "case" | "length" | "split" | "replace" | "substring" | "with" | "trim" | "before" | "after" => {
            vec![json!("text")]
        }
        _ => Vec::new(),
    }
}

fn tokens(source: &str) -> Vec<Token> {
    let (mut tokens, mut rest) = (Vec::new(), source.trim_start());
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '"' => text(rest),
            '`' => quoted_name(rest),
            '0'..='9' => (Some(Token::Number(number(rest))), 0),
            c if c.is_alphabetic() || c == '_' => {
                (Some(Token::Name(taken(rest, |c| c.is_alphanumeric() || c == '_'))), 0)
            }
            _ => sign(rest),
        };
        let length = match (&token, length) {
            (Some(Token::Number(text) | Token::Name(text)), 0) => text.len(),
            (_, length) => length.max(first.len_utf8()),
        };
        tokens.extend(token);
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    tokens
}

/// `10..20` is a range of two.
fn number(rest: &str) -> String {
    let whole = taken(rest, |c| c.is_ascii_digit());
    let fraction = rest.get(whole.len()..).and_then(|rest| rest.strip_prefix('.')).unwrap_or_default();
    match taken(fraction, |c| c.is_ascii_digit()) {
        digits if digits.is_empty() => whole,
        digits => format!("{whole}.{digits}"),
    }
}

fn taken(rest: &str, belongs: impl Fn(char) -> bool) -> String {
    rest.chars().take_while(|c| belongs(*c)).collect()
}

fn text(rest: &str) -> (Option<Token>, usize) {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => {
                let literal = rest.get(..=at).and_then(|literal| serde_json::from_str(literal).ok());
                return (literal.map(Token::Text), at + 1);
            }
            _ => escaped = c == '\\' && !escaped,
        }
    }
    (None, rest.len())
}

fn quoted_name(rest: &str) -> (Option<Token>, usize) {
    let name = taken(rest.get(1..).unwrap_or_default(), |c| c != '`');
    let length = name.len() + 2;
    (Some(Token::Name(name)), length)
}

fn sign(rest: &str) -> (Option<Token>, usize) {
    let found = SIGNS.iter().find(|sign| rest.starts_with(**sign));
    (found.map(|sign| Token::Sign(sign)), found.map_or(0, |sign| sign.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> String {
        let expression = Expression::parse(source).unwrap();
        let shown = hints(&expression)
            .into_iter()
            .map(|(path, values)| format!("{}: {}", path.join("."), Value::Array(values)));
        shown.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn texts_tell_values() {
        for (source, expected) in [
            ("x > 5", "x: [6,5,4]"),
            ("5 > x", "x: [6,5,4]"),
            (
                r#"order.state = "paid" and approved = true"#,
                r#"approved: [true,false,"paid"]; order.state: ["paid","another text","paid"]"#,
            ),
            ("amount in [10..20]", "amount: [10,20]"),
            (r#"kind in ("a", "b")"#, r#"kind: ["a","b","a","b"]"#),
            ("count(order.items) > 0", "order.items: [[1,2,3],[],\"text\"]"),
            (r#"duration("PT" + string(pause.after) + "S")"#, r#"pause.after: ["PT","S"]"#),
            ("duration(timeout)", r#"timeout: ["PT1S"]"#),
            ("a - b", "a: [1]; b: [1]"),
            ("applicant.`first name`", "applicant.first name: []"),
            (
                "some x in order.lines satisfies x.price > 10",
                r#"order.lines: [[{"price":11},{"price":11},{"price":11}],[1,2,3]]"#,
            ),
        ] {
            assert_eq!(read(source), expected, "{source}");
        }
    }

    #[test]
    fn conditions_come_apart_outside_of_brackets_only() {
        let read = |source: &str| {
            let ways = ways(&Expression::parse(source).unwrap());
            let shown = ways.iter().map(|way| way.iter().map(|part| part.source()).collect::<Vec<_>>().join(" & "));
            shown.collect::<Vec<_>>().join(" | ")
        };
        assert_eq!(read("a > 1 and b in (1, 2) or not(c and d)"), "a > 1 & b in (1, 2) | not(c and d)");
        assert_eq!(read(r#"name = "this and that""#), r#"name = "this and that""#);
        assert_eq!(read("x between 1 and 3"), "x between 1 and 3");
    }
}
