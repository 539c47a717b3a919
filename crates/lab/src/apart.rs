//! Runs a test in namespaces of its own: whatever it leaves ends with it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Tells the test that it is inside, and where it may write.
const APART: &str = "SLIPWAY_TEST_APART";

/// Runs one test of the program that is running, with a network, mounts and processes of its own.
///
/// It is started again and finds itself [`within`]. Loopback works; nothing else is reached.
pub fn apart(test: &str, directory: &Path) -> std::io::Result<ExitStatus> {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child"]);
    // The shell buries whom nobody else does.
    command.args(["--mount-proc", "--", "sh", "-c", INSIDE, "sh"]);
    command.arg(std::env::current_exe()?);
    command.args(["--exact", test, "--nocapture"]);
    command.env(APART, directory).status()
}

/// What the first process inside does.
const INSIDE: &str = "ip link set lo up; \"$@\"; exit $?";

/// Where a test may write that runs apart.
pub fn within() -> Option<PathBuf> {
    std::env::var_os(APART).map(PathBuf::from)
}
