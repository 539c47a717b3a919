//! Points in time, as values. Nobody here asks a clock.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Milliseconds since 1970 began, in UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Wraps a count of milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// The count of milliseconds.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This point moved later, as far as the calendar reaches.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// This much earlier.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(span))
    }

    /// How long after `earlier` this is; zero when it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Timestamp {
    /// As programs write it (RFC 3339): `2026-03-07T02:00:00Z`.
    pub fn to_rfc3339(self) -> String {
        self.moment().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The day alone: `2026-03-07`.
    pub fn to_day(self) -> String {
        self.moment().strftime("%Y-%m-%d").to_string()
    }

    /// The nearest point that the calendar has.
    pub fn moment(self) -> jiff::Timestamp {
        let end = if self.0 < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        };
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(end)
    }
}

/// To the minute, for people: `Sat 2026-03-07 02:00 UTC`.
impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.moment().strftime("%a %Y-%m-%d %H:%M UTC").to_string())
    }
}
