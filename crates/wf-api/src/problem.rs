//! Refusals as `application/problem+json` (RFC 9457): a stable code, and members of the case's own.
//! It does not know what led to them, except for the core's rejections. Next: `code.rs`, each code explained.

use utoipa::ToSchema;
use wf_core::outcome::{LeaseLost, Noun, Rejection};

use crate::Code;
use crate::write::{self, Writer};

/// A refusal on its way to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub code: Code,
    /// The code's own, unless a route is configured otherwise.
    pub status: u16,
    pub detail: String,
    /// Names and JSON texts.
    extra: Vec<(&'static str, String)>,
    pub retry_after_s: Option<u64>,
}

/// One thing that is wrong with a body, a parameter or a header.
#[derive(Clone, Debug, PartialEq, Eq, ToSchema)]
pub struct FieldError {
    /// As the client spelled it: `variables.amount`, `jobs[3].key`.
    pub field: String,
    pub message: String,
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        let status = code.explained().status;
        Problem { code, status, detail: detail.into(), extra: Vec::new(), retry_after_s: None }
    }

    pub fn validation(field: &str, message: impl Into<String>) -> Problem {
        Problem::validation_of(vec![FieldError { field: field.to_owned(), message: message.into() }])
    }

    pub fn validation_of(errors: Vec<FieldError>) -> Problem {
        let detail = match &errors[..] {
            [only] => format!("{}: {}", only.field, only.message),
            errors => format!("{} fields are wrong", errors.len()),
        };
        let mut out = Writer::new(64 * errors.len());
        write::list(&mut out, &errors, |out, error| {
            out.raw("{\"field\":").text(&error.field).raw(",\"message\":").text(&error.message).raw("}");
        });
        Problem::new(Code::Validation, detail).with_raw("errors", out)
    }

    pub fn with_status(mut self, status: u16) -> Problem {
        self.status = status;
        self
    }

    /// Whole seconds, at least one: a client that obeys must not spin.
    pub fn retry_after_ms(mut self, ms: i64) -> Problem {
        self.retry_after_s = Some(ms.max(1).unsigned_abs().div_ceil(1000));
        self
    }

    pub fn with_text(self, name: &'static str, text: &str) -> Problem {
        let mut out = Writer::new(text.len() + 2);
        out.text(text);
        self.with_raw(name, out)
    }

    pub(crate) fn with_raw(mut self, name: &'static str, json: Writer) -> Problem {
        self.extra.push((name, json.into_text()));
        self
    }

    /// A member of the case's own, of which the JSON is made already.
    pub fn with_json(mut self, name: &'static str, json: String) -> Problem {
        self.extra.push((name, json));
        self
    }

    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Writer::new(256);
        self.write(&mut out);
        out.finish()
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        let explained = self.code.explained();
        out.raw("{\"type\":\"/problems/").raw(explained.code).raw("\",\"title\":").text(explained.title);
        out.raw(",\"status\":").digits(u64::from(self.status)).raw(",\"detail\":").text(&self.detail);
        out.raw(",\"code\":\"").raw(explained.code).raw("\"");
        for (name, json) in &self.extra {
            out.raw(",\"").raw(name).raw("\":").raw(json);
        }
        out.raw("}");
    }
}

impl From<&Rejection> for Problem {
    fn from(rejection: &Rejection) -> Problem {
        match rejection {
            Rejection::NotFound(noun) => not_found(*noun),
            Rejection::LeaseLost(reason) => lease_lost(*reason),
            Rejection::InstanceFinished => Problem::new(Code::InstanceFinished, "the instance has ended"),
            Rejection::Invalid { field, message } => Problem::validation(field, message.clone()),
            Rejection::OverBudget => {
                Problem::new(Code::Overloaded, "the items before took all the work of one request: send this one again")
            }
        }
    }
}

pub fn not_found(noun: Noun) -> Problem {
    let (code, what) = match noun {
        Noun::Definition => (Code::DefinitionNotFound, "definition"),
        Noun::Instance => (Code::InstanceNotFound, "instance"),
        Noun::Job => (Code::JobNotFound, "job"),
        Noun::Incident => (Code::IncidentNotFound, "incident"),
    };
    Problem::new(code, format!("this tenant has no such {what}"))
}

fn lease_lost(reason: LeaseLost) -> Problem {
    let (reason, detail) = match reason {
        LeaseLost::Expired => ("expired", "the lease ran out; the job goes to another worker"),
        LeaseLost::Taken => ("taken", "the caller does not hold this job; do not retry"),
        LeaseLost::Finished => ("finished", "the job has ended; do not retry"),
    };
    let mut never = Writer::new(8);
    never.bool(false);
    Problem::new(Code::JobLeaseLost, detail).with_raw("retry", never).with_text("reason", reason)
}

/// The shape of every refusal; cases add members of their own.
#[derive(Debug, ToSchema)]
pub struct ProblemBody {
    /// `/problems/<code>`: a page that explains it.
    #[schema(rename = "type")]
    pub problem_type: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    /// Stable: what programs look at.
    pub code: String,
    /// What is wrong, where a body, a parameter or a model is.
    #[schema(value_type = Option<Vec<Object>>)]
    pub errors: Option<Vec<FieldError>>,
    /// `false`: trying again is useless.
    pub retry: Option<bool>,
    /// Why a lease is lost: `expired`, `taken` or `finished`.
    pub reason: Option<String>,
    /// Stands in the server's log as well.
    #[schema(rename = "errorId")]
    pub error_id: Option<String>,
}
