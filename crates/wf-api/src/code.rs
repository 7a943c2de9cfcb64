//! The stable codes of refusals, each with its status and what its page says. Programs depend on code and status.
//! It does not know when one is used. Next: `problem.rs`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    IdempotencyKeyMissing,
    IdempotencyKeyMalformed,
    IdempotencyConflict,
    IdempotencyInProgress,
    Validation,
    Unauthenticated,
    Forbidden,
    DefinitionNotFound,
    InstanceNotFound,
    JobNotFound,
    IncidentNotFound,
    NotFound,
    MethodNotAllowed,
    UnsupportedMediaType,
    PayloadTooLarge,
    JobLeaseLost,
    DefinitionInvalid,
    InstanceFinished,
    Overloaded,
    Unavailable,
    OutcomeUnknown,
    Internal,
    UnknownOutcome,
    StoreUnavailable,
    ResponseNotStored,
    Expired,
}

/// What the page under `/problems/<code>` says.
#[derive(Debug)]
pub struct Explained {
    pub code: &'static str,
    pub status: u16,
    pub title: &'static str,
    pub cause: &'static str,
    pub remedy: &'static str,
}

const fn explain(
    code: &'static str,
    status: u16,
    title: &'static str,
    cause: &'static str,
    remedy: &'static str,
) -> Explained {
    Explained { code, status, title, cause, remedy }
}

impl Code {
    pub const ALL: [Code; 26] = [
        Code::IdempotencyKeyMissing,
        Code::IdempotencyKeyMalformed,
        Code::IdempotencyConflict,
        Code::IdempotencyInProgress,
        Code::Validation,
        Code::Unauthenticated,
        Code::Forbidden,
        Code::DefinitionNotFound,
        Code::InstanceNotFound,
        Code::JobNotFound,
        Code::IncidentNotFound,
        Code::NotFound,
        Code::MethodNotAllowed,
        Code::UnsupportedMediaType,
        Code::PayloadTooLarge,
        Code::JobLeaseLost,
        Code::DefinitionInvalid,
        Code::InstanceFinished,
        Code::Overloaded,
        Code::Unavailable,
        Code::OutcomeUnknown,
        Code::Internal,
        Code::UnknownOutcome,
        Code::StoreUnavailable,
        Code::ResponseNotStored,
        Code::Expired,
    ];

    pub fn as_str(self) -> &'static str {
        self.explained().code
    }

    pub fn parse(code: &str) -> Option<Code> {
        Code::ALL.into_iter().find(|known| known.as_str() == code)
    }

    pub fn explained(self) -> &'static Explained {
        match self {
            Code::IdempotencyKeyMissing
            | Code::IdempotencyKeyMalformed
            | Code::IdempotencyConflict
            | Code::IdempotencyInProgress => self.about_keys(),
            Code::DefinitionNotFound
            | Code::InstanceNotFound
            | Code::JobNotFound
            | Code::IncidentNotFound
            | Code::NotFound => self.about_absence(),
            Code::Validation
            | Code::Unauthenticated
            | Code::Forbidden
            | Code::MethodNotAllowed
            | Code::UnsupportedMediaType
            | Code::PayloadTooLarge => self.about_requests(),
            Code::JobLeaseLost | Code::DefinitionInvalid | Code::InstanceFinished => self.about_state(),
            Code::Overloaded | Code::Unavailable | Code::OutcomeUnknown | Code::Internal => self.about_us(),
            Code::UnknownOutcome | Code::StoreUnavailable | Code::ResponseNotStored | Code::Expired => {
                self.about_other_doors()
            }
        }
    }

    fn about_keys(self) -> &'static Explained {
        const MISSING: Explained = explain(
            "idempotency-key-missing",
            400,
            "An Idempotency-Key is required",
            "This route is configured to take requests only with an Idempotency-Key header.",
            "Make a key on the client, a random UUID for instance, once per intended effect, and send the same key with every repeat.",
        );
        const MALFORMED: Explained = explain(
            "idempotency-key-malformed",
            400,
            "The Idempotency-Key cannot be read",
            "The header is empty, longer than 255 bytes, stands on more than one line, or holds bytes that a key must not hold.",
            "Send one line: 1 to 255 visible ASCII characters without quote and comma, or a quoted string.",
        );
        const CONFLICT: Explained = explain(
            "idempotency-conflict",
            409,
            "The key was used with another request",
            "A request with this key was answered before, and its method, path or body differed from this one. Nothing was executed.",
            "A new effect needs a new key. A repeat must send the first request unchanged.",
        );
        const IN_PROGRESS: Explained = explain(
            "idempotency-in-progress",
            409,
            "The first request with this key has not finished",
            "Another request with this key is being executed and did not finish while this one waited.",
            "Wait as long as Retry-After says, then send the same request with the same key.",
        );
        match self {
            Code::IdempotencyKeyMissing => &MISSING,
            Code::IdempotencyKeyMalformed => &MALFORMED,
            Code::IdempotencyConflict => &CONFLICT,
            _ => &IN_PROGRESS,
        }
    }

    fn about_absence(self) -> &'static Explained {
        const DEFINITION: Explained = explain(
            "definition-not-found",
            404,
            "No such process definition",
            "This tenant has deployed no process with this id, or not in this version.",
            "Look at GET /api/v1/definitions, and check with which tenant the process was deployed.",
        );
        const INSTANCE: Explained = explain(
            "instance-not-found",
            404,
            "No such process instance",
            "This tenant has no instance with this key: it never existed, belongs to another tenant, or its retention is over.",
            "Check the key and the tenant.",
        );
        const JOB: Explained = explain(
            "job-not-found",
            404,
            "No such job",
            "This tenant has no job with this key: it never existed, belongs to another tenant, or its retention is over.",
            "Take keys from the activation's answer; do not retry.",
        );
        const INCIDENT: Explained = explain(
            "incident-not-found",
            404,
            "No such incident",
            "This tenant has no open incident with this key; a resolved one is gone.",
            "Look at GET /api/v1/incidents.",
        );
        const NOT_FOUND: Explained = explain(
            "not-found",
            404,
            "There is nothing under this address",
            "The route does not exist, the key in the path is no key, or the feature is switched off.",
            "Look at /openapi.json for what exists.",
        );
        match self {
            Code::DefinitionNotFound => &DEFINITION,
            Code::InstanceNotFound => &INSTANCE,
            Code::JobNotFound => &JOB,
            Code::IncidentNotFound => &INCIDENT,
            _ => &NOT_FOUND,
        }
    }

    fn about_requests(self) -> &'static Explained {
        const VALIDATION: Explained = explain(
            "validation",
            400,
            "The request is wrong",
            "A field, a parameter or a header is missing, unknown, of the wrong kind or out of bounds. Nothing was executed.",
            "Each entry of errors names a field and what is wrong with it. The key, if there was one, is still free.",
        );
        const UNAUTHENTICATED: Explained = explain(
            "unauthenticated",
            401,
            "Who are you?",
            "The Authorization header is absent, not of the form Bearer TOKEN, or its token is unknown.",
            "Send a token that the server's configuration lists under api_key.",
        );
        const FORBIDDEN: Explained = explain(
            "forbidden",
            403,
            "This credential may not do that",
            "The token is known, but none of its roles covers this route.",
            "Use another credential, or have a role added to this one.",
        );
        const METHOD: Explained = explain(
            "method-not-allowed",
            405,
            "The route exists, the method does not",
            "This address is served under another method.",
            "Look at the Allow header or at /openapi.json.",
        );
        const MEDIA_TYPE: Explained = explain(
            "unsupported-media-type",
            415,
            "The body has a media type that this route does not read",
            "Most routes read application/json; deployments are application/xml or multipart/form-data.",
            "Send the right Content-Type header.",
        );
        const TOO_LARGE: Explained = explain(
            "payload-too-large",
            413,
            "The body is too large",
            "Bodies end at 4 MiB.",
            "Keep large documents elsewhere and put a reference into the variables.",
        );
        match self {
            Code::Unauthenticated => &UNAUTHENTICATED,
            Code::Forbidden => &FORBIDDEN,
            Code::MethodNotAllowed => &METHOD,
            Code::UnsupportedMediaType => &MEDIA_TYPE,
            Code::PayloadTooLarge => &TOO_LARGE,
            _ => &VALIDATION,
        }
    }

    fn about_state(self) -> &'static Explained {
        const LEASE: Explained = explain(
            "job-lease-lost",
            409,
            "The caller does not hold this job",
            "The lease ran out, another worker's activation holds the job, or the job has ended. Nothing changed.",
            "Do not retry: the job is somebody else's now. Choose a longer lease, or extend it while the work goes on.",
        );
        const INVALID: Explained = explain(
            "definition-invalid",
            422,
            "The model cannot be executed",
            "The file is no BPMN 2.0 model, or uses something that this engine does not execute. Nothing was deployed.",
            "Each entry of errors names the element, its line and the reason.",
        );
        const FINISHED: Explained = explain(
            "instance-finished",
            409,
            "The instance has ended",
            "The operation needs an active instance; this one is completed or canceled.",
            "Do not retry.",
        );
        match self {
            Code::JobLeaseLost => &LEASE,
            Code::DefinitionInvalid => &INVALID,
            _ => &FINISHED,
        }
    }

    fn about_us(self) -> &'static Explained {
        const OVERLOADED: Explained = explain(
            "overloaded",
            503,
            "The queue is full",
            "More requests wait than the server keeps. Nothing was done.",
            "Wait as long as Retry-After says, then repeat with the same key.",
        );
        const UNAVAILABLE: Explained = explain(
            "unavailable",
            503,
            "The server cannot commit now",
            "The store refused the commit, or the server is stopping. Nothing was done.",
            "Wait as long as Retry-After says, then repeat with the same key.",
        );
        const UNKNOWN: Explained = explain(
            "outcome-unknown",
            503,
            "Whether it was done is not known",
            "The store did not say whether it committed.",
            "Repeat with the same key: it is done once, whatever happened. Without a key, look before you repeat.",
        );
        const INTERNAL: Explained = explain(
            "internal",
            500,
            "Something is wrong on our side",
            "A fault in the server; its log has the details under errorId.",
            "A later retry with the same key is safe. Please report the errorId.",
        );
        match self {
            Code::Overloaded => &OVERLOADED,
            Code::Unavailable => &UNAVAILABLE,
            Code::OutcomeUnknown => &UNKNOWN,
            _ => &INTERNAL,
        }
    }

    /// The gateway and the library refer to the same pages.
    fn about_other_doors(self) -> &'static Explained {
        const UNKNOWN: Explained = explain(
            "unknown-outcome",
            409,
            "The first request may have had its effect",
            "The service behind the gateway took the request and never answered.",
            "Look at the service whether the effect exists; a new effect needs a new key.",
        );
        const STORE: Explained = explain(
            "store-unavailable",
            503,
            "Keys cannot be checked now",
            "The store of idempotency keys does not answer, and running without it could run twice. Nothing was done.",
            "Wait as long as Retry-After says, then repeat with the same key.",
        );
        const NOT_STORED: Explained = explain(
            "response-not-stored",
            409,
            "The first answer was too large to keep",
            "The request was executed once; its answer went to the first caller and was not kept.",
            "Read the result from the service. The original status stands in this problem.",
        );
        const EXPIRED: Explained = explain(
            "expired",
            410,
            "The key is too old",
            "The key was used, and its answer is no longer kept. Nothing was executed.",
            "A new effect needs a new key.",
        );
        match self {
            Code::UnknownOutcome => &UNKNOWN,
            Code::StoreUnavailable => &STORE,
            Code::ResponseNotStored => &NOT_STORED,
            _ => &EXPIRED,
        }
    }
}
