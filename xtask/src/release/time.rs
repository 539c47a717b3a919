//! The one time that everything in a release carries, so that the same source gives the same bytes.

use anyhow::{Context, Result};

/// Names the time from outside, in seconds since 1970; a custom of reproducible builds.
const SOURCE_DATE_EPOCH: &str = "SOURCE_DATE_EPOCH";

/// The time that was asked for, else that of the commit, else none worth telling.
pub(super) fn of_source(commit: Option<&str>) -> Result<u64> {
    match std::env::var(SOURCE_DATE_EPOCH) {
        Ok(text) => text
            .parse()
            .with_context(|| format!("{SOURCE_DATE_EPOCH} is no number of seconds: {text:?}")),
        Err(_) => Ok(commit.and_then(|text| text.parse().ok()).unwrap_or(0)),
    }
}

/// Seconds since 1970 in the notation of the internet.
pub(super) fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date that many days after the first of January 1970.
///
/// Years are counted from March, so that the day that some of them have more is their last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since the first of March of the year 0
    let (era, day) = (days / 146_097, days % 146_097); // 400 years each
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds), text);
        }
    }
}
