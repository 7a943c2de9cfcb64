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
    let args = ["build", "--release", "--locked", "--bin", name, "--message-format=json-render-diagnostics"];
    eprintln!("$ cargo {}", args.join(" "));
    let output = command(cargo_program()).args(args).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the release build failed");
    let messages = output.stdout.split(|&byte| byte == b'\n');
    let artifacts = messages.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let executable = |message: Value| Some(PathBuf::from(message.get("executable")?.as_str()?));
    artifacts.filter_map(executable).next_back().with_context(|| format!("cargo built no {name}"))
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
