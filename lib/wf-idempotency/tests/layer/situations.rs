//! Which request is run, and what the others hear. Next: `outcomes.rs`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::Request;
use http_body_util::Full;
use tokio::sync::Semaphore;
use tower::ServiceExt;
use wf_idempotency::driver::Timing;
use wf_idempotency::layer::{Attempt, Bodies, Route};

use crate::support::{Body, Shop, ask, asked, created, post};

/// L1.3, K5: the first answer again, and the handler is not entered.
#[tokio::test]
async fn l1_3_a_repeat_gets_the_first_answer() {
    let shop = Shop::default();
    let service = shop.behind(Route::default(), |_| async { created() });
    let first = ask(&service, post("k", "{}")).await;
    assert_eq!((first.status, first.is_replay()), (201, false));
    for key in ["k", "\"k\""] {
        let again = ask(&service, post(key, "{}")).await;
        assert!(again.is_replay() && again.header("location") == Some("/payments/1"), "{again:?}");
        assert_eq!((again.status, &again.body), (first.status, &first.body));
    }
    assert_eq!(shop.entered.times(), 1);
}

/// L1.4, row 4 to 7: nothing runs, and the record stays as it was.
#[tokio::test]
async fn l1_4_another_request_under_the_key_is_refused() {
    let shop = Shop::default();
    let service = shop.behind(Route::default(), |_| async { created() });
    ask(&service, post("k", "{}")).await;
    for other in [
        post("k", "{\"amount\": 1}"),
        post("k", "{ }"),
        asked("POST", "/payments/2", "k", "{}"),
        asked("POST", "/payments?dry=1", "k", "{}"),
        asked("PATCH", "/payments", "k", "{}"),
    ] {
        ask(&service, other).await.is_refused(422, "idempotency-conflict");
    }
    assert!(ask(&service, post("k", "{}")).await.is_replay());
    assert_eq!(shop.entered.times(), 1);
    let canonical = shop.behind(Route { bodies: Bodies::Canonical, ..Route::default() }, |_| async { created() });
    let json = |body| {
        let mut request = post("json", body);
        request.headers_mut().insert("content-type", "application/json".parse().unwrap());
        request
    };
    ask(&canonical, json("{\"a\": 1.0, \"b\": []}")).await;
    assert!(ask(&canonical, json("{\"b\":[],\"a\":1}")).await.is_replay());
    ask(&canonical, json("{\"b\":{},\"a\":1}")).await.is_refused(422, "idempotency-conflict");
}

/// L1.2: one tenant's key never meets another's, and nobody's key is refused.
#[tokio::test]
async fn l1_2_keys_belong_to_somebody() {
    let shop = Shop::default();
    let service = shop.behind(Route::default(), |_| async { created() });
    let by = |name: &str| {
        let mut request = post("k", "{}");
        request.headers_mut().insert("authorization", name.parse().unwrap());
        request
    };
    assert!(!ask(&service, by("ada")).await.is_replay() && !ask(&service, by("bob")).await.is_replay());
    assert_eq!(shop.entered.times(), 2);
    let mut nobody = post("k", "{}");
    nobody.headers_mut().remove("authorization");
    ask(&service, nobody).await.is_refused(401, "unauthenticated");
    assert_eq!(shop.entered.times(), 2);
}

/// L1.8, rows 9 to 16.
#[tokio::test]
async fn l1_8_keys_are_read_or_refused_and_never_ignored() {
    let shop = Shop::default();
    let documentation = Some("/docs/keys".to_owned());
    let service = shop.behind(Route { required: true, documentation, ..Route::default() }, |_| async { created() });
    let bare = |method: &str| Request::builder().method(method).uri("/payments").body(Body::default()).unwrap();
    let missing = ask(&service, bare("POST")).await;
    missing.is_refused(400, "idempotency-key-missing");
    assert_eq!(missing.header("link"), Some("</docs/keys>; rel=\"describedby\""));
    for key in ["", "  ", "\"\"", "\"a", "a b", "a,b", &"k".repeat(256)] {
        ask(&service, post(key, "{}")).await.is_refused(400, "idempotency-key-malformed");
    }
    let mut two = post("k", "{}");
    two.headers_mut().append("idempotency-key", "k".parse().unwrap());
    ask(&service, two).await.is_refused(400, "idempotency-key-malformed");
    assert_eq!(shop.entered.times(), 0);
    // What is safe or wants no key passes, twice too.
    for method in ["GET", "GET", "HEAD", "OPTIONS", "PUT", "DELETE"] {
        assert_eq!(ask(&service, asked(method, "/payments", "k", "")).await.status, 201);
    }
    assert_eq!(shop.entered.times(), 6);
}

/// L1.5, row 3: of many at once one runs; the others are told to come again, or wait for its answer where the route lets them.
#[tokio::test]
async fn l1_5_of_many_at_once_one_runs() {
    let shop = Shop::default();
    let gate = Arc::new(Semaphore::new(0));
    let handler = {
        let gate = gate.clone();
        move |_: Request<Body>| {
            let gate = gate.clone();
            async move {
                let _ = gate.acquire().await.unwrap();
                created()
            }
        }
    };
    let hasty = shop.behind(Route::default(), handler.clone());
    let timing = Timing { wait_ms: 60_000, ..Timing::default() };
    let patient = shop.behind(Route { timing, ..Route::default() }, handler);
    let first = tokio::spawn({
        let hasty = hasty.clone();
        async move { ask(&hasty, post("k", "{}")).await }
    });
    while shop.entered.times() == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        let busy = ask(&hasty, post("k", "{}")).await;
        busy.is_refused(409, "idempotency-in-progress");
        assert!(busy.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
    }
    ask(&hasty, post("k", "{\"other\": 1}")).await.is_refused(422, "idempotency-conflict");
    let waiting = (0..20).map(|_| ask(&patient, post("k", "{}")));
    let waiting = futures_util::future::join_all(waiting);
    let (waiting, ()) = tokio::join!(waiting, async {
        tokio::task::yield_now().await;
        gate.add_permits(1);
    });
    assert!(waiting.iter().all(|answer| answer.is_replay() && answer.status == 201), "{waiting:?}");
    assert!(!first.await.unwrap().is_replay());
    assert_eq!(shop.entered.times(), 1);
}

/// Row 22: a client that goes away ends nothing.
#[tokio::test]
async fn a_client_that_goes_away_ends_nothing() {
    let shop = Shop::default();
    let gate = Arc::new(Semaphore::new(0));
    let inner = gate.clone();
    let service = shop.behind(Route::default(), move |_| {
        let gate = inner.clone();
        async move {
            let _ = gate.acquire().await.unwrap();
            created()
        }
    });
    let asking = tokio::spawn(service.clone().oneshot(post("k", "{}")));
    while shop.entered.times() == 0 {
        tokio::task::yield_now().await;
    }
    asking.abort();
    assert!(asking.await.is_err());
    gate.add_permits(1);
    let answer = loop {
        let answer = ask(&service, post("k", "{}")).await;
        if answer.status != 409 {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    assert!(answer.is_replay(), "{answer:?}");
    assert_eq!(shop.entered.times(), 1);
}

/// F1, rows 24 and 30: without a store nothing runs; one that goes while a request runs leaves a claim, never a free key.
#[tokio::test]
async fn f2_a_store_that_is_down_runs_nothing_twice() {
    let shop = Shop::default();
    let store = shop.store.clone();
    let service = shop.behind(Route::default(), move |request: Request<Body>| {
        store.is_down.store(request.uri().path() == "/breaks", Ordering::Relaxed);
        async { created() }
    });
    shop.store.is_down.store(true, Ordering::Relaxed);
    ask(&service, post("k", "{}")).await.is_refused(503, "store-unavailable");
    assert_eq!(shop.entered.times(), 0);
    shop.store.is_down.store(false, Ordering::Relaxed);
    let first = ask(&service, asked("POST", "/breaks", "k", "{}")).await;
    assert_eq!((first.status, first.header("idempotency-stored")), (201, Some("false")), "what happened is told");
    shop.store.is_down.store(false, Ordering::Relaxed);
    let again = ask(&service, asked("POST", "/breaks", "k", "{}")).await;
    again.is_refused(409, "idempotency-in-progress");
    assert_eq!(shop.entered.times(), 1);
}

/// The handler knows under which key it runs, for the time being for the first time.
#[tokio::test]
async fn k4_a_handler_knows_its_key() {
    let shop = Shop::default();
    let service = shop.behind(Route::default(), |request: Request<Body>| {
        let attempt = request.extensions().get::<Attempt>().cloned();
        async move {
            let attempt = attempt.unwrap();
            let text = format!("{} {} {} {}", attempt.tenant, attempt.key.as_str(), attempt.number, attempt.resume);
            http::Response::new(Full::from(text))
        }
    });
    assert_eq!(ask(&service, post("k", "{}")).await.text(), "ada k 1 false");
}
