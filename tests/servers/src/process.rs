//! A server's process: signalled by its id, waited for, and ended together with its folder when the test is gone.

use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up with a message. Generous: a loaded machine is slow, not wrong.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid as i32) {
        let _ = kill_process(pid, signal);
    }
}

/// The processes that this one started, where the system shows them. A server's backends outlive its main process for a
/// moment, and one that is to lose its power loses all of them at once.
pub fn children(pid: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|&id| parent_of(id) == Some(pid)).collect()
}

/// The fourth field of `stat`; the second is the program's name in brackets and may contain anything.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Asks `probe` until it answers. Fails with `what` when patience ends.
pub fn until<T>(what: &dyn Fn() -> String, mut probe: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = probe() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "{}", what());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A shell that outlives this process by a moment: its input ends when we do, however we end, and then it ends the server
/// named in the folder's `pid` file and removes the folder.
pub struct Guard(Child);

impl Guard {
    pub fn over(folder: &Path) -> Guard {
        use std::os::unix::process::CommandExt;
        let script =
            r#"read -r _; [ -f "$1/pid" ] && kill -QUIT "$(cat "$1/pid")" 2>/dev/null && sleep 1; rm -rf -- "$1""#;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script, "guard"]).arg(folder);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).current_dir("/");
        Guard(shell.spawn().expect("a shell"))
    }
}

impl Drop for Guard {
    /// The owner has ended its server and removed its `pid` file: what is left to the shell is the folder.
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
