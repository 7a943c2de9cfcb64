//! `wf worker --type T --exec CMD`: each job as JSON into a shell command, its output back as variables.
//! Leases, repeats and the clean stop are the work of `wf_client::Worker`.

use std::process::Stdio;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use wf_client::{FailJob, Job, Outcome, Task, Variables, Worker, WorkerOptions};

use crate::cli::{LogFormat, WorkerArgs};
use crate::output::{self, Done};
use crate::{logs, process};

use super::patient;

/// A command that prints more than this is not printing variables.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;

pub async fn run(args: WorkerArgs) -> Done {
    let _logs = logs::init(LogFormat::Text, "warn");
    let mut options = WorkerOptions::of(&args.job_type);
    options.worker = args.name.unwrap_or(options.worker);
    options.concurrency = args.concurrency;
    options.lease_ms = args.lease_ms;
    options.jobs_max = if args.once { Some(1) } else { args.max };
    let command: Arc<str> = args.exec.into();
    let worker = Worker::new(patient(&args.remote)?, options, move |task: Task| {
        let command = command.clone();
        async move { outcome(&command, &task.job).await }
    });
    output::say(&format!("working on {} at {}", args.job_type, args.remote.server));
    let summary = worker.run(process::stop_signal()).await?;
    output::print(&format!(
        "{} job(s): {} completed, {} failed, {} taken over by others",
        summary.jobs(),
        summary.completed,
        summary.failed,
        summary.lost
    ))
}

async fn outcome(command: &str, job: &Job) -> Outcome {
    let outcome = execute(command, job).await;
    let said = match &outcome {
        Outcome::Fail(failure) => format!("failed: {}", failure.message),
        _ => "completed".to_owned(),
    };
    output::say(&format!("job {} ({}, instance {}): {said}", job.key, job.element_id, job.process_instance_key));
    outcome
}

async fn execute(command: &str, job: &Job) -> Outcome {
    match exchange(command, job).await {
        Ok(variables) => Outcome::Complete(variables),
        Err(message) => Outcome::Fail(FailJob { message, ..FailJob::default() }),
    }
}

async fn exchange(command: &str, job: &Job) -> Result<Variables, String> {
    let input = serde_json::to_vec(job).map_err(|error| error.to_string())?;
    let mut child = start(command, job).map_err(|error| format!("the command cannot be started: {error}"))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut group = Group(child.id());
    // A command that does not read its input is fine; a full pipe must not stop the other two.
    let feed = async {
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(&input).await;
        }
    };
    let collect = async {
        let mut bytes = Vec::new();
        if let Some(stdout) = stdout {
            let _ = stdout.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes).await;
        }
        bytes
    };
    let ((), printed, said) = tokio::join!(feed, collect, last_line(stderr));
    let status = child.wait().await.map_err(|error| error.to_string())?;
    group.0 = None;
    if !status.success() {
        return Err(said.unwrap_or_else(|| format!("the command ended with {status}")));
    }
    variables(&printed)
}

/// A group of its own: Ctrl-C on the terminal stops the worker, which then lets its commands finish.
fn start(command: &str, job: &Job) -> std::io::Result<Child> {
    Command::new("sh")
        .args(["-c", command])
        .env("WF_JOB_KEY", &job.key)
        .env("WF_IDEMPOTENCY_KEY", &job.idempotency_key)
        .env("WF_LINEAGE_KEY", &job.lineage_key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// Ends what the command left running: after a lost lease, because another worker may be doing the same now.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.0 {
            process::kill_group(id);
        }
    }
}

/// Shows what the command says and keeps the last line that is not empty.
async fn last_line(stderr: Option<tokio::process::ChildStderr>) -> Option<String> {
    let mut lines = BufReader::new(stderr?).lines();
    let mut last = None;
    while let Ok(Some(line)) = lines.next_line().await {
        output::echo(&line);
        if !line.trim().is_empty() {
            last = Some(line);
        }
    }
    last
}

fn variables(printed: &[u8]) -> Result<Variables, String> {
    if printed.len() as u64 > OUTPUT_BYTES_MAX {
        return Err(format!("the command printed more than {OUTPUT_BYTES_MAX} bytes"));
    }
    if printed.iter().all(u8::is_ascii_whitespace) {
        return Ok(Variables::new());
    }
    match serde_json::from_slice(printed) {
        Ok(Value::Object(variables)) => Ok(variables),
        Ok(_) => Err("the command printed JSON, but no object of variables".to_owned()),
        Err(error) => Err(format!("the command's output is no JSON: {error}")),
    }
}
