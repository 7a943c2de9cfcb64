//! Processes: our own binary as a child (the demo's and the bench's engine), signals in and out.
//! It knows no protocol but the line that a node prints when it listens.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::output::Failure;

/// What a node prints on stdout once it answers, followed by its address. Tests and tools wait for this line.
pub const READY: &str = "listening on ";

const READY_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(30);

/// A child of this same binary that listens somewhere. Ends with its owner.
pub struct Node {
    child: Child,
    /// `http://127.0.0.1:PORT`
    pub url: String,
}

impl Node {
    /// `wf ARGS…`, ready when this returns. Its log goes to `log`, or nowhere.
    pub async fn start(args: &[String], env: &[(&str, &str)], log: Option<&Path>) -> Result<Node, Failure> {
        let binary = std::env::current_exe()?;
        let mut command = Command::new(binary);
        // What is meant for the user's own node must not configure this one.
        let meant_for_others = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("WF_"));
        meant_for_others.for_each(|(name, _)| {
            command.env_remove(name);
        });
        command.args(args).envs(env.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        command.stderr(log_file(log)?);
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| Failure::work("the child has no output"))?;
        let mut lines = BufReader::new(stdout).lines();
        let ready = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(url) = line.strip_prefix(READY) {
                    return Some(url.trim().to_owned());
                }
            }
            None
        };
        match tokio::time::timeout(READY_MAX, ready).await {
            Ok(Some(url)) => {
                // Whatever it prints later must not fill the pipe.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                Ok(Node { child, url })
            }
            _ => Err(Failure::work(format!("`wf {}` did not start{}", args.join(" "), said(log)))),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    /// SIGKILL: nothing is flushed, nobody is told.
    pub async fn kill(mut self) {
        // Gone already is as good.
        let _ = self.child.kill().await;
    }

    /// Resolves when the process has ended by itself.
    pub async fn ended(&mut self, within: Duration) -> bool {
        tokio::time::timeout(within, self.child.wait()).await.is_ok()
    }

    /// SIGTERM: finishes its work, then ends.
    pub async fn stop(mut self) -> Result<(), Failure> {
        signal(self.child.id(), Signal::TERM);
        match tokio::time::timeout(STOP_MAX, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(Failure::work(format!("the server ended with {status}"))),
            Ok(Err(error)) => Err(Failure::work(error)),
            Err(_) => Err(Failure::work("the server did not end within 30 s")),
        }
    }

    /// Resident memory in bytes, where the system tells it.
    pub fn resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kilobytes * 1024)
    }
}

fn log_file(log: Option<&Path>) -> Result<Stdio, Failure> {
    let Some(path) = log else { return Ok(Stdio::null()) };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    Ok(Stdio::from(file))
}

/// The end of the child's log, for a message.
fn said(log: Option<&Path>) -> String {
    let text = log.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(5).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(":\n{}", lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
}

fn signal(id: Option<u32>, signal: Signal) {
    let pid = id.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Ends everything in the process group that `id` leads.
pub fn kill_group(id: u32) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
}

/// Resolves at SIGTERM or Ctrl-C. Both are listened for from the call on, not from the first poll: who stops a node right
/// after its first word shall find it listening.
pub fn stop_signal() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let streams = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    async move {
        let (Ok(mut terminate), Ok(mut interrupt)) = streams else { return std::future::pending().await };
        tokio::select! {
            _ = terminate.recv() => (),
            _ = interrupt.recv() => (),
        }
    }
}

/// A file at the limit that the system sets for it (`ulimit -f`) fails the write, as a full disk does; without a listener
/// the signal would end the process.
pub fn survive_file_limits() {
    use tokio::signal::unix::{SignalKind, signal};
    if let Err(error) = signal(SignalKind::from_raw(Signal::XFSZ.as_raw())) {
        tracing::warn!(%error, "a file at its size limit will end the process");
    }
}
