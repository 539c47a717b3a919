//! What went wrong, in the form of RFC 9457, and what it means for the one who asked.

use model::fault::Fault;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a problem.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// The removal of more machines at once than the limits allow unasked.
pub const BLAST: &str = "PLAN-001";

/// Machines that go together with data that their cluster keeps on them.
pub const DATA_LOSS: &str = "PLAN-003";

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The kind of problem in a few words; the same for every occurrence.
    pub title: String,
    /// The HTTP status, repeated for those who see the body alone.
    pub status: u16,
    /// Stable name of the problem, e.g. `API-003`; each has a page in the documentation.
    pub code: String,
    /// What happened this time.
    pub detail: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Every fault of the input, where the input is the problem.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultView>,
}

/// One thing wrong with an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FaultView {
    /// Where, e.g. `spec.nodePools.dynamic[2].count`.
    pub path: String,
    /// Which rule was broken, e.g. `range`.
    pub code: String,
    /// What was found and what is allowed.
    pub message: String,
}

impl From<Fault> for FaultView {
    fn from(fault: Fault) -> Self {
        let Fault {
            path,
            code,
            message,
        } = fault;
        Self {
            path,
            code: code.as_str().to_owned(),
            message,
        }
    }
}

impl std::fmt::Display for FaultView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// How a command ended, for the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// It did what was asked.
    Done,
    /// It tried, and it did not work.
    Failed,
    /// It was called wrongly; nothing was tried.
    Usage,
    /// A policy or a limit forbids it.
    Refused,
    /// Somebody else was quicker; look again.
    Conflict,
    /// Somebody pressed Ctrl-C while it waited.
    Interrupted,
    /// As the program ended that was run for it.
    Theirs(u8),
}

impl Exit {
    /// The number the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Conflict => 4,
            // What shells report of a program that the signal ended: 128 and its number.
            Self::Interrupted => 130,
            Self::Theirs(code) => code,
        }
    }
}

impl Problem {
    /// How a command that met this problem ends.
    pub fn exit(&self) -> Exit {
        match self.status {
            403 => Exit::Refused,
            409 | 412 if self.code == BLAST || self.code == DATA_LOSS => Exit::Refused,
            409 | 412 => Exit::Conflict,
            _ => Exit::Failed,
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;
    use model::fault::Code;

    fn problem(status: u16, code: &str) -> Problem {
        Problem {
            title: "title".to_owned(),
            status,
            code: code.to_owned(),
            detail: "detail".to_owned(),
            hint: None,
            faults: Vec::new(),
        }
    }

    #[test]
    fn a_limit_refuses_and_a_race_conflicts() {
        let exits = [
            (409, "PLAN-001"),
            (409, "PLAN-002"),
            (412, "API-004"),
            (403, "API-005"),
        ]
        .map(|(status, code)| problem(status, code).exit().code());
        assert_eq!(exits, [3, 4, 4, 3]);
    }

    #[test]
    fn everything_else_is_a_failure() {
        for status in [400, 401, 404, 413, 415, 422, 500, 503, 507] {
            assert_eq!(problem(status, "API-001").exit(), Exit::Failed, "{status}");
        }
    }

    #[test]
    fn a_problem_without_faults_or_hint_can_be_read() {
        let text = r#"{"title":"a","status":404,"code":"API-002","detail":"b"}"#;
        let read: Problem = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn a_fault_keeps_its_place_and_its_rule() {
        let fault = Fault {
            path: "spec.a".to_owned(),
            code: Code::UnknownField,
            message: "m".to_owned(),
        };
        let view = FaultView::from(fault);
        assert_eq!(
            (view.code.as_str(), view.to_string().as_str()),
            ("unknown-field", "spec.a: m")
        );
    }
}
