//! Programs of this machine: run with a limit, their last words kept for the error.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// How long the small ones may take, on a machine that is very busy.
pub(crate) const SHORT: Duration = Duration::from_mins(1);

/// Where the programs are; a person's own path often leaves the administrator's out.
pub(crate) fn path() -> OsString {
    let mut path = OsString::from("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    if let Some(own) = std::env::var_os("PATH") {
        path.push(":");
        path.push(own);
    }
    path
}

/// Whether a program is there at all.
pub(crate) fn installed(program: &str) -> bool {
    std::env::split_paths(&path()).any(|directory| directory.join(program).is_file())
}

/// What this machine's system says of itself under a key, such as `ID`.
pub(crate) fn release(key: &str) -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    released(&text, key)
}

/// What a text as in `/etc/os-release` says under a key.
pub(crate) fn released(text: &str, key: &str) -> Option<String> {
    let of = |line: &str| line.strip_prefix(key)?.strip_prefix('=').map(str::to_owned);
    let value = text.lines().find_map(of)?;
    Some(value.trim_matches('"').to_owned())
}

/// A program that reads nothing of ours, speaks English, and ends with whoever waits for it.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env("PATH", path())
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs a program to its end, with a text as its input, and gives what it said on its output.
///
/// The error is one clause: which program, and its last line.
pub(crate) async fn run(
    command: &mut Command,
    input: &str,
    limit: Duration,
) -> Result<String, String> {
    let name = name_of(command);
    if !input.is_empty() {
        command.stdin(Stdio::piped());
    }
    let work = async {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that ends without reading tells why by its status.
            drop(stdin.write_all(input.as_bytes()).await);
        }
        child.wait_with_output().await
    };
    let output = tokio::time::timeout(limit, work)
        .await
        .map_err(|_| format!("{name} did not end within {} s", limit.as_secs()))?
        .map_err(|error| unstarted(&name, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    match said.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) => Err(format!("{name} said: {}", line.trim())),
        None => Err(format!("{name} ended with {}", output.status)),
    }
}

/// Why a program could not even be started, as one clause.
pub(crate) fn unstarted(name: &str, error: &std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::NotFound {
        format!("the program {name} is missing")
    } else {
        format!("{name} could not be started: {error}")
    }
}

fn name_of(command: &Command) -> String {
    let program = Path::new(command.as_std().get_program());
    program
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
