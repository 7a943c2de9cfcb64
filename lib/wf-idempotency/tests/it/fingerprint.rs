//! Which two requests are the same: cases 33-35 and 42-55 of the conformance list. L1.4.

use wf_idempotency::fingerprint::{BodyKind, fingerprint_as};
use wf_idempotency::{Fingerprint, MacKey, fingerprint};

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

fn of(method: &str, path: &str, content_type: &str, body: impl AsRef<[u8]>) -> Fingerprint {
    fingerprint(&MacKey::new(1, [7; 32]), method, path, content_type, body.as_ref())
}

fn post(content_type: &str, body: impl AsRef<[u8]>) -> Fingerprint {
    of("POST", "/fx", content_type, body)
}

#[test]
fn l1_4_method_path_query_and_media_type() {
    let base = of("POST", "/fx/1?a=1&b=2", JSON, "{}");
    let same = [
        of("POST", "/fx/1?b=2&a=1", JSON, "{}"),
        of("POST", "/fx/1?a=1&b=2", "Application/JSON ; charset=UTF-8", "{}"),
        of("POST", "/fx/1?a=1&b=2", "application/json;charset=\"utf-8\"", " { } "),
    ];
    let other = [
        of("PATCH", "/fx/1?a=1&b=2", JSON, "{}"),
        of("post", "/fx/1?a=1&b=2", JSON, "{}"),
        of("POST", "/fx/2?a=1&b=2", JSON, "{}"),
        of("POST", "/fx/1/?a=1&b=2", JSON, "{}"),
        of("POST", "/fx/%31?a=1&b=2", JSON, "{}"),
        of("POST", "//fx/1?a=1&b=2", JSON, "{}"),
        of("POST", "/fx/1?a=1&b=3", JSON, "{}"),
        of("POST", "/fx/1?a=1&b=2&", JSON, "{}"),
        of("POST", "/fx/1?a=1", JSON, "{}"),
        of("POST", "/fx/1", JSON, "{}"),
        of("POST", "/fx/1?", JSON, "{}"),
        of("POST", "/fx/1?a=1&b=2", "text/plain", "{}"),
        of("POST", "/fx/1?a=1&b=2", "application/problem+json", "{}"),
        of("POST", "/fx/1?a=1&b=2", "", "{}"),
        fingerprint(&MacKey::new(1, [8; 32]), "POST", "/fx/1?a=1&b=2", JSON, b"{}"),
    ];
    assert!(same.iter().all(|fingerprint| *fingerprint == base));
    all_differ(std::iter::once(base).chain(other));
    // A border moved from one part to the next.
    all_differ([
        of("POST", "/a", "b", "c"),
        of("POST", "/ab", "", "c"),
        of("POST/", "a", "b", "c"),
        of("POST", "/a", "bc", ""),
    ]);
}

#[test]
fn l1_4_repeated_names_keep_their_order_in_query_and_form() {
    let query = |query: &str| of("POST", &format!("/fx?{query}"), "", "");
    let form = |body: &str| post(FORM, body);
    for same in [&query as &dyn Fn(&str) -> Fingerprint, &form] {
        assert_eq!(same("a=1&b=2&a=3&c"), same("c&b=2&a=1&a=3"));
        assert_eq!(same("a[]=1&b=2&a[]=3"), same("b=2&a[]=1&a[]=3"));
        all_differ([
            same("a=1&a=2"),
            same("a=2&a=1"),
            same("a=1&%61=2"),
            same("%61=2&a=1"),
            same("a=1%26a=2"),
            same("a=+1"),
            same("a=%201"),
            same("a"),
            same("a="),
            same("l[][s]=1&l[][q]=2&l[][s]=3&l[][q]=4"),
            same("l[][s]=1&l[][s]=3&l[][q]=2&l[][q]=4"),
        ]);
    }
    let many = |last: &str| form(&("a&".repeat(20_000) + last));
    all_differ([many("a"), many("b")]);
}

#[test]
fn l1_4_json_is_compared_by_value_and_never_falsely_equal() {
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    // Each line is one value in several spellings; no two lines are equal.
    #[rustfmt::skip]
    let values: &[&[&str]] = &[
        &["1", "1.0", "1e0", "10e-1", " 1\n", "0.1E+1", "100e-0002"],
        &["\"1\""],
        &["0", "0.0", "0e99999999999999999999999"],
        &["-0", "-0.0", "-0e5"],
        &["9007199254740992", "9007199254740992.0"], &["9007199254740993"],
        &["0.1", "1e-1", "0.10"], &["0.1000000000000000055511151231257827"],
        &["1e999999999", "10e999999998", "1E+0999999999"], &["1e-999999999"], &["1e999999998"],
        &["100", "1e2"], &["10", "1e1"],
        &["12", "1.2e1"], &["-12"], &["1,2"], // The last is no JSON: raw.
        &["[]", " [ ] "], &["{}", "{ }"], &["null"], &["true"], &["false"], &["\"\""], &[""],
        &["[1,2]", "[1.0, 2e0]"], &["[2,1]"], &["[12]"], &["[[1],2]"], &["[1,[2]]"],
        &[r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{ "\u0062" : 2.0 , "a":1 }"#],
        &[r#"{"a":1}"#], &[r#"{"a":1,"b":null}"#], &[r#"{"a":{"b":2}}"#], &[r#"{"a":1,"b":"2"}"#],
        &[r#"{"a":{"d":[{"y":1,"x":2}],"c":3},"":4}"#, r#"{"":4,"a":{"c":3,"d":[{"x":2,"y":1}]}}"#],
        // A member twice: bytes, so that first-wins and last-wins readers are both safe.
        &[r#"{"a":1,"a":2}"#], &[r#"{"a":2,"a":1}"#], &[r#"{"a":1, "a":2}"#], &[r#"{"a":1,"\u0061":2}"#],
        // é composed and decomposed, escaped or not; a pair of surrogates.
        &["\"\u{e9}\"", r#""\u00e9""#, r#""\u00E9""#], &["\"e\u{301}\"", r#""e\u0301""#],
        &["\"😀\"", r#""\uD83D\uDE00""#], &[r#""\ud83d""#], &[r#""\ud83d\ud83d""#], &[r#""\ude00""#],
        &[r#""\"\\\/\b\f\n\r\t""#, r#""\u0022\u005c/\u0008\u000c\u000a\u000d\u0009""#],
        &[r#""\u0000""#], &["\"\n\""], &[r#""\x""#], &[r#""\u12""#], &["\""],
        // Not JSON, each its own bytes.
        &["01"], &["1."], &[".1"], &["+1"], &["1e"], &["-"], &["NaN"], &["tru"], &["[1,]"], &[r#"{"a":1,}"#], &["{a:1}"],
        &["[1 2]"], &["1 1"], &["\u{feff}1"], &["[1"], &["[1}"], &["{\"a\"}"],
        // An exponent that nobody means: bytes.
        &["1e1234567890123456789"], &["1.0e1234567890123456789"],
    ];
    all_spellings_agree(values, |text| post(JSON, text));
    assert_eq!(post(JSON, deep(128)), post(JSON, deep(128) + " "));
    assert_ne!(post(JSON, deep(129)), post(JSON, deep(129) + " "));
    // The bytes of a canonical form are not the form: the tag differs.
    assert_ne!(post(JSON, "{"), post(JSON, "{}"));
    assert_ne!(post(JSON, b"\"\xFF\""), post(JSON, b"\"\xFE\""));
}

fn all_spellings_agree(values: &[&[&str]], of: impl Fn(&str) -> Fingerprint) {
    for spellings in values {
        for spelling in *spellings {
            assert_eq!(of(spellings[0]), of(spelling), "{} and {spelling}", spellings[0]);
        }
    }
    all_differ(values.iter().map(|spellings| of(spellings[0])));
}

#[test]
fn l1_4_hostile_json_never_panics_and_costs_no_more_than_its_size() {
    for depth in [10_000, 1_000_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
            let closed = open.repeat(depth) + "1" + &close.repeat(depth);
            assert_ne!(post(JSON, &closed), post(JSON, open.repeat(depth)));
        }
    }
    let digits = "9".repeat(100_000);
    let numbers = [
        format!("1e{digits}"),
        format!("1e-{digits}"),
        digits.clone(),
        format!("0.{digits}"),
        format!("-{digits}.{digits}e{digits}"),
    ];
    all_differ(numbers.iter().map(|number| post(JSON, number)));
    assert_eq!(post(JSON, &digits), post(JSON, format!("{digits}.0")));
}

#[test]
fn l1_4_other_bodies_are_their_bytes() {
    let large = |last: u8| {
        let mut body = vec![b'x'; 5 << 20];
        body.push(last);
        post("application/octet-stream", body)
    };
    assert_ne!(large(0), large(1));
    assert_ne!(post("application/xml", "<a/>"), post("application/xml", "<a />"));
    assert_ne!(post("text/plain", "{}"), post("text/plain", "{ }"));
    // Absent is empty to HTTP, and empty is no empty object.
    all_differ([post(JSON, ""), post(JSON, "{}"), post(JSON, "null"), post(FORM, "")]);
    let raw =
        |body: &str| fingerprint_as(&MacKey::new(1, [7; 32]), "POST", "/fx", JSON, &BodyKind::Raw, body.as_bytes());
    assert_ne!(raw("{}"), raw("{ }"));
}

#[test]
fn l1_4_multipart_is_its_parts_and_not_the_boundary() {
    let body = |boundary: &str, parts: &[(&str, &str)]| {
        let part = |(head, body): &(&str, &str)| format!("--{boundary}\r\n{head}\r\n\r\n{body}\r\n");
        parts.iter().map(part).collect::<String>() + "--" + boundary + "--\r\n"
    };
    let multipart = |boundary: &str, parts: &[(&str, &str)]| {
        post(&format!("multipart/form-data; boundary={boundary}"), body(boundary, parts))
    };
    let file = "Content-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\nContent-Type: text/plain";
    let spelled = "content-type:  text/plain\r\nContent-disposition: form-data; name=\"f\"; filename=\"a.txt\"";
    let field = "Content-Disposition: form-data; name=\"x\"";
    let base = multipart("AAA", &[(field, "1"), (file, "hello\r\n--AA\r\n--AAAB\r\n")]);
    assert_eq!(base, multipart("--other--1", &[(field, "1"), (spelled, "hello\r\n--AA\r\n--AAAB\r\n")]));
    let quoted = post("Multipart/Form-Data; charset=utf-8; Boundary=\"a b\"", body("a b", &[(field, "1")]));
    assert_eq!(quoted, multipart("c", &[(field, "1")]));
    all_differ([
        base,
        quoted,
        multipart("AAA", &[(field, "1"), (file, "hello\r\n--AA\r\n--AAAB\r\n\r\n")]),
        multipart("AAA", &[(field, "1"), (&file.replace("a.txt", "b.txt"), "hello\r\n--AA\r\n--AAAB\r\n")]),
        multipart("AAA", &[(field, "1"), (&file.replace("plain", "html"), "hello\r\n--AA\r\n--AAAB\r\n")]),
        multipart("AAA", &[(field, "2"), (file, "hello\r\n--AA\r\n--AAAB\r\n")]),
        multipart("AAA", &[(field, "")]),
        multipart("AAA", &[(field, "1"), (field, "1")]),
        multipart("AAA", &[("", "x\r\n\r\n1")]),
        multipart("AAA", &[]),
        // Not closed, text around the parts, no boundary: bytes, with the boundary in them.
        post("multipart/form-data; boundary=AAA", "--AAA\r\n\r\n1"),
        post("multipart/form-data; boundary=AAA", "x\r\n--AAA\r\n\r\n1\r\n--AAA--"),
        post("multipart/form-data; boundary=AAA", "--AAA\r\n\r\n1\r\n--AAA--x"),
        post("multipart/form-data", body("AAA", &[(field, "1")])),
        post("multipart/form-data; boundary=AAA", ""),
    ]);
}

#[test]
fn kinds_of_bodies() {
    let boundary = |boundary: &str| BodyKind::Multipart { boundary: boundary.to_owned() };
    let table = [
        ("application/json", BodyKind::Json),
        ("APPLICATION/JSON; charset=utf-8", BodyKind::Json),
        ("application/cloudevents+json", BodyKind::Json),
        ("text/json", BodyKind::Json),
        ("application/jsonp", BodyKind::Raw),
        ("application/xml", BodyKind::Raw),
        ("", BodyKind::Raw),
        ("application/x-www-form-urlencoded", BodyKind::Form),
        ("multipart/form-data; boundary=AaB", boundary("AaB")),
        ("multipart/form-data;a=b;BOUNDARY=\"x y\";c=d", boundary("x y")),
        ("multipart/form-data; boundary=", BodyKind::Raw),
        ("multipart/mixed; boundary=a", BodyKind::Raw),
    ];
    for (content_type, kind) in table {
        assert_eq!(BodyKind::from_content_type(content_type), kind, "{content_type}");
    }
}

/// Fingerprints are stored: a change of the algorithm turns every repeat across an upgrade into a conflict.
#[test]
fn l1_4_fingerprints_are_frozen() {
    let golden = [
        (
            of("POST", "/api/v1/instances", JSON, r#"{"b":[1.50,"\u00e9"],"a":null}"#),
            "d6c93c3048c7ef6953ce2ec0529a1bf4fb6720021a2729dc5fdd8937288fd0ad",
        ),
        (
            of("POST", "/fx?b=1&a=2", "text/plain", "text"),
            "29dd182040a06fda6d75086881fc3d1901c07100a2af1a1a14cefc9708d68b4d",
        ),
        (post(FORM, "b=1&a=2"), "c934efb03fa39dea94f87e74dadc2adf2866bd6e8f3769be453ad79d331a3c33"),
        (
            post("multipart/form-data; boundary=b", "--b\r\nA: 1\r\n\r\nx\r\n--b--"),
            "51c30ad3d8db44e559c9912446db38a54968adb05f42c3868f8926fffe1bd19d",
        ),
    ];
    for (fingerprint, hex) in golden {
        assert_eq!(format!("{fingerprint:?}"), format!("Fingerprint({hex})"));
    }
}

#[track_caller]
fn all_differ(fingerprints: impl IntoIterator<Item = Fingerprint>) {
    let all: Vec<_> = fingerprints.into_iter().collect();
    for (index, fingerprint) in all.iter().enumerate() {
        let twin = all[..index].iter().position(|earlier| earlier == fingerprint);
        assert_eq!(twin, None, "number {index} has a twin");
    }
}
