//! What Ansible said: how much it changed, and why it failed.

use crate::error::{Error, Kind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// More of a complaint than this helps nobody; the log has all of it.
const SHOWN: usize = 300;

/// What Ansible counted on a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Recap {
    /// Steps that changed something.
    pub(crate) changed: u64,
    /// Steps that found nothing to change.
    pub(crate) unchanged: u64,
    /// Whether the host could not be reached.
    pub(crate) unreachable: bool,
}

/// Listens to Ansible.
pub(super) struct Said<'a> {
    host: &'a str,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    recap: Option<Recap>,
    complaint: Option<String>,
    last: String,
}

impl<'a> Said<'a> {
    pub(super) fn new(host: &'a str) -> Self {
        Self {
            host,
            heard: Mutex::default(),
        }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line.
    pub(super) fn hear(&self, line: &str) {
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        let recap = recap(line, self.host);
        let mut heard = self.heard();
        if let Some(recap) = recap {
            heard.recap = Some(recap);
        } else if complains(line) {
            heard.complaint = Some(shown(line));
        } else {
            heard.last = shown(line);
        }
    }

    /// What came of a run that ended with this status; none where a signal ended it.
    pub(super) fn judge(&self, title: &str, status: Option<i32>) -> Result<Option<Recap>, Error> {
        let heard = self.heard();
        let unreachable = heard.recap.is_some_and(|recap| recap.unreachable);
        let said = heard.complaint.as_ref().unwrap_or(&heard.last);
        match status {
            Some(0) => Ok(heard.recap),
            // The host is away, which says nothing of the playbook.
            Some(_) if unreachable => {
                let what = format!("{title} failed, the host could not be reached: {said}");
                Err(Error::new(Kind::Lost, what))
            }
            Some(status) => {
                let what = format!("{title} failed with status {status}: {said}");
                Err(Error::new(Kind::Playbook, what))
            }
            None => {
                let what = format!("{title} was killed by somebody: {said}");
                Err(Error::new(Kind::Lost, what))
            }
        }
    }
}

fn shown(line: &str) -> String {
    line.chars().take(SHOWN).collect()
}

/// Whether a line says why a play failed.
fn complains(line: &str) -> bool {
    let starts = ["fatal:", "failed:", "ERROR!", "[ERROR]:"];
    starts.iter().any(|start| line.starts_with(start))
}

/// Reads `HOST : ok=2 changed=1 unreachable=0 failed=0 …`.
fn recap(line: &str, host: &str) -> Option<Recap> {
    let counts = line.strip_prefix(host)?.trim_start().strip_prefix(':')?;
    let count = |key: &str| {
        let mut words = counts.split_whitespace();
        let value = words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?;
        value.parse::<u64>().ok()
    };
    let changed = count("changed")?;
    Some(Recap {
        changed,
        unchanged: count("ok")?.saturating_sub(changed),
        unreachable: count("unreachable")? > 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECAP: &str =
        "edge-01                    : ok=3    changed=1    unreachable=0    failed=0    skipped=0";

    fn judged(lines: &[&str], status: Option<i32>) -> Result<Option<Recap>, Error> {
        let said = Said::new("edge-01");
        for line in lines {
            said.hear(line);
        }
        said.judge("playing", status)
    }

    #[test]
    fn the_recap_tells_what_was_changed() {
        let recap = Recap {
            changed: 1,
            unchanged: 2,
            unreachable: false,
        };
        assert_eq!(judged(&["PLAY RECAP ***", RECAP], Some(0)), Ok(Some(recap)));
    }

    #[test]
    fn garbage_is_no_recap() {
        for line in [
            "",
            "edge-01",
            "edge-01 : ok=many changed=1 unreachable=0",
            "edge-01 : changed=1",
            "edge-01 : ok=1 changed=-1 unreachable=0",
            "edge-02 : ok=3 changed=1 unreachable=0",
        ] {
            assert_eq!(judged(&[line], Some(0)), Ok(None), "{line}");
        }
    }

    #[test]
    fn the_last_complaint_is_the_reason() {
        let failed = "fatal: [edge-01]: FAILED! => {\"msg\": \"no such user\"}";
        let error = judged(&["TASK [x] ***", failed, "", RECAP], Some(2)).unwrap_err();
        assert_eq!(error.kind, Kind::Playbook);
        assert!(error.what.ends_with(failed), "{error}");
        let error = judged(&["usage: ansible-playbook"], Some(5)).unwrap_err();
        assert!(error.what.ends_with("ansible-playbook"), "{error}");
        let long = format!("ERROR! {}", "x".repeat(5_000));
        let error = judged(&[&long], Some(1)).unwrap_err();
        assert!(error.what.len() < 400, "{error}");
    }

    #[test]
    fn a_host_that_is_away_is_no_fault_of_the_playbook() {
        let away = RECAP.replace("unreachable=0", "unreachable=1");
        let error = judged(&[&away], Some(4)).unwrap_err();
        assert_eq!(error.kind, Kind::Lost);
        assert_eq!(judged(&[], None).unwrap_err().kind, Kind::Lost);
    }
}
