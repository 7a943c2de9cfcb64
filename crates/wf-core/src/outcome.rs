//! What a command answers. A refusal is a value: it changed nothing, takes no position and leaves the key free.

use std::sync::Arc;

use crate::ids::{Key, Millis};
use crate::rows::{Job, JobState, Json, Text, Variables};

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Deployed(Vec<Deployed>),
    Started(Started),
    Canceled {
        instance: Key,
    },
    VariablesSet {
        key: Key,
    },
    /// Empty: nothing was ready, nothing changed.
    Activated(Vec<Activated>),
    Completed {
        duplicate: bool,
    },
    CompletedMany(Vec<(Key, Result<bool, Rejection>)>),
    Failed {
        state: JobState,
        retries: i32,
        incident: Option<Key>,
    },
    ErrorThrown {
        state: JobState,
        caught_by: Option<Text>,
    },
    Extended {
        deadline: Millis,
    },
    Step {
        name: Text,
        result: Json,
        recorded: bool,
    },
    Published {
        key: Key,
        duplicate: bool,
        misuse: bool,
        correlated: Vec<Key>,
    },
    Resolved {
        incident: Key,
    },
    ClockSet {
        now: Millis,
    },
    /// The engine's own commands answer nobody. `applied`: what it was about was still there.
    Done {
        applied: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployed {
    pub key: Key,
    pub process_id: Text,
    pub version: u32,
    pub resource: Text,
    pub deployed_at: Millis,
    pub duplicate: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub key: Key,
    pub process_id: Text,
    pub version: u32,
    /// A live twin was found by its `uniquenessKey`.
    pub existing: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Activated {
    pub job: Arc<Job>,
    pub process_id: Text,
    pub element_id: Text,
    pub variables: Variables,
    /// A JSON object.
    pub headers: Json,
    /// Steps recorded by earlier attempts, by name.
    pub steps: Variables,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    NotFound(Noun),
    /// The caller does not hold the job; retrying is useless.
    LeaseLost(LeaseLost),
    InstanceFinished,
    Invalid {
        field: &'static str,
        message: String,
    },
    /// An item of a batch whose earlier items took all the work that one command may do.
    OverBudget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noun {
    Definition,
    Instance,
    Job,
    Incident,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseLost {
    /// Its time was over, swept or not.
    Expired,
    /// Another activation holds it, or it waits for one.
    Taken,
    /// It has ended.
    Finished,
}
