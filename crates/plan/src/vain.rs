//! Work that ends well and changes nothing.

use model::id::MachineId;
use model::task::Action;
use model::time::Timestamp;
use std::time::Duration;

/// So often the same work may end well at a machine while nothing of its cluster changes.
///
/// Whoever says that all is done and does nothing is planned again at once, and says so again: some
/// of that is a look that came late, and more is a circle that only a person ends.
pub const VAIN_MAX: u32 = 5;

/// After this time it is tried once more: what was in its way may be gone where nobody looks.
const AGAIN: Duration = Duration::from_hours(1);

/// Work that ended well again and again since anything of its cluster was last seen to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vain {
    /// At which machine.
    pub machine: MachineId,
    /// What was done.
    pub action: Action,
    /// How often.
    pub times: u32,
    /// When it last ended.
    pub last: Timestamp,
}

impl Vain {
    /// When it is tried once more, where that is not yet.
    pub(crate) fn waits(&self, now: Timestamp) -> Option<Timestamp> {
        let due = self.last.plus(AGAIN);
        (self.times >= VAIN_MAX && now < due).then_some(due)
    }
}
