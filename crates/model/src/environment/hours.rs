//! The hours at which environments are up, as people write them: `Mon-Fri 08:00-19:00 +01:00`.

use crate::disruption::{Day, Window};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Minutes of a day.
const DAY: u16 = 24 * 60;

/// A span of the week at which environments are up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hours(pub Window);

/// Why a text is not [`Hours`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HoursError {
    /// Words that are none of it, or too many.
    #[error(
        "`{found}` is not of the form `Mon-Fri 08:00-19:00 +01:00`, of which days and offset may be left out"
    )]
    Form {
        /// What was given.
        found: String,
    },
    /// A word that is no day, or no span of days.
    #[error("`{found}` names no days; write Mon-Fri, or Mon,Wed,Sat")]
    Days {
        /// What was given.
        found: String,
    },
    /// A word that is no span of a day.
    #[error("`{found}` is no span of a day; write 08:00-19:00, from 00:00 to 24:00")]
    Span {
        /// What was given.
        found: String,
    },
    /// A word that is no clock of people.
    #[error("`{found}` is no offset from UTC; write +HH:MM or -HH:MM, from -12:00 to +14:00")]
    Offset {
        /// What was given.
        found: String,
    },
}

impl FromStr for Hours {
    type Err = HoursError;

    fn from_str(text: &str) -> Result<Self, HoursError> {
        let words: Vec<_> = text.split_whitespace().collect();
        let form = || HoursError::Form {
            found: text.to_owned(),
        };
        let clocked = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
        let (days, rest) = match words.as_slice() {
            [days, rest @ ..] if !clocked(days) => (Some(*days), rest),
            rest => (None, rest),
        };
        let (span, offset) = match rest {
            [span] => (*span, None),
            [span, offset] => (*span, Some(*offset)),
            _ => return Err(form()),
        };
        let days = days.map_or_else(|| Ok(Day::ALL.into()), named)?;
        let (start, minutes) = between(span).ok_or_else(|| HoursError::Span {
            found: span.to_owned(),
        })?;
        let offset = offset.map_or(Some(0), ahead);
        let offset = offset.ok_or_else(|| HoursError::Offset {
            found: rest.last().map_or("", |word| *word).to_owned(),
        })?;
        Ok(Self(Window {
            days,
            start,
            minutes,
            offset,
        }))
    }
}

/// The days that a word names.
fn named(word: &str) -> Result<BTreeSet<Day>, HoursError> {
    let day = |name: &str| Day::ALL.into_iter().find(|day| day.as_str() == name);
    let mut days = BTreeSet::new();
    for part in word.split(',') {
        let span = match part.split_once('-') {
            Some((first, last)) => day(first).zip(day(last)),
            None => day(part).map(|day| (day, day)),
        };
        let (first, last) = span.ok_or_else(|| HoursError::Days {
            found: word.to_owned(),
        })?;
        // From Saturday to Monday is around the end of the week.
        let around = last < first;
        let within = |day: &Day| {
            if around {
                *day >= first || *day <= last
            } else {
                (first..=last).contains(day)
            }
        };
        days.extend(Day::ALL.into_iter().filter(within));
    }
    Ok(days)
}

/// When a span begins, and for how many minutes; one that ends before it begins ends the next day.
fn between(word: &str) -> Option<(u16, u32)> {
    let (from, to) = word.split_once('-')?;
    let from = clock(from).filter(|from| *from < DAY)?;
    let to = clock(to).filter(|to| *to <= DAY)?;
    let minutes = if to > from {
        to - from
    } else {
        DAY - from + to
    };
    Some((from, minutes.into()))
}

/// Minutes ahead of UTC.
fn ahead(word: &str) -> Option<i16> {
    let minutes = |rest| clock(rest).and_then(|minutes| i16::try_from(minutes).ok());
    let offset = match (word.strip_prefix('+'), word.strip_prefix('-')) {
        (Some(rest), _) => minutes(rest)?,
        (None, Some(rest)) => -minutes(rest)?,
        (None, None) => return None,
    };
    (-12 * 60..=14 * 60).contains(&offset).then_some(offset)
}

/// `HH:MM` in minutes.
fn clock(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |part: &str| {
        let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse::<u16>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (minutes < 60).then_some(hours * 60 + minutes)
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Window {
            days,
            start,
            minutes,
            offset,
        } = &self.0;
        if days.len() < Day::ALL.len() {
            let days: Vec<_> = days.iter().map(|day| day.as_str()).collect();
            write!(f, "{} ", days.join(","))?;
        }
        let end = u32::from(*start) + minutes;
        let end = if end > DAY.into() {
            end % u32::from(DAY)
        } else {
            end
        };
        let time = |minutes: u32| format!("{:02}:{:02}", minutes / 60, minutes % 60);
        write!(f, "{}-{}", time((*start).into()), time(end))?;
        if *offset != 0 {
            let sign = if *offset < 0 { '-' } else { '+' };
            write!(f, " {sign}{}", time(offset.unsigned_abs().into()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_read_and_written() {
        for (text, written) in [
            (
                "Mon-Fri 08:00-19:00 +01:00",
                "Mon,Tue,Wed,Thu,Fri 08:00-19:00 +01:00",
            ),
            ("08:00-24:00", "08:00-24:00"),
            ("Sat,Sun 22:00-04:30 -05:30", "Sat,Sun 22:00-04:30 -05:30"),
            ("Sun-Mon 00:00-24:00", "Mon,Sun 00:00-24:00"),
        ] {
            let hours: Hours = text.parse().unwrap();
            assert_eq!(hours.to_string(), written);
            assert_eq!(hours.to_string().parse(), Ok(hours));
        }
    }

    #[test]
    fn what_is_wrong_with_hours_is_told() {
        let told = |text: &str| text.parse::<Hours>().unwrap_err().to_string();
        assert!(told("").contains("is not of the form"));
        assert!(told("Mon 08:00-19:00 +01:00 now").contains("is not of the form"));
        assert!(told("Moon 08:00-19:00").contains("`Moon` names no days"));
        assert!(told("8-19").contains("`8-19` is no span"));
        assert!(told("24:00-25:00").contains("is no span"));
        assert!(told("08:00-19:00 CET").contains("`CET` is no offset"));
        assert!(told("08:00-19:00 +15:00").contains("is no offset"));
    }
}
