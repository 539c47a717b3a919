//! The probe: one cheap program that only looks, and what it saw.

use crate::error::{Error, Kind};
use crate::program::{Mark, Program, Report, quoted};
use crate::recipe::{Level, done, render};
use model::host::Fingerprint;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use zeroize::Zeroizing;

const LOOK: &str = include_str!("look.sh");

/// How wrong a clock may be: certificates that were just made must be valid everywhere.
const SKEW: Duration = Duration::from_secs(5);

/// A program that changes nothing and tells what is to be seen of a host.
///
/// Each of `more` is shell that tells facts of its own, with `sw_fact KEY VALUE`; it runs by
/// itself, so that it cannot spoil the rest.
pub fn look(more: &[&str], limit: Duration) -> Program {
    let mut text = format!("sw_main() {{\n{}\n{LOOK}\n", render::SYSTEM);
    for snippet in more {
        // A snippet that does not parse must not take the others with it either.
        text.push_str(&format!("(eval {})\n", quoted(snippet)));
    }
    text.push_str("sw_fact finished 1\n}\nsw_main </dev/null\n");
    Program {
        title: "look".to_owned(),
        text: Zeroizing::new(text),
        limit,
    }
}

/// What was seen of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// What changes whenever it starts anew.
    pub boot: String,
    /// Its kernel's release.
    pub kernel: String,
    /// Its operating system, such as `debian 12`.
    pub system: String,
    /// Whether systemd runs it.
    pub level: Level,
    /// How long it is up.
    pub uptime: Duration,
    /// Its clock.
    pub clock: SystemTime,
    /// How much is free, in hundredths, of `/` and of `/var`.
    pub free: [u8; 2],
    /// The recipe that it followed.
    pub prepared: Option<Fingerprint>,
    /// Services that we had started, and whether they run.
    pub services: BTreeMap<String, bool>,
    /// Whatever else it told: what the additional snippets say is here.
    pub facts: BTreeMap<String, String>,
}

impl Looked {
    /// Reads the report of [`look`].
    pub fn read(report: &Report) -> Result<Self, Error> {
        done(report)?;
        let mut facts = BTreeMap::new();
        for mark in &report.marks {
            match mark {
                Mark::Fact(key, value) => facts.insert(key.clone(), value.clone()),
                Mark::Changed(_) | Mark::Unchanged(_) | Mark::Failed(..) => None,
            };
        }
        let services = take_services(&mut facts)?;
        facts.remove("finished");
        Ok(Self {
            boot: take(&mut facts, "boot", |text| {
                (text.len() > 30).then(|| text.to_owned())
            })?,
            kernel: take(&mut facts, "kernel", |text| {
                (!text.is_empty()).then(|| text.to_owned())
            })?,
            system: take(&mut facts, "system", |text| Some(text.trim().to_owned()))?,
            level: take(&mut facts, "level", |text| match text {
                "systemd" => Some(Level::Systemd),
                "lite" => Some(Level::Lite),
                _ => None,
            })?,
            uptime: take(&mut facts, "uptime", seconds)?,
            clock: take(&mut facts, "clock", |text| {
                SystemTime::UNIX_EPOCH.checked_add(seconds(text)?)
            })?,
            free: [
                take(&mut facts, "disk./", percent)?,
                take(&mut facts, "disk./var", percent)?,
            ],
            prepared: take(&mut facts, "prepared", |text| match text {
                "" => Some(None),
                text => text.parse().ok().map(Some),
            })?,
            services,
            facts,
        })
    }

    /// How far its clock was off, given our own clock before it was asked and after it answered.
    pub fn skew(&self, before: SystemTime, after: SystemTime) -> Result<Duration, Error> {
        let early = before.duration_since(self.clock).unwrap_or_default();
        let late = self.clock.duration_since(after).unwrap_or_default();
        let skew = early.max(late);
        if skew <= SKEW {
            return Ok(skew);
        }
        let way = if early > late { "behind" } else { "ahead of" };
        Err(Error::new(
            Kind::ClockSkew,
            format!("the host's clock is {} s {way} ours", skew.as_secs()),
        ))
    }
}

/// Takes a fact that must be there and make sense.
fn take<T>(
    facts: &mut BTreeMap<String, String>,
    key: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Error> {
    let Some(value) = facts.remove(key) else {
        let what = format!("the host did not tell its {key}");
        return Err(Error::new(Kind::Garbage, what));
    };
    read(&value).ok_or_else(|| {
        let told: String = value.chars().take(60).collect();
        Error::new(
            Kind::Garbage,
            format!("the host told {told:?} for its {key}, which makes no sense"),
        )
    })
}

/// Takes every fact about a service.
fn take_services(facts: &mut BTreeMap<String, String>) -> Result<BTreeMap<String, bool>, Error> {
    let keys: Vec<String> = facts
        .keys()
        .filter(|key| key.starts_with("service."))
        .cloned()
        .collect();
    let one = |key: String| {
        let runs = take(facts, &key, |text| match text {
            "running" => Some(true),
            "stopped" => Some(false),
            _ => None,
        })?;
        let name = key.strip_prefix("service.").unwrap_or(&key).to_owned();
        Ok((name, runs))
    };
    keys.into_iter().map(one).collect()
}

/// Reads seconds with a fraction.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let nanoseconds = format!("{fraction:0<9}").parse().ok()?;
    Some(Duration::new(whole.parse().ok()?, nanoseconds))
}

/// Reads `FREE ALL` in blocks as hundredths.
fn percent(text: &str) -> Option<u8> {
    let (free, all) = text.split_once(' ')?;
    let (free, all): (u128, u128) = (free.parse().ok()?, all.parse().ok()?);
    // A filesystem without blocks, such as that of some network disks, is never full.
    let percent = (free * 100).checked_div(all).unwrap_or(100);
    u8::try_from(percent).ok().filter(|&percent| percent <= 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(change: impl FnOnce(&mut BTreeMap<&str, &str>)) -> Result<Looked, Error> {
        let mut facts = BTreeMap::from([
            ("boot", "0f6b7ec5-4ad7-4a9b-a05b-fb0a12b0d1a5.12"),
            ("kernel", "6.1.0"),
            ("system", "debian 12"),
            ("level", "lite"),
            ("uptime", "12.5"),
            ("clock", "1700000000.000000250"),
            ("disk./", "30 120"),
            ("disk./var", "0 0"),
            ("prepared", ""),
            ("service.envoy", "running"),
            ("mesh.peers", "3"),
            ("finished", "1"),
        ]);
        change(&mut facts);
        let fact = |(key, value): (&str, &str)| Mark::Fact(key.to_owned(), value.to_owned());
        Looked::read(&Report {
            status: Some(0),
            marks: facts.into_iter().map(fact).collect(),
            ..Report::default()
        })
    }

    #[test]
    fn what_was_told_is_read() {
        let looked = told(|_| {}).unwrap();
        assert_eq!(looked.free, [25, 100]);
        assert_eq!(looked.uptime, Duration::from_millis(12_500));
        assert_eq!(
            looked.services,
            BTreeMap::from([("envoy".to_owned(), true)])
        );
        assert_eq!(looked.facts.len(), 1);
        assert_eq!(looked.prepared, None);
    }

    #[test]
    fn garbage_is_called_so() {
        for (key, value) in [
            ("clock", "yesterday"),
            ("clock", "1.-5"),
            ("disk./", "12"),
            ("disk./", "200 100"),
            ("boot", "."),
            ("prepared", "<html>"),
            ("service.envoy", "segmentation fault"),
            ("level", "sysvinit"),
        ] {
            let error = told(|facts| {
                facts.insert(key, value);
            })
            .unwrap_err();
            assert_eq!(error.kind, Kind::Garbage, "{key} {value}");
        }
        let error = told(|facts| {
            facts.remove("kernel");
        })
        .unwrap_err();
        assert_eq!(error.kind, Kind::Garbage);
    }

    #[test]
    fn a_clock_may_be_five_seconds_off_around_the_time_of_asking() {
        let looked = told(|_| {}).unwrap();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(looked.skew(at(1_699_999_990), at(1_700_000_010)).is_ok());
        assert!(looked.skew(at(1_699_999_980), at(1_699_999_996)).is_ok());
        for (before, after) in [
            (1_700_000_006, 1_700_000_009),
            (1_699_999_980, 1_699_999_994),
        ] {
            let error = looked.skew(at(before), at(after)).unwrap_err();
            assert_eq!(error.kind, Kind::ClockSkew);
        }
    }
}
