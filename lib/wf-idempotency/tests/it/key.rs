//! What counts as a key: cases 12-26 of the conformance list that concern parsing. L1.1 L1.8 K1 K2.

use wf_idempotency::key::{KEY_BYTES_MAX, Key, KeyError, Syntax, hash_for_logs, hex, looks_time_based, parse_header};

fn parse(line: &[u8], syntax: Syntax) -> Result<String, KeyError> {
    let key = parse_header([line].into_iter(), syntax)?;
    Ok(key.map(|key| key.as_str().to_owned()).unwrap_or_default())
}

/// `Ok(key)` or a fragment of the refusal.
type Expected = Result<&'static str, &'static str>;

#[track_caller]
fn check(line: &[u8], syntax: Syntax, expected: Expected) {
    let shown = line.escape_ascii();
    match (parse(line, syntax), expected) {
        (Ok(key), Ok(wanted)) => assert_eq!(key, wanted, "{shown} {syntax:?}"),
        (Err(error), Err(fragment)) => {
            assert!(error.to_string().contains(fragment), "{shown} {syntax:?}: {error}");
        }
        (found, _) => panic!("{shown} {syntax:?}: {found:?} instead of {expected:?}"),
    }
}

#[test]
fn l1_8_spellings_of_a_key() {
    use Syntax::{Lenient, Strict};
    let no_quotes = Err("without quotes");
    #[rustfmt::skip]
    let table: &[(&[u8], Expected, Expected)] = &[
        // line, lenient, strict
        (b"k",                 Ok("k"), no_quotes),
        (br#""k""#,            Ok("k"), Ok("k")),
        (b" \t k \t",          Ok("k"), no_quotes),
        (br#"  "k"  "#,        Ok("k"), Ok("k")),
        (br#"" a  b ""#,       Ok(" a  b "), Ok(" a  b ")),
        (br#""K""#,            Ok("K"), Ok("K")),
        (br#""k";a=1"#,        Ok("k"), Ok("k")),
        (br#""k";a;b=?1; c="x, \"y";d=:YWJj:"#, Ok("k"), Ok("k")),
        (br#""a\"b\\c""#,      Ok(r#"a"b\c"#), Ok(r#"a"b\c"#)),
        (br#""a:b/c*'; --""#,  Ok("a:b/c*'; --"), Ok("a:b/c*'; --")),
        (b"a:b/../c*?[x]';--", Ok("a:b/../c*?[x]';--"), no_quotes),
        (b"'k'",               Ok("'k'"), no_quotes),
        (b"?1",                Ok("?1"), no_quotes),
        (b":YWJj:",            Ok(":YWJj:"), no_quotes),
        (b"1",                 Ok("1"), no_quotes),
        // Refused in both.
        (b"",                  Err("empty"), Err("empty")),
        (b"  \t",              Err("empty"), Err("empty")),
        (br#""""#,             Err("empty"), Err("empty")),
        (br#"" ""#,            Err("empty"), Err("empty")),
        (br#""a\,""#,          Err("backslash before neither"), Err("backslash before neither")),
        (br#""abc"#,           Err("never closed"), Err("never closed")),
        (br#""abc\"#,          Err("backslash before neither"), Err("backslash before neither")),
        (br#""abc\""#,         Err("never closed"), Err("never closed")),
        (br#""a" "b""#,        Err("behind the closing quote"), Err("behind the closing quote")),
        (br#""a", "b""#,       Err("behind the closing quote"), Err("behind the closing quote")),
        (br#""a";A=1"#,        Err("without a name"), Err("without a name")),
        (br#""a";a="#,         Err("without a value"), Err("without a value")),
        (br#""a";a=1,2"#,      Err("behind the closing quote"), Err("behind the closing quote")),
        // Refused when bare, in the one or the other way.
        (br#"abc""#,           Err("quote inside"), no_quotes),
        (b"k1, k2",            Err("comma"), no_quotes),
        (b"(a b)",             Err("space inside"), no_quotes),
        (b"k\x0c",             Err("control"), no_quotes),
    ];
    for (line, lenient, strict) in table {
        check(line, Lenient, *lenient);
        check(line, Strict, *strict);
    }
}

#[test]
fn l1_8_only_printable_ascii_bare_or_quoted_or_escaped() {
    for byte in 0..=u8::MAX {
        let printable = matches!(byte, 0x20..=0x7E);
        let bare_ok = printable && !matches!(byte, b' ' | b'"' | b',');
        assert_eq!(parse(&[b'a', byte, b'b'], Syntax::Lenient).is_ok(), bare_ok, "bare {byte:#x}");
        let quoted_ok = printable && !matches!(byte, b'"' | b'\\');
        assert_eq!(parse(&[b'"', b'a', byte, b'b', b'"'], Syntax::Strict).is_ok(), quoted_ok, "quoted {byte:#x}");
        let escaped_ok = matches!(byte, b'"' | b'\\');
        assert_eq!(parse(&[b'"', b'a', b'\\', byte, b'"'], Syntax::Strict).is_ok(), escaped_ok, "escaped {byte:#x}");
        let text = char::from(byte).to_string() + "b";
        assert_eq!(Key::new(&text).is_ok(), printable, "as it stands {byte:#x}");
    }
}

#[test]
fn l1_8_lengths_are_counted_after_unquoting_and_nothing_is_cut() {
    let most = "k".repeat(KEY_BYTES_MAX);
    for syntax in [Syntax::Lenient, Syntax::Strict] {
        assert_eq!(parse(format!("\"{most}\";x=1").as_bytes(), syntax), Ok(most.clone()));
        let escaped = "\\\"".repeat(KEY_BYTES_MAX);
        assert_eq!(parse(format!("\"{escaped}\"").as_bytes(), syntax), Ok("\"".repeat(KEY_BYTES_MAX)));
        for bytes in [KEY_BYTES_MAX + 1, 8 << 10, 64 << 10] {
            let line = format!("\"{}\"", "k".repeat(bytes));
            assert_eq!(parse(line.as_bytes(), syntax), Err(KeyError::TooLong { bytes }));
        }
    }
    assert_eq!(parse(most.as_bytes(), Syntax::Lenient), Ok(most.clone()));
    assert_eq!(parse((most + "k").as_bytes(), Syntax::Lenient), Err(KeyError::TooLong { bytes: 256 }));
    assert_eq!(Key::new(""), Err(KeyError::Empty));
}

#[test]
fn l1_8_lines_are_counted_before_they_are_read() {
    let parse = |lines: &[&'static [u8]]| parse_header(lines.iter().copied(), Syntax::Lenient);
    assert_eq!(parse(&[]), Ok(None));
    for lines in [[b"k".as_slice(), b"k"], [b"\"a", b"b\""], [b"", b"k"], [b"k", b""]] {
        assert_eq!(parse(&lines), Err(KeyError::MoreThanOneLine));
    }
}

#[test]
fn l1_8_a_refusal_names_the_place_and_never_the_key() {
    let error = parse(b"  secret\xFFsecret", Syntax::Lenient).unwrap_err();
    assert_eq!(error, KeyError::Malformed { offset: 8, what: "a byte that is not ASCII" });
    assert_eq!(error.to_string(), "a byte that is not ASCII at byte 8");
    assert_eq!(format!("{:?}", Key::new("secret")), "Ok(Key(..))");
}

#[test]
fn k1_keys_made_from_a_clock_are_noticed() {
    let flagged = [
        "1733000000",
        "order-1733000000",
        "1733000000123-order",
        "user:7:1733000000123",
        "pay_1733000000123456",
        "1733000000123456789",
        "order-2026-11-29T10:20:30Z-7",
        "order/2026-11-29 10:20",
        "20261129T102030-a",
        "backup_2026-11-29_10-20-30",
    ];
    let fine = [
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "01890a5d-ac96-774b-bcce-b302099a8057",
        "9b2c1f0a-6b0e-4b8f-8d35-0d5a2f3f7c11",
        "01890a5dac96774bbcceb302099a8057",
        "01890a5d-1733-7000-8000-173300000012",
        "order-4711",
        "invoice-2026-11-29",
        "0733000000",
        "9999999999",
        "order-1733000000-approve",
        "wf-job-4503599627370497",
        "k",
    ];
    for key in flagged {
        assert!(looks_time_based(&Key::new(key).unwrap()), "{key}");
    }
    for key in fine {
        assert!(!looks_time_based(&Key::new(key).unwrap()), "{key}");
    }
}

#[test]
fn l6_3_logs_name_a_key_by_tenant_and_secret() {
    let key = |text| Key::new(text).unwrap();
    let names = [
        hash_for_logs(&[1; 32], "a", &key("b:c")),
        hash_for_logs(&[1; 32], "a:b", &key("c")),
        hash_for_logs(&[1; 32], "ab", &key(":c")),
        hash_for_logs(&[2; 32], "a", &key("b:c")),
    ];
    let distinct: std::collections::BTreeSet<_> = names.iter().map(|name| hex(name)).collect();
    assert_eq!(distinct.len(), names.len());
    assert!(distinct.iter().all(|name| name.len() == 32));
    assert_eq!(hex(&names[0]), "e1e9e7aaf6779415adba3ed616639ef4");
}
