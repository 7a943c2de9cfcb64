//! What a client sees along an order's life. Exact bytes where clients depend on them.

use serde_json::json;

use crate::support::*;

#[tokio::test]
async fn an_order_from_deployment_to_its_end() {
    let service = Service::plain().await;
    let deployed = service.send("POST /api/v1/definitions", &[XML], WORK).await;
    assert_eq!(deployed.status, 201);
    let definition = &deployed.json()["definitions"][0];
    assert_eq!((&definition["processDefinitionId"], &definition["version"]), (&json!("order"), &json!(1)));
    assert_eq!((&definition["duplicate"], &definition["resourceName"]), (&json!(false), &json!("order.bpmn")));
    let again = service.send("POST /api/v1/definitions", &[XML], WORK).await;
    assert_eq!((again.status, &again.json()["definitions"][0]["duplicate"]), (200, &json!(true)));

    let started = service
        .post(
            "/api/v1/instances",
            r#"{"processDefinitionId":"order","variables":{"amount": 1.50 , "b":[ 1, "x  y" ]}}"#,
        )
        .await;
    let key = text(&started.json()["key"]);
    assert_eq!(started.status, 201);
    let expected =
        format!(r#"{{"key":"{key}","processDefinitionId":"order","version":1,"state":"ACTIVE","existing":false}}"#);
    assert_eq!(started.body, expected);
    assert_eq!(started.header("location"), format!("/api/v1/instances/{key}"));
    assert_eq!(started.header("cache-control"), "no-store");

    let detail = service.get(&format!("/api/v1/instances/{key}")).await.json();
    let element = &detail["activeElements"][0];
    assert_eq!((&element["elementId"], &element["type"]), (&json!("pay"), &json!("serviceTask")));
    assert_eq!((&element["waitingFor"]["kind"], &element["waitingFor"]["name"]), (&json!("job"), &json!("work")));

    let activated = service.post("/api/v1/jobs/activate", r#"{"type":"work","worker":"w","leaseMs":60000}"#).await;
    // L4.1: numbers exactly as they came, the provider's key beside them.
    assert!(activated.body.contains(r#""variables":{"amount":1.50,"b":[1,"x  y"]}"#), "{}", activated.body);
    let job = activated.json()["jobs"][0].clone();
    let job_key = text(&job["key"]);
    assert_eq!(job["idempotencyKey"], format!("wf-job-{job_key}"));
    assert_eq!(job["customHeaders"], json!({"currency": "EUR"}));
    assert_eq!(job["deadline"], "2027-01-15T08:01:00.000Z");
    assert_eq!(job["processInstanceKey"], key);

    // L4.4: the first write of a step wins.
    let step = format!("PUT /api/v1/jobs/{job_key}/steps/charge");
    let first = service.send(&step, &[JSON], r#"{"worker":"w","result":{"id": 1}}"#).await;
    assert_eq!(first.body, r#"{"name":"charge","result":{"id":1},"recorded":true}"#);
    let second = service.send(&step, &[JSON], r#"{"worker":"w","result":null}"#).await;
    assert_eq!(second.body, r#"{"name":"charge","result":{"id":1},"recorded":false}"#);

    let listed = service.get("/api/v1/jobs?type=work&state=ACTIVATED").await.json();
    assert_eq!((&listed["items"][0]["elementId"], &listed["items"][0]["worker"]), (&json!("pay"), &json!("w")));

    // L3.3, L3.4: somebody else is told not to retry; the holder's repeat is told so.
    let complete = format!("/api/v1/jobs/{job_key}/complete");
    let stranger = service.post(&complete, r#"{"worker":"other"}"#).await;
    assert_eq!(stranger.verdict(), "409 job-lease-lost");
    assert_eq!((&stranger.json()["retry"], &stranger.json()["reason"]), (&json!(false), &json!("taken")));
    let lease = format!(r#"{{"worker":"w","lease":{},"variables":{{"paid":true}}}}"#, job["lease"]);
    assert_eq!(service.post(&complete, &lease).await.body, r#"{"state":"COMPLETED","duplicate":false}"#);
    assert_eq!(service.post(&complete, &lease).await.body, r#"{"state":"COMPLETED","duplicate":true}"#);

    let ended = service.get(&format!("/api/v1/instances/{key}")).await.json();
    assert_eq!((&ended["state"], &ended["activeElements"]), (&json!("COMPLETED"), &json!([])));
    let cancel = service.post(&format!("/api/v1/instances/{key}/cancel"), "").await;
    assert_eq!(cancel.verdict(), "409 instance-finished");
}

#[tokio::test]
async fn a_failed_job_waits_for_an_operator() {
    // L3.5
    let service = Service::plain().await;
    service.deploy(WORK).await;
    let key = service.start(r#"{"processDefinitionId":"order"}"#).await;
    let job = text(&service.activate().await["key"]);
    let failed = service.post(&format!("/api/v1/jobs/{job}/fail"), r#"{"worker":"w","message":"no\nnetwork"}"#).await;
    let incident = text(&failed.json()["incidentKey"]);
    assert_eq!(failed.body, format!(r#"{{"state":"FAILED","retries":0,"incidentKey":"{incident}"}}"#));
    let listed = service.get("/api/v1/incidents").await.json();
    let shown = &listed["items"][0];
    assert_eq!((&shown["type"], &shown["message"]), (&json!("JOB_NO_RETRIES"), &json!("no\nnetwork")));
    assert_eq!((&shown["jobKey"], &shown["elementId"]), (&json!(job), &json!("pay")));
    let detail = service.get(&format!("/api/v1/instances/{key}")).await.json();
    assert_eq!(detail["activeElements"][0]["waitingFor"], json!({"kind": "incident", "key": incident}));
    let resolved = service.post(&format!("/api/v1/incidents/{incident}/resolve"), "{}").await;
    assert_eq!(resolved.body, format!(r#"{{"key":"{incident}","state":"RESOLVED"}}"#));
    assert_eq!(service.activate().await["key"], job);
    let thrown = service.post(&format!("/api/v1/jobs/{job}/error"), r#"{"worker":"w","errorCode":"E1"}"#).await;
    assert_eq!(thrown.body, r#"{"state":"ERROR_THROWN"}"#);
}

#[tokio::test]
async fn a_batch_completes_item_by_item() {
    let service = Service::plain().await;
    service.deploy(WORK).await;
    service.start(r#"{"processDefinitionId":"order"}"#).await;
    let job = text(&service.activate().await["key"]);
    let body = format!(r#"{{"worker":"w","jobs":[{{"key":7}},{{"key":{job}}},{{"key":"{job}"}}]}}"#);
    let results = service.post("/api/v1/jobs/complete", &body).await.json()["results"].clone();
    assert_eq!((&results[0]["key"], &results[0]["problem"]["code"]), (&json!("7"), &json!("job-not-found")));
    assert_eq!(results[1], json!({"key": job, "state": "COMPLETED", "duplicate": false}));
    assert_eq!(results[2], json!({"key": job, "state": "COMPLETED", "duplicate": true}));
}

#[tokio::test]
async fn l5_7_a_message_is_correlated_once() {
    let service = Service::plain().await;
    service.deploy(WAIT).await;
    let key = service.start(r#"{"processDefinitionId":"waiter","variables":{"id":"A7"}}"#).await;
    let detail = service.get(&format!("/api/v1/instances/{key}")).await.json();
    let waiting = &detail["activeElements"][0]["waitingFor"];
    assert_eq!((&waiting["kind"], &waiting["name"]), (&json!("message"), &json!("paid")));
    assert_eq!(waiting["correlationKey"], "A7");
    let body = r#"{"name":"paid","correlationKey":"A7","messageId":"m-1"}"#;
    let first = service.post("/api/v1/messages", body).await.json();
    assert_eq!(first["correlated"], json!([{"processInstanceKey": key}]));
    let second = service.post("/api/v1/messages", body).await.json();
    assert_eq!(second, json!({"key": first["key"], "duplicate": true, "correlated": []}));
}

#[tokio::test]
async fn l1_9_a_uniqueness_key_finds_the_active_twin() {
    let service = Service::plain().await;
    service.deploy(WORK).await;
    let start =
        |id: &str| format!(r#"{{"processDefinitionId":"order","uniquenessKey":"id","variables":{{"id":{id}}}}}"#);
    let key = service.start(&start("1")).await;
    let twin = service.post("/api/v1/instances", &start("1.0")).await;
    assert_eq!((twin.status, &twin.json()["key"], &twin.json()["existing"]), (200, &json!(key), &json!(true)));
    assert_ne!(service.start(&start("\"1\"")).await, key);
    for wrong in ["null", "{}", "[1]"] {
        let refused = service.post("/api/v1/instances", &start(wrong)).await;
        assert_eq!(refused.verdict(), "400 validation: uniquenessKey", "{wrong}");
    }
}

#[tokio::test]
async fn lists_are_cut_into_pages() {
    let service = Service::plain().await;
    service.deploy(WORK).await;
    let mut keys = Vec::new();
    for number in 0..5 {
        keys.push(service.start(&format!(r#"{{"processDefinitionId":"order","variables":{{"n":{number}}}}}"#)).await);
    }
    let (mut seen, mut path) = (Vec::new(), "/api/v1/instances?limit=2".to_owned());
    loop {
        let page = service.get(&path).await.json();
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| text(&item["key"])));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("/api/v1/instances?limit=2&cursor={cursor}");
    }
    keys.reverse();
    assert_eq!(seen, keys);
    let found = service.get("/api/v1/instances?variable.n=3&state=ACTIVE").await.json();
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn l6_1_the_audit_is_read_event_by_event() {
    let service = Service::plain().await;
    service.deploy(WORK).await;
    let key = service.start(r#"{"processDefinitionId":"order"}"#).await;
    service.start(r#"{"processDefinitionId":"order"}"#).await;
    service.activate().await;
    let all = service.get("/api/v1/audit?limit=1000").await.json()["items"].clone();
    let all = all.as_array().unwrap();
    let (mut paged, mut path) = (Vec::new(), "/api/v1/audit?limit=3".to_owned());
    loop {
        let page = service.get(&path).await.json();
        paged.extend(page["items"].as_array().unwrap().clone());
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("/api/v1/audit?limit=3&cursor={cursor}");
    }
    assert_eq!(&paged, all);
    let from = text(&all[4]["eventId"]);
    assert_eq!(service.get(&format!("/api/v1/audit?from={from}")).await.json()["items"][0], all[4]);
    let own = service.get(&format!("/api/v1/audit?instance={key}")).await.json()["items"].clone();
    let own: Vec<String> = own.as_array().unwrap().iter().map(|event| text(&event["type"])).collect();
    assert_eq!(own[0], "instance.started");
    assert!(own.contains(&"job.activated".to_owned()) && own.len() < all.len(), "{own:?}");
    assert_eq!(service.get("/api/v1/audit?instance=99").await.verdict(), "404 instance-not-found");
}

#[tokio::test]
async fn the_test_clock_moves_when_it_is_set() {
    let service = Service::plain().await;
    let moved = service.send("PUT /api/v1/clock", &[JSON], r#"{"advanceMs":1500}"#).await;
    assert_eq!(moved.body, r#"{"now":"2027-01-15T08:00:01.500Z"}"#);
    let set = service.send("PUT /api/v1/clock", &[JSON], r#"{"now":"2027-02-01T00:00:00+01:00"}"#).await;
    assert_eq!(set.body, r#"{"now":"2027-01-31T23:00:00.000Z"}"#);
    let past = service.send("PUT /api/v1/clock", &[JSON], r#"{"now":"2027-01-01T00:00:00Z"}"#).await;
    assert_eq!(past.verdict(), "400 validation: now");
    assert_eq!(service.send("DELETE /api/v1/clock", &[], "").await.status, 200);
}

#[tokio::test]
async fn several_files_are_deployed_all_or_none() {
    let service = Service::plain().await;
    let multipart = |second: &str| {
        format!(
            "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a.bpmn\"\r\n\r\n{WORK}\r\n\
             --b\r\nContent-Disposition: form-data; name=\"w\"; filename=\"w.bpmn\"\r\n\r\n{second}\r\n--b--\r\n"
        )
    };
    let kind = ("content-type", "multipart/form-data; boundary=b");
    let refused = service.send("POST /api/v1/definitions", &[kind], multipart("<nothing/>")).await;
    assert_eq!(refused.verdict(), "422 definition-invalid");
    assert_eq!(
        (&refused.json()["errors"][0]["resourceName"], &refused.json()["errors"][0]["line"]),
        (&json!("w.bpmn"), &json!(1))
    );
    assert_eq!(service.get("/api/v1/definitions").await.json()["items"], json!([]));
    let deployed = service.send("POST /api/v1/definitions", &[kind], multipart(WAIT)).await;
    let names: Vec<String> =
        deployed.json()["definitions"].as_array().unwrap().iter().map(|one| text(&one["resourceName"])).collect();
    assert_eq!((deployed.status, names), (201, vec!["a.bpmn".to_owned(), "w.bpmn".to_owned()]));
    assert_eq!(service.get("/api/v1/definitions/waiter/xml").await.body, WAIT);
    assert_eq!(service.get("/api/v1/definitions/waiter?version=2").await.verdict(), "404 definition-not-found");
}
