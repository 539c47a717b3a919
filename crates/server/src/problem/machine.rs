//! Problems with entering a machine.

use axum::http::StatusCode;
use model::name::Name;

use super::Problem;
use crate::enter::Shut;

impl Problem {
    /// Several machines of that name: each of them with its id and its cluster.
    pub(crate) fn ambiguous(machine: &Name, found: &[String]) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "API-022",
            "several machines of that name",
            format!(
                "machine `{machine}` is there {} times: {}",
                found.len(),
                found.join(", ")
            ),
            "name the one that is meant by its id",
        )
    }

    /// A machine that nobody can enter, because there is none.
    pub(crate) fn nothing_to_enter(machine: &Name) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "API-018",
            "nothing to enter",
            format!("machine `{machine}` is simulated: there is nothing to enter"),
            "machines of the sandbox and given ones can be entered; `slipway describe machine` says which one it is",
        )
    }

    /// A machine that does not exist yet, or no longer.
    pub(crate) fn not_seen_yet(machine: &Name) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "API-019",
            "machine not there yet",
            format!("machine `{machine}` was not seen yet: Slipway has not entered it itself"),
            format!(
                "wait until it runs; `slipway describe machine {machine}` says how it was last seen"
            ),
        )
    }

    /// A machine that does not let anybody in now.
    pub(crate) fn shut(machine: &Name, shut: &Shut) -> Self {
        Self::new(
            StatusCode::BAD_GATEWAY,
            "API-020",
            "machine cannot be entered",
            format!("machine `{machine}` could not be entered: {}", shut.what),
            "see that it runs and can be reached from the server, then try again; the code in brackets has a page of its own",
        )
    }
}
