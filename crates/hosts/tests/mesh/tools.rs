//! Whether worlds can be made on this machine.

use std::process::Command;

/// What every world needs; the first that is missing is a reason to skip.
const TOOLS: [&str; 8] = [
    "unshare",
    "nsenter",
    "flock",
    "ip",
    "wg",
    "wg-quick",
    "wireguard-go",
    "ping",
];

/// Whether worlds can be made here; says why not.
pub(crate) fn possible(test: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        lab::skip(test, "needs root");
        return false;
    }
    possible_with(test, &TOOLS)
}

/// Whether tools are there; says which is not.
pub(crate) fn possible_with(test: &str, tools: &[&str]) -> bool {
    for tool in tools {
        let look = format!("command -v {tool} >/dev/null");
        let found = Command::new("sh").args(["-c", &look]).status();
        if !found.unwrap().success() {
            lab::skip(test, &format!("{tool} is not installed"));
            return false;
        }
    }
    if std::fs::File::open("/dev/net/tun").is_err() {
        lab::skip(test, "not possible here: there is no /dev/net/tun");
        return false;
    }
    true
}
