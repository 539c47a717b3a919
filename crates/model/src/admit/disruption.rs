//! How a manifest says how many machines may be out of service at once, and when.
//!
//! Three places say it. The manifest names groups with their budgets, `spec.disruption.groups`;
//! a pool has a budget of its own and belongs to a group, `disruption: {unavailable, group}`; a
//! cluster has a budget and windows, `disruption: {unavailable, windows}`. A window is
//! `{days: [Sat, Sun], start: "22:00", duration: 4h, offset: "+02:00"}`, where no days mean
//! every day and no offset means UTC. `examples/maintenance.yaml` has all of it.

use super::fields::Fields;
use super::parts::{Names, Parts, Title};
use crate::disruption::{Day, PoolBudget, UNAVAILABLE_DEFAULT, Window, Windows};
use crate::fault::{Code, Faults};
use crate::manifest::UNAVAILABLE_MAX;
use crate::name::Name;
use crate::source::Value;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The most windows of one cluster: two for each day of the week are fourteen.
const WINDOWS_MAX: usize = 50;

/// Minutes that a window can be open. In less than ten nothing that is begun is finished; a
/// week is always.
const OPEN: RangeInclusive<u32> = 10..=7 * 24 * 60;

/// The clocks that people have, in minutes ahead of UTC.
const OFFSETS: RangeInclusive<i16> = -12 * 60..=14 * 60;

/// The groups of a manifest, each with its budget.
pub(super) fn groups_of(spec: &mut Fields<'_>, faults: &mut Faults) -> Parts<Option<u32>> {
    let said = spec.has("disruption");
    let Some(mut fields) = spec.mapping("disruption", faults) else {
        return if said { Parts::lost() } else { Parts::none() };
    };
    let groups = Parts::of(&mut fields, "groups", faults, |mut group, _, faults| {
        let title = Title::of(&mut group, "name", Name::LEN_MAX, faults);
        let unavailable = group.number("unavailable", 1..=UNAVAILABLE_MAX, faults);
        group.finish(faults);
        (title, unavailable)
    });
    fields.finish(faults);
    groups
}

/// What a pool says of itself, and the group that it names.
pub(super) fn of_pool(
    pool: &mut Fields<'_>,
    groups: &Parts<Option<u32>>,
    faults: &mut Faults,
) -> (PoolBudget, Names) {
    let said = pool.has("disruption");
    let Some(mut fields) = pool.mapping("disruption", faults) else {
        let group = if said {
            Names::lost()
        } else {
            Names::default()
        };
        return (PoolBudget::default(), group);
    };
    let unavailable = fields.optional_number("unavailable", 1..=UNAVAILABLE_MAX, faults);
    let named = Names::one(&mut fields, "group", ("group", Name::LEN_MAX), faults);
    named.refuse(groups, "group", faults);
    fields.finish(faults);
    let group = named.iter().next().cloned();
    (PoolBudget { unavailable, group }, named)
}

/// The budget of a cluster, and its windows.
pub(super) fn of_cluster(cluster: &mut Fields<'_>, faults: &mut Faults) -> (u32, Windows) {
    let Some(mut fields) = cluster.mapping("disruption", faults) else {
        return (UNAVAILABLE_DEFAULT, Windows::default());
    };
    let unavailable = fields.optional_number("unavailable", 1..=UNAVAILABLE_MAX, faults);
    let mut windows = Vec::new();
    for (path, value) in fields.items("windows", WINDOWS_MAX, faults) {
        windows.extend(window_of(value, &path, faults));
    }
    fields.finish(faults);
    (unavailable.unwrap_or(UNAVAILABLE_DEFAULT), Windows(windows))
}

fn window_of(value: &Value, path: &str, faults: &mut Faults) -> Option<Window> {
    let mut fields = Fields::open(value, path, faults)?;
    let days = days_of(&mut fields, faults);
    let start: Option<Clock> = fields.parsed("start", faults);
    let open: Option<Span> = fields.parsed("duration", faults);
    let offset: Option<Offset> = fields.optional_parsed("offset", faults);
    fields.finish(faults);
    Some(Window {
        days,
        start: start?.0,
        minutes: open?.0,
        offset: offset.map_or(0, |offset| offset.0),
    })
}

/// The days of a window; every day where none is said.
fn days_of(fields: &mut Fields<'_>, faults: &mut Faults) -> BTreeSet<Day> {
    if fields.empty_list("days") {
        let message = "found no day, allowed: at least one, or no list for every day";
        faults.note(fields.path("days"), Code::Required, message);
    }
    let said = fields.has("days");
    let items = fields.items("days", Day::ALL.len(), faults);
    if !said {
        return Day::ALL.into();
    }
    let mut days = BTreeSet::new();
    for (path, item) in items {
        let day = Day::ALL
            .into_iter()
            .find(|day| matches!(item, Value::Text(text) if text == day.as_str()));
        match day {
            None => {
                let all = Day::ALL.map(Day::as_str).join(", ");
                faults.note(path, Code::Format, format!("found {item}, allowed: {all}"));
            }
            Some(day) if !days.insert(day) => {
                faults.note(
                    path,
                    Code::Duplicate,
                    format!("found {item} twice in one list"),
                );
            }
            Some(_) => {}
        }
    }
    days
}

/// Why a text is not what it should be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
enum Error {
    #[error("a time of day has the form HH:MM, from 00:00 to 23:59")]
    Clock,
    #[error("a duration has the form 4h, 90m or 1h30m")]
    Span,
    #[error("a window is open for 10m to 168h")]
    Open,
    #[error("an offset from UTC has the form +HH:MM or -HH:MM, from -12:00 to +14:00")]
    Offset,
}

/// A time of day, in minutes after midnight.
struct Clock(u16);

impl FromStr for Clock {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        clock(text)
            .filter(|minutes| *minutes < 24 * 60)
            .map(Self)
            .ok_or(Error::Clock)
    }
}

/// How long a window is open, in minutes.
struct Span(u32);

impl FromStr for Span {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (hours, rest) = text
            .split_once('h')
            .map_or((None, text), |(hours, rest)| (Some(hours), rest));
        let minutes = if rest.is_empty() {
            None
        } else {
            Some(rest.strip_suffix('m').ok_or(Error::Span)?)
        };
        if hours.is_none() && minutes.is_none() {
            return Err(Error::Span);
        }
        let part = |part: Option<&str>| part.map_or(Some(0), digits).ok_or(Error::Span);
        let minutes = part(hours)?
            .saturating_mul(60)
            .saturating_add(part(minutes)?);
        if OPEN.contains(&minutes) {
            Ok(Self(minutes))
        } else {
            Err(Error::Open)
        }
    }
}

/// How far a clock is ahead of UTC, in minutes.
struct Offset(i16);

impl FromStr for Offset {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let ahead = text
            .strip_prefix('+')
            .and_then(clock)
            .and_then(|minutes| i16::try_from(minutes).ok());
        let behind = text
            .strip_prefix('-')
            .and_then(clock)
            .and_then(|minutes| i16::try_from(minutes).ok());
        ahead
            .or(behind.map(|minutes| -minutes))
            .filter(|offset| OFFSETS.contains(offset))
            .map(Self)
            .ok_or(Error::Offset)
    }
}

/// `HH:MM` in minutes.
fn clock(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    u16::try_from(hours * 60 + minutes)
        .ok()
        .filter(|_| minutes < 60)
}

/// A whole number without a sign.
fn digits(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_durations_and_offsets_are_read_strictly() {
        let clock = |text: &str| text.parse::<Clock>().map(|clock| clock.0);
        assert_eq!(clock("00:00"), Ok(0));
        assert_eq!(clock("23:59"), Ok(1_439));
        for text in [
            "24:00", "2:00", "02:60", "02:00:00", "+2:00", "noon", "0200", "",
        ] {
            assert_eq!(clock(text), Err(Error::Clock), "{text:?}");
        }
        let span = |text: &str| text.parse::<Span>().map(|span| span.0);
        assert_eq!(
            (span("4h"), span("90m"), span("1h30m")),
            (Ok(240), Ok(90), Ok(90))
        );
        assert_eq!((span("10m"), span("168h")), (Ok(10), Ok(10_080)));
        for text in [
            "",
            "4",
            "h",
            "m",
            "1h30",
            "30m1h",
            "-4h",
            "4 h",
            "1d",
            "1h30s",
            "99999999999h",
        ] {
            assert_eq!(span(text), Err(Error::Span), "{text:?}");
        }
        for text in ["9m", "0h", "169h", "4000000000h"] {
            assert_eq!(span(text), Err(Error::Open), "{text:?}");
        }
        let offset = |text: &str| text.parse::<Offset>().map(|offset| offset.0);
        assert_eq!(
            (offset("+02:00"), offset("-09:30"), offset("+00:00")),
            (Ok(120), Ok(-570), Ok(0))
        );
        for text in [
            "02:00",
            "+2",
            "Z",
            "UTC",
            "+14:01",
            "-12:01",
            "+-2:00",
            "Europe/Berlin",
        ] {
            assert_eq!(offset(text), Err(Error::Offset), "{text:?}");
        }
    }
}
