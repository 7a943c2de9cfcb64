//! The routes that most tests use, in the contract's own words. It repeats nothing and hides no answer.
//! Next: `node.rs`, what answers.

use std::io::Result;

use serde_json::{Value, json};

use crate::http::{self, Answer, Request, Sent};

/// An address, and what every request to it carries.
#[derive(Clone, Debug)]
pub struct Api {
    /// `HOST:PORT`
    pub address: String,
    headers: Vec<(String, String)>,
}

/// A request that was not sent yet.
#[derive(Clone, Debug)]
pub struct Call {
    address: String,
    pub request: Request,
}

impl Api {
    pub fn at(url: &str) -> Api {
        Api { address: url.trim_start_matches("http://").to_owned(), headers: Vec::new() }
    }

    /// As before, and with this header.
    pub fn with(&self, name: &str, value: &str) -> Api {
        let mut api = self.clone();
        api.headers.push((name.to_owned(), value.to_owned()));
        api
    }

    pub fn tenant(&self, tenant: &str) -> Api {
        self.with("wf-tenant", tenant)
    }

    pub fn bearer(&self, token: &str) -> Api {
        self.with("authorization", &format!("Bearer {token}"))
    }

    pub fn call(&self, method: &str, path: &str) -> Call {
        let headers = self.headers.clone();
        let request = Request { method: method.to_owned(), path: path.to_owned(), headers, body: Vec::new() };
        Call { address: self.address.clone(), request }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.call("GET", path).answer()
    }

    pub fn post(&self, path: &str, body: Value) -> Call {
        self.call("POST", path).json(&body)
    }

    pub fn put(&self, path: &str, body: Value) -> Call {
        self.call("PUT", path).json(&body)
    }

    /// The items of all pages.
    #[track_caller]
    pub fn all(&self, path: &str) -> Vec<Value> {
        let (mut items, mut cursor) = (Vec::new(), String::new());
        loop {
            let joint = if path.contains('?') { '&' } else { '?' };
            let page = self.get(&format!("{path}{joint}limit=1000{cursor}")).expect(200).json();
            items.extend(page["items"].as_array().cloned().unwrap_or_default());
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }

    pub fn deploy(&self, xml: &str) -> Call {
        self.call("POST", "/api/v1/definitions").body("application/xml", xml.as_bytes())
    }

    pub fn start(&self, process: &str, variables: Value) -> Call {
        self.post("/api/v1/instances", json!({"processDefinitionId": process, "variables": variables}))
    }

    /// Starts it and returns its key.
    #[track_caller]
    pub fn started(&self, process: &str, variables: Value) -> String {
        text(&self.start(process, variables).answer().expect(201).json()["key"])
    }

    #[track_caller]
    pub fn instance(&self, key: &str) -> Value {
        self.get(&format!("/api/v1/instances/{key}")).expect(200).json()
    }

    #[track_caller]
    pub fn state(&self, key: &str) -> String {
        text(&self.instance(key)["state"])
    }

    pub fn activate(&self, job_type: &str, worker: &str, max_jobs: usize) -> Call {
        self.post("/api/v1/jobs/activate", json!({"type": job_type, "worker": worker, "maxJobs": max_jobs}))
    }

    /// So many, or all that there are: one poll brings those of one partition.
    #[track_caller]
    pub fn activated(&self, job_type: &str, worker: &str, max_jobs: usize) -> Vec<Value> {
        let mut jobs = Vec::new();
        while jobs.len() < max_jobs {
            match jobs_of(&self.activate(job_type, worker, max_jobs - jobs.len()).answer().expect(200)) {
                more if more.is_empty() => break,
                more => jobs.extend(more),
            }
        }
        jobs
    }

    /// The one job that is there.
    #[track_caller]
    pub fn job(&self, job_type: &str, worker: &str) -> Value {
        let jobs = self.activated(job_type, worker, 10);
        assert_eq!(jobs.len(), 1, "{job_type}: {jobs:?}");
        jobs[0].clone()
    }

    /// By its holder: with the lease that the activation returned.
    pub fn complete(&self, job: &Value, worker: &str, variables: Value) -> Call {
        self.about(job, "complete", json!({"worker": worker, "lease": job["lease"], "variables": variables}))
    }

    pub fn about(&self, job: &Value, verb: &str, body: Value) -> Call {
        self.post(&format!("/api/v1/jobs/{}/{verb}", text(&job["key"])), body)
    }

    pub fn publish(&self, name: &str, correlation_key: &str, message_id: &str, variables: Value) -> Call {
        let body = json!({"name": name, "correlationKey": correlation_key, "messageId": message_id,
            "variables": variables});
        self.post("/api/v1/messages", body)
    }

    /// The test clock, forward.
    #[track_caller]
    pub fn advance(&self, ms: u64) {
        self.put("/api/v1/clock", json!({"advanceMs": ms})).answer().expect(200);
    }

    pub fn audit(&self) -> Vec<Value> {
        self.all("/api/v1/audit")
    }

    /// How many events of this type the tenant's audit has.
    pub fn events(&self, kind: &str) -> usize {
        self.audit().iter().filter(|event| event["type"] == kind).count()
    }

    /// The sum over the lines that begin with `start`: a name, or a name with labels.
    pub fn metric(&self, start: &str) -> f64 {
        let text = self.get("/metrics").expect(200).text();
        let lines = text.lines().filter(|line| line.starts_with(start));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }
}

impl Call {
    pub fn header(mut self, name: &str, value: &str) -> Call {
        self.request.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn key(self, key: &str) -> Call {
        self.header("idempotency-key", key)
    }

    pub fn json(self, body: &Value) -> Call {
        self.body("application/json", body.to_string().as_bytes())
    }

    pub fn body(mut self, content_type: &str, bytes: &[u8]) -> Call {
        self.request.body = bytes.to_vec();
        self.header("content-type", content_type)
    }

    /// An error means: no answer came, and nobody knows what happened.
    pub fn send(&self) -> Result<Answer> {
        http::exchange(&self.address, &self.request)
    }

    /// Sent, and not waited for.
    pub fn begin(&self) -> Result<Sent> {
        http::send(&self.address, &self.request)
    }

    #[track_caller]
    pub fn answer(&self) -> Answer {
        match self.send() {
            Ok(answer) => answer,
            Err(error) => panic!("{} {}: {error}", self.request.method, self.request.path),
        }
    }
}

pub fn jobs_of(answer: &Answer) -> Vec<Value> {
    answer.json()["jobs"].as_array().cloned().unwrap_or_default()
}

/// A JSON string's content.
#[track_caller]
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no string")).to_owned()
}
