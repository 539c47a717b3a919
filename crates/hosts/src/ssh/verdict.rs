//! How a program ended, as a report or as an error that says who must act.

use super::Door;
use super::output::Seen;
use crate::error::{Error, Kind};
use crate::program::{Program, Report};

/// How many of the last lines may tell why a program failed.
const LAST: usize = 10;
/// How much of a line is put into an error.
const SHOWN: usize = 300;

/// How it ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// With a status.
    Status(u32),
    /// By a signal.
    Signal(String),
    /// The host did not begin it.
    Refused,
    /// We do not know.
    Lost,
}

/// The report of a program that ended well, or why it did not.
pub(super) fn judge(
    door: &Door,
    title: &str,
    ended: &Ended,
    seen: Seen,
    why: &str,
) -> Result<Report, Error> {
    let error = |kind, why: &str| Err(Error::new(kind, format!("`{title}` on {door}: {why}")));
    let began = seen.began;
    let status = match ended {
        Ended::Status(status) => Some(*status),
        Ended::Signal(_) => None,
        Ended::Refused => return error(Kind::Failed, "the host refuses to run programs"),
        Ended::Lost => {
            let when = if began {
                "while it ran"
            } else {
                "before it ran"
            };
            return error(
                Kind::Lost,
                &format!("the connection was lost {when}: {why}"),
            );
        }
    };
    let report = Report {
        status,
        marks: seen.marks,
        tail: seen.tail,
        dropped: seen.dropped,
    };
    if status == Some(0) {
        return Ok(report);
    }
    if let Some((code, what)) = report.failure() {
        return error(Kind::of_code(code).unwrap_or(Kind::Failed), what);
    }
    let how = match ended {
        Ended::Signal(signal) => format!("was ended by signal {signal}"),
        Ended::Status(status) => format!("ended with status {status}"),
        Ended::Refused | Ended::Lost => String::new(),
    };
    let said = report.tail.last().map_or(String::new(), |line| {
        format!(": {}", line.chars().take(SHOWN).collect::<String>())
    });
    error(kind(status, began, &report.tail), &format!("{how}{said}"))
}

/// What the last lines tell.
fn kind(status: Option<u32>, began: bool, tail: &[String]) -> Kind {
    let last = || tail.iter().rev().take(LAST);
    let told = |words: &str| last().any(|line| line.contains(words));
    if told("No space left on device") {
        Kind::DiskFull
    } else if told("Read-only file system") {
        Kind::ReadOnly
    } else if !began && status.is_some() {
        // What runs instead of our shell: a sudo that refuses, an account without a shell, a
        // root that is told to come as somebody else.
        Kind::NoSudo
    } else if status == Some(127) && told("not found") {
        Kind::MissingTool
    } else {
        Kind::Failed
    }
}

/// A program that took too long.
pub(super) fn hung(door: &Door, program: &Program, gone: bool) -> Error {
    let end = if gone {
        "and was ended"
    } else {
        "and could not be seen to end"
    };
    let (title, limit) = (&program.title, program.limit);
    let what = format!("`{title}` on {door}: took longer than {limit:?} {end}");
    Error::new(Kind::Hung, what)
}

/// A program that is not wanted any more.
pub(super) fn called_off(door: &Door, title: &str) -> Error {
    Error::new(Kind::Lost, format!("`{title}` on {door}: was called off"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Mark;

    fn judged(user: &str, status: u32, began: bool, tail: &[&str], marks: Vec<Mark>) -> Kind {
        let door = Door {
            host: [192, 0, 2, 1].into(),
            port: 22,
            user: user.to_owned(),
            jump: None,
        };
        let seen = Seen {
            began,
            marks,
            tail: tail.iter().map(|&line| line.to_owned()).collect(),
            ..Seen::default()
        };
        let error = judge(&door, "try", &Ended::Status(status), seen, "").unwrap_err();
        assert!(
            error
                .what
                .starts_with(&format!("`try` on {user}@192.0.2.1:22: "))
        );
        error.kind
    }

    #[test]
    fn each_end_has_its_kind() {
        let full = "cp: error writing 'x': No space left on device";
        let failed = Mark::Failed("HOST-015".to_owned(), "it does not start".to_owned());
        let odd = Mark::Failed("HOST-999".to_owned(), "odd".to_owned());
        assert_eq!(
            judged("root", 1, true, &[full, "cleanup"], vec![]),
            Kind::DiskFull
        );
        assert_eq!(
            judged("root", 1, true, &[full], vec![failed]),
            Kind::Service
        );
        assert_eq!(judged("root", 1, true, &[], vec![odd]), Kind::Failed);
        let read_only = "touch: /x: Read-only file system";
        assert_eq!(
            judged("root", 1, true, &[read_only], vec![]),
            Kind::ReadOnly
        );
        let missing = "sh: 1: frobnicate: not found";
        assert_eq!(
            judged("root", 127, true, &[missing], vec![]),
            Kind::MissingTool
        );
        assert_eq!(judged("root", 1, true, &[missing], vec![]), Kind::Failed);
        let sudo = "sudo: a password is required";
        assert_eq!(judged("ada", 1, false, &[sudo], vec![]), Kind::NoSudo);
        assert_eq!(judged("ada", 1, true, &[sudo], vec![]), Kind::Failed);
        let other = "Please login as the user \"ada\" rather than the user \"root\".";
        assert_eq!(judged("root", 142, false, &[other], vec![]), Kind::NoSudo);
    }
}
