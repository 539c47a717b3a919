//! Points in time as the wire has them: RFC 3339, in UTC, to the millisecond.

use model::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;

/// A point in time, e.g. `2026-03-01T12:30:00Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(into = "String", try_from = "String")]
#[schema(value_type = String, format = DateTime, example = "2026-03-01T12:30:00Z")]
pub struct Time(Timestamp);

/// Why a text is not a [`Time`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{found}` is not a time of the form 2026-03-01T12:30:00Z")]
pub struct Error {
    /// What was given.
    pub found: String,
}

impl Time {
    /// What the clock of this machine says.
    pub fn now() -> Self {
        Self(Timestamp::from_millis(
            jiff::Timestamp::now().as_millisecond(),
        ))
    }

    /// The same point as the rest of the program knows it.
    pub const fn timestamp(self) -> Timestamp {
        self.0
    }

    /// How long ago this was at `now`; nothing when it is yet to come.
    pub fn age(self, now: Self) -> Duration {
        now.0.since(self.0)
    }

    /// The text with all three digits of the milliseconds, so that times stand in columns.
    pub fn aligned(self) -> String {
        format!("{:.3}", self.0.moment())
    }
}

impl From<Timestamp> for Time {
    fn from(timestamp: Timestamp) -> Self {
        Self(timestamp)
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0.moment().to_string())
    }
}

impl std::str::FromStr for Time {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.parse::<jiff::Timestamp>()
            .map(|moment| Self(Timestamp::from_millis(moment.as_millisecond())))
            .map_err(|_| Error {
                found: text.to_owned(),
            })
    }
}

impl From<Time> for String {
    fn from(time: Time) -> Self {
        time.to_string()
    }
}

impl TryFrom<String> for Time {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

/// A span in its largest unit: `40s`, `3m`, `2h`, `5d`. For people, who need no more.
pub fn brief(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        86_400.. => format!("{}d", seconds / 86_400),
    }
}

/// A span with nothing left out: `90s` is `1m 30s`, `36h` is `1d 12h`. What somebody asked for is
/// what they read.
pub fn exact(span: Duration) -> String {
    let seconds = span.as_secs();
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    if parts.is_empty() {
        return "0s".to_owned();
    }
    parts.join(" ")
}

/// How much time is left: to the nearest hour from a day on, to the nearest minute from a minute
/// on. Three days that somebody asked for a moment ago are `3d`, and not the two that are whole.
pub fn left(span: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    let nearest = |seconds: u64, unit: u64| (seconds + unit / 2) / unit * unit;
    let seconds = span.as_secs() + u64::from(span.subsec_millis() >= 500);
    let unit = match seconds {
        0..MINUTE => 1,
        _ if nearest(seconds, MINUTE) < 24 * HOUR => MINUTE,
        _ => HOUR,
    };
    exact(Duration::from_secs(nearest(seconds, unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_survives_the_wire_to_the_millisecond() {
        let time = Time::from(Timestamp::from_millis(1_700_000_000_123));
        let text = serde_json::to_string(&time).unwrap();
        assert_eq!(text, "\"2023-11-14T22:13:20.123Z\"");
        assert_eq!(serde_json::from_str::<Time>(&text).unwrap(), time);
        let whole = Time::from(Timestamp::from_millis(1_700_000_000_000));
        assert_eq!(
            (whole.to_string(), whole.aligned()),
            (
                "2023-11-14T22:13:20Z".to_owned(),
                "2023-11-14T22:13:20.000Z".to_owned()
            )
        );
    }

    #[test]
    fn times_beyond_the_calendar_are_its_ends() {
        let late = Time::from(Timestamp::from_millis(i64::MAX)).to_string();
        assert!(late.starts_with("9999-12-30"), "{late}");
        let early = Time::from(Timestamp::from_millis(i64::MIN)).to_string();
        assert!(early.starts_with("-009999-01-02"), "{early}");
    }

    #[test]
    fn what_is_not_a_time_is_refused() {
        assert!("yesterday".parse::<Time>().is_err());
        assert!("2026-03-01".parse::<Time>().is_err());
    }

    #[test]
    fn spans_are_told_in_their_largest_unit() {
        let told = [0, 59, 60, 3_599, 3_600, 86_399, 90_000].map(|s| brief(Duration::from_secs(s)));
        assert_eq!(told, ["0s", "59s", "1m", "59m", "1h", "23h", "1d"]);
    }

    #[test]
    fn what_somebody_asked_for_is_what_they_read() {
        let told = [0, 90, 1_800, 5_400, 129_600, 1_209_600].map(Duration::from_secs);
        assert_eq!(
            told.map(exact),
            ["0s", "1m 30s", "30m", "1h 30m", "1d 12h", "14d"]
        );
        // The answer comes a moment later, and is read by somebody whose clock is a little ahead.
        for asked in [40, 60, 1_800, 5_400, 86_400, 129_600, 259_200] {
            let asked = Duration::from_secs(asked);
            assert_eq!(
                left(asked.saturating_sub(Duration::from_millis(400))),
                exact(asked)
            );
        }
        let later = Duration::from_mins(3 * 24 * 60 - 20);
        assert_eq!(left(later), "3d");
    }

    #[test]
    fn what_is_left_is_told_to_the_nearest_hour_or_minute() {
        let told =
            [29, 61, 95, 3_599, 7_140, 86_370, 86_399, 90_000, 214_200].map(Duration::from_secs);
        assert_eq!(
            told.map(left),
            [
                "29s", "1m", "2m", "1h", "1h 59m", "1d", "1d", "1d 1h", "2d 12h"
            ]
        );
    }
}
