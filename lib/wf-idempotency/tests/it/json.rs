//! JSON spelled at random: the same value in any spelling is the same, another value is another. L1.4.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::BTreeMap;
use wf_idempotency::{Fingerprint, MacKey, fingerprint};

/// A value with exact decimals: `digits` × 10^`exponent`, no zero at the end of `digits`.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    Number { negative: bool, digits: String, exponent: i32 },
    String(String),
    Array(Vec<Value>),
    Object(BTreeMap<String, Value>),
}

fn values() -> impl Strategy<Value = Value> {
    let number = ("[1-9][0-9]{0,20}", any::<bool>(), -30..30_i32).prop_map(|(digits, negative, exponent)| {
        let digits = digits.trim_end_matches('0').to_owned();
        Value::Number { negative, digits, exponent }
    });
    let text = "[a-c\u{e9}\u{1F600}\"\\\\\n\u{0}]{0,4}";
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::Bool), number, text.prop_map(Value::String)];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::Array),
            btree_map(text, inner, 0..5).prop_map(Value::Object),
        ]
    })
}

/// Writes the value in one of its spellings; `choices` are drawn round and round.
fn spell(value: &Value, choices: &mut impl Iterator<Item = u8>, out: &mut String) {
    blank(choices, out);
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number { negative, digits, exponent } => {
            out.push_str(if *negative { "-" } else { "" });
            out.push_str(&spell_number(digits, *exponent, choices.next().unwrap_or_default()));
        }
        Value::String(text) => spell_string(text, choices, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                spell(item, choices, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().map(|member| (choices.next(), member)).collect();
            members.sort_by_key(|(choice, _)| *choice);
            out.push('{');
            for (index, (_, (name, value))) in members.into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                blank(choices, out);
                spell_string(name, choices, out);
                blank(choices, out);
                out.push(':');
                spell(value, choices, out);
            }
            out.push('}');
        }
    }
    blank(choices, out);
}

fn blank(choices: &mut impl Iterator<Item = u8>, out: &mut String) {
    out.push_str(["", "", " ", "\n\t", "\r"][usize::from(choices.next().unwrap_or_default() % 5)]);
}

fn spell_number(digits: &str, exponent: i32, choice: u8) -> String {
    let zeros = usize::from(choice / 4 % 3);
    let padded = format!("{digits}{}", "0".repeat(zeros));
    let exponent = exponent - zeros as i32;
    let (first, rest) = padded.split_at(1);
    match choice % 4 {
        0 if (0..40).contains(&exponent) => padded.clone() + &"0".repeat(exponent as usize),
        1 => format!("{first}.{rest}0E{:+}", exponent + rest.len() as i32),
        2 => format!("0.0{padded}e{}", exponent + padded.len() as i32 + 1),
        _ => format!("{padded}e{exponent}"),
    }
}

fn spell_string(text: &str, choices: &mut impl Iterator<Item = u8>, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        let escaped = choices.next().unwrap_or_default() < 128 || c < ' ' || c == '"' || c == '\\';
        if escaped {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
        } else {
            out.push(c);
        }
    }
    out.push('"');
}

fn of(value: &Value, choices: &[u8]) -> (String, Fingerprint) {
    let mut text = String::new();
    spell(value, &mut choices.iter().copied().cycle(), &mut text);
    let fingerprint = fingerprint(&MacKey::new(1, [7; 32]), "POST", "/", "application/json", text.as_bytes());
    (text, fingerprint)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l1_4_spelling_does_not_count(value in values(), one in vec(any::<u8>(), 1..40), two in vec(any::<u8>(), 1..40)) {
        let ((text_one, one), (text_two, two)) = (of(&value, &one), of(&value, &two));
        prop_assert_eq!(one, two, "{} and {}", text_one, text_two);
    }

    #[test]
    fn l1_4_values_count(one in values(), two in values(), choices in vec(any::<u8>(), 1..40)) {
        prop_assert_eq!(one == two, of(&one, &choices).1 == of(&two, &choices).1);
    }

    /// A neighbour: one place of a value changed.
    #[test]
    fn l1_4_the_smallest_change_counts(value in values(), place in any::<usize>(), choices in vec(any::<u8>(), 1..40)) {
        let mut changed = value.clone();
        let mut left = place % size(&value);
        change(&mut changed, &mut left);
        prop_assert_ne!(&value, &changed);
        prop_assert_ne!(of(&value, &choices).1, of(&changed, &choices).1);
    }

    #[test]
    fn l1_4_any_bytes_are_a_body(body in vec(any::<u8>(), 0..200), text in "[\\[\\]{}\",:0-9eE.+\\\\u-]{0,60}") {
        for body in [body.as_slice(), text.as_bytes()] {
            for kind in ["application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=-"] {
                fingerprint(&MacKey::new(1, [7; 32]), "POST", "/?%", kind, body);
            }
        }
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Changes the value number `left` in reading order.
fn change(value: &mut Value, left: &mut usize) {
    if *left > 0 {
        *left -= 1;
        let inner: Vec<&mut Value> = match value {
            Value::Array(items) => items.iter_mut().collect(),
            Value::Object(members) => members.values_mut().collect(),
            _ => Vec::new(),
        };
        for value in inner {
            let size = size(value);
            if *left < size {
                return change(value, left);
            }
            *left -= size;
        }
        return;
    }
    match value {
        Value::Null => *value = Value::Bool(false),
        Value::Bool(flag) => *flag = !*flag,
        Value::Number { exponent, .. } => *exponent += 1,
        Value::String(text) => text.push('x'),
        Value::Array(items) => items.push(Value::Null),
        Value::Object(members) => drop(members.insert("new".to_owned(), Value::Null)),
    }
}
