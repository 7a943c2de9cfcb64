//! A NATS server with JetStream, on a port and in a folder of its own; restarted on both after a kill.

use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::{Process, greeting, installed};

#[derive(Debug)]
pub struct Nats {
    pub port: u16,
    folder: TempDir,
    process: Process,
}

impl Nats {
    /// Returns when the server has greeted. It chooses its port itself, so that nobody can take it in between.
    pub fn start() -> Nats {
        let folder = tempfile::tempdir().expect("a folder");
        let mut process = serve("-1", &folder);
        let port = process.wait_for("NATS names its port", || named_port(&folder));
        Nats { port, folder, process: greeted(process, port) }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The broker is down until `restart`.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// The same port and the same streams.
    pub fn restart(&mut self) {
        self.process.kill();
        self.process = greeted(serve(&self.port.to_string(), &self.folder), self.port);
    }
}

fn serve(port: &str, folder: &TempDir) -> Process {
    let mut command = Command::new(installed("WF_NATS_SERVER", "nats-server"));
    command.args(["--addr", "127.0.0.1", "--port", port, "--jetstream", "--store_dir"]).arg(folder.path());
    command.arg("--ports_file_dir").arg(folder.path());
    Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
}

/// From the file `*.ports`, which holds `"nats://127.0.0.1:PORT"`.
fn named_port(folder: &TempDir) -> Option<u16> {
    let files = std::fs::read_dir(folder.path()).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let file = files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "ports"))?;
    let text = std::fs::read_to_string(file).ok()?;
    let (_, behind) = text.split_once("nats://127.0.0.1:")?;
    behind.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn greeted(mut process: Process, port: u16) -> Process {
    process.wait_for("NATS greets", || greeting(port).filter(|text| text.starts_with("INFO ")));
    process
}
