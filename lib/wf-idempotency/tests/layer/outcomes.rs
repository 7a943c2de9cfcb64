//! What becomes of a key when its request has ended. Next: `fidelity.rs`.

use http::{Request, Response};
use http_body_util::Full;
use wf_idempotency::Policy;
use wf_idempotency::decide::OnUnknown;
use wf_idempotency::layer::{Attempt, Outcome, Route};

use crate::support::{Body, Shop, ask, post};

fn status(status: u16) -> Response<Body> {
    Response::builder().status(status).body(Full::from(format!("it was {status}"))).unwrap()
}

/// Rows 18 and 19: what was refused before it began leaves the key free, also for a corrected request; all else is an answer.
#[tokio::test]
async fn outcomes_follow_the_status_unless_the_handler_says() {
    for (code, is_kept) in
        [(200, true), (302, true), (400, true), (401, false), (402, true), (404, true), (409, true), (422, true)]
            .into_iter()
            .chain([(407, false), (425, false), (429, false), (500, true), (503, true)])
    {
        let shop = Shop::default();
        let service = shop.behind(Route::default(), move |_| async move { status(code) });
        assert_eq!(ask(&service, post("k", "{}")).await.status, code);
        let again = ask(&service, post("k", "{}")).await;
        assert_eq!((again.status, again.is_replay(), shop.entered.times()), (code, is_kept, 2 - usize::from(is_kept)));
    }
}

#[tokio::test]
async fn a_handler_says_that_nothing_was_done() {
    let said: [fn() -> Response<Body>; 2] = [
        || Response::builder().status(400).header("idempotency-outcome", "not-executed").body(Body::default()).unwrap(),
        || Response::builder().status(400).extension(Outcome::NotExecuted).body(Body::default()).unwrap(),
    ];
    for said in said {
        let shop = Shop::default();
        let service = shop.behind(Route::default(), move |_| async move { said() });
        let first = ask(&service, post("k", "{}")).await;
        assert_eq!(first.header("idempotency-outcome"), None, "it does not leave the service");
        let corrected = ask(&service, post("k", "{\"corrected\": true}")).await;
        assert_eq!((corrected.status, corrected.is_replay(), shop.entered.times()), (400, false, 2));
    }
}

#[tokio::test]
async fn a_handler_that_does_not_know_is_not_entered_again() {
    for word in ["unknown", "perhaps"] {
        let shop = Shop::default();
        let service = shop.behind(Route::default(), move |_| async move {
            Response::builder().status(504).header("idempotency-outcome", word).body(Body::default()).unwrap()
        });
        assert_eq!(ask(&service, post("k", "{}")).await.status, 504);
        ask(&service, post("k", "{}")).await.is_refused(409, "unknown-outcome");
        assert_eq!(shop.entered.times(), 1);
    }
}

/// Rows 20 and 60: a handler that breaks is not run again, unless the route says that it can bear it.
#[tokio::test]
async fn a_panic_is_an_unknown_outcome() {
    let shop = Shop::default();
    let service = shop.behind(Route::default(), |_| async { panic!("after the effect") });
    ask(&service, post("k", "{}")).await.is_refused(500, "internal");
    ask(&service, post("k", "{}")).await.is_refused(409, "unknown-outcome");
    assert_eq!(shop.entered.times(), 1);
}

#[tokio::test]
async fn a_route_that_can_bear_it_is_entered_again() {
    for (on_unknown, is_resumed) in [(OnUnknown::Resume, true), (OnUnknown::Release, false)] {
        let shop = Shop::default();
        let policy = Policy { on_unknown, ..Policy::default() };
        let service = shop.behind(Route { policy, ..Route::default() }, |request: Request<Body>| {
            let attempt = request.extensions().get::<Attempt>().cloned().unwrap();
            let body = Full::from(attempt.resume.to_string());
            async move {
                Response::builder()
                    .status(if attempt.number == 1 && !attempt.resume { 500 } else { 201 })
                    .body(body)
                    .unwrap()
            }
        });
        assert_eq!(ask(&service, post("k", "{}")).await.status, 500);
        let second = ask(&service, post("k", "{}")).await;
        assert_eq!((second.text() == "true", shop.entered.times()), (is_resumed, 2), "{second:?}");
    }
}
