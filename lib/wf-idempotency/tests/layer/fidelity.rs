//! An answer comes again as it was, or not at all. Next: back to `support.rs`.

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use wf_idempotency::layer::Route;

use crate::support::{Body, Shop, ask, post};

/// Rows 27 to 29: bytes, and those headers that describe them.
#[tokio::test]
async fn l1_3_bytes_and_headers_come_again() {
    let shop = Shop::default();
    let route = Route { headers_kept: vec!["x-request-cost".parse().unwrap()], ..Route::default() };
    let service = shop.behind(route, |_| async {
        let body: Vec<u8> = (0..=255).collect();
        let named = [
            ("content-type", "image/png"),
            ("content-encoding", "br"),
            ("etag", "\"1\""),
            ("link", "</a>"),
            ("link", "</b>"),
            ("x-request-cost", "3"),
            ("set-cookie", "session=1"),
            ("connection", "close"),
            ("date", "Mon, 30 Nov 2026 00:00:00 GMT"),
            ("access-control-allow-origin", "https://a"),
            ("idempotent-replayed", "true"),
        ];
        let answer = named.iter().fold(Response::builder(), |answer, (name, value)| answer.header(*name, *value));
        answer.body(Full::from(body)).unwrap()
    });
    let first = ask(&service, post("k", "{}")).await;
    assert!(!first.is_replay() && first.header("set-cookie").is_some(), "{first:?}");
    let again = ask(&service, post("k", "{}")).await;
    assert_eq!(again.body, first.body);
    let names: Vec<&str> = again.headers.iter().map(|(name, _)| &**name).collect();
    let kept = ["content-type", "content-encoding", "etag", "link", "link", "x-request-cost"];
    assert_eq!(names, [&kept[..], &["idempotent-replayed", "cache-control"]].concat());
}

#[tokio::test]
async fn empty_answers_come_again_too() {
    for (status, body) in [(204, ""), (200, ""), (200, "null"), (200, "0"), (200, "false"), (205, "")] {
        let shop = Shop::default();
        let answer = move || Response::builder().status(status).body(Full::from(body)).unwrap();
        let service = shop.behind(Route::default(), move |_| async move { answer() });
        ask(&service, post("k", "{}")).await;
        let again = ask(&service, post("k", "{}")).await;
        assert!(again.is_replay() && (again.status, again.text()) == (status, body.to_owned()), "{again:?}");
        assert_eq!(shop.entered.times(), 1);
    }
}

/// Row 25: its first client gets it whole; a repeat is told what it was, and never a part of it.
#[tokio::test]
async fn an_answer_over_the_limit_is_not_given_again() {
    let shop = Shop::default();
    let service = shop.behind(Route { answer_bytes_max: 10, ..Route::default() }, |_| async {
        let body = Body::new(Bytes::from(vec![b'x'; 5_000]));
        Response::builder().status(201).header("location", "/reports/1").body(body).unwrap()
    });
    let first = ask(&service, post("k", "{}")).await;
    assert_eq!((first.status, first.body.len(), first.header("idempotency-stored")), (201, 5_000, Some("false")));
    let again = ask(&service, post("k", "{}")).await;
    again.is_refused(409, "response-not-stored");
    assert!(again.text().contains("\"originalStatus\":201") && again.header("location") == Some("/reports/1"));
    assert_eq!(shop.entered.times(), 1);
}

#[tokio::test]
async fn a_request_over_the_limit_is_refused_before_it_is_claimed() {
    let shop = Shop::default();
    let service =
        shop.behind(Route { request_bytes_max: 10, ..Route::default() }, |_| async { Response::new(Body::default()) });
    ask(&service, post("k", "more than ten bytes")).await.is_refused(413, "payload-too-large");
    assert_eq!((ask(&service, post("k", "ten bytes.")).await.status, shop.entered.times()), (200, 1));
}
