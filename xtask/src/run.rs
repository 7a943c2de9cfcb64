//! Starting cargo and other programs, with what they were told in the error when they fail.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Runs cargo with these arguments; its output goes where ours goes.
pub fn cargo(args: &[&str]) -> Result<()> {
    cargo_with(args, &[])
}

pub fn cargo_with(args: &[&str], env: &[(&str, PathBuf)]) -> Result<()> {
    let mut command = command(cargo_program());
    command.args(args).envs(env.iter().map(|(name, value)| (name, value)));
    eprintln!("$ cargo {}", args.join(" "));
    let status = command.status().context("cargo does not start")?;
    ensure!(status.success(), "cargo {} failed ({status})", args.join(" "));
    Ok(())
}

/// Is there such a subcommand?
pub fn succeeds(subcommand: &str) -> bool {
    let version = command(cargo_program()).args([subcommand, "--version"]).stderr(Stdio::null()).output();
    version.is_ok_and(|output| output.status.success())
}

/// Builds the binary as users get it and says where cargo put it.
pub fn release_binary(name: &str) -> Result<PathBuf> {
    let executable = |message: &Value| Some(PathBuf::from(message.get("executable")?.as_str()?));
    built(&["build", "--release", "--locked", "--bin", name], executable)
}

/// Builds the simulator. Not beside the release: its features (time that stands, planted bugs) would be the product's too.
pub fn simulator() -> Result<PathBuf> {
    let executable = |message: &Value| Some(PathBuf::from(message.get("executable")?.as_str()?));
    built(&["build", "--locked", "--profile", "sim", "--package", "sim"], executable)
}

/// Builds what takes the power away from the program that it is preloaded into.
pub fn powerloss_layer() -> Result<PathBuf> {
    let name = "powerloss_layer";
    let library = |message: &Value| {
        let is_it = message["target"]["name"] == name && message["target"]["crate_types"][0] == "cdylib";
        is_it.then(|| message["filenames"][0].as_str().map(PathBuf::from)).flatten()
    };
    built(&["build", "--locked", "--package", "powerloss", "--example", name], library)
}

/// Builds the program that is PostgreSQL for as long as a test run takes.
pub fn shared_postgres() -> Result<PathBuf> {
    let executable = |message: &Value| Some(PathBuf::from(message.get("executable")?.as_str()?));
    built(&["build", "--locked", "--package", "servers", "--bin", "shared-postgres"], executable)
}

/// Runs cargo and finds a file among what it says that it made.
fn built(args: &[&str], file: impl Fn(&Value) -> Option<PathBuf>) -> Result<PathBuf> {
    eprintln!("$ cargo {}", args.join(" "));
    let mut command = command(cargo_program());
    let output =
        command.args(args).arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "cargo {} failed", args.join(" "));
    let messages = output.stdout.split(|&byte| byte == b'\n');
    let artifacts = messages.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let files = artifacts.filter_map(|message| file(&message));
    files.last().with_context(|| format!("cargo {} made nothing of that kind", args.join(" ")))
}

/// What cargo knows about this workspace, with all its dependencies.
pub fn metadata() -> Result<Value> {
    let output = command(cargo_program()).args(["metadata", "--format-version", "1", "--locked"]).output()?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata is no JSON")
}

/// A program that never waits for input, run from the repository's root.
pub fn command(program: impl Into<OsString>) -> Command {
    let mut command = Command::new(program.into());
    command.stdin(Stdio::null());
    // Asked when run, not when compiled: two checkouts that share a target directory share this binary.
    if let Some(own_folder) = std::env::var_os("CARGO_MANIFEST_DIR") {
        command.current_dir(PathBuf::from(own_folder).join(".."));
    }
    command
}

fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
