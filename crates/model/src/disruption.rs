//! How many machines may be out of service at once because of us, and when that may begin.
//!
//! A *budget* is a number of machines: of a cluster, of a pool, or of a group, which is a set
//! of pools that share a fate (a rack, a zone) wherever in the project they are used. A
//! *window* is a span of the week. Times of day have a fixed distance from UTC: a window that
//! moved with somebody's summer time would open an hour early twice a year.

use crate::gate::Gate;
use crate::name::Name;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The budget of a cluster that declares none.
///
/// One, because etcd with three members survives the loss of one; the second would be
/// our fault.
pub const UNAVAILABLE_DEFAULT: u32 = 1;

/// What one cluster allows, with what its pools and their groups allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Disruption {
    /// How many machines of the cluster may be out of service at once.
    pub unavailable: u32,
    /// When machines may be taken out of service.
    pub windows: Windows,
    /// What pools say of themselves; those that say nothing are not here.
    pub pools: BTreeMap<Name, PoolBudget>,
    /// How many machines of a group may be out of service at once; the groups of the pools.
    pub groups: BTreeMap<Name, u32>,
    /// What must pass before a node of the cluster serves again and the next one is taken out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            unavailable: UNAVAILABLE_DEFAULT,
            windows: Windows::default(),
            pools: BTreeMap::new(),
            groups: BTreeMap::new(),
            gates: Vec::new(),
        }
    }
}

impl Disruption {
    /// The budget of a pool of its own, where it has one.
    pub fn of_pool(&self, pool: &Name) -> Option<u32> {
        self.pools.get(pool)?.unavailable
    }

    /// The group that the machines of a pool belong to, where there is one.
    pub fn group(&self, pool: &Name) -> Option<&Name> {
        self.pools.get(pool)?.group.as_ref()
    }

    /// The same for a cluster that has machines of these pools and of no others.
    #[must_use]
    pub fn only(&self, used: &BTreeSet<&Name>) -> Self {
        let pools: BTreeMap<_, _> = self
            .pools
            .iter()
            .filter(|(pool, budget)| used.contains(pool) && **budget != PoolBudget::default())
            .map(|(pool, budget)| (pool.clone(), budget.clone()))
            .collect();
        let named: BTreeSet<_> = pools
            .values()
            .filter_map(|budget| budget.group.as_ref())
            .collect();
        let groups = self
            .groups
            .iter()
            .filter(|(group, _)| named.contains(group));
        Self {
            unavailable: self.unavailable,
            windows: self.windows.clone(),
            groups: groups.map(|(group, most)| (group.clone(), *most)).collect(),
            pools,
            gates: self.gates.clone(),
        }
    }
}

/// What a pool says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoolBudget {
    /// How many of its machines may be out of service at once, in each cluster that uses it;
    /// absent means that only the cluster's budget counts.
    pub unavailable: Option<u32>,
    /// The group its machines belong to.
    pub group: Option<Name>,
}

/// When machines may be taken out of service: within any of these, or always if there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Windows(pub Vec<Window>);

/// A span of the week, once for each of its days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The days on which it opens, by its own clock.
    pub days: BTreeSet<Day>,
    /// When it opens, in minutes after midnight by its own clock.
    pub start: u16,
    /// How long it stays open, in minutes; midnight and the end of the week do not close it.
    pub minutes: u32,
    /// How far its clock is ahead of UTC, in minutes.
    pub offset: i16,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is the day of that name")]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl Day {
    /// The week, from its first day.
    pub const ALL: [Self; 7] = [
        Self::Mon,
        Self::Tue,
        Self::Wed,
        Self::Thu,
        Self::Fri,
        Self::Sat,
        Self::Sun,
    ];

    /// The word of the manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mon => "Mon",
            Self::Tue => "Tue",
            Self::Wed => "Wed",
            Self::Thu => "Thu",
            Self::Fri => "Fri",
            Self::Sat => "Sat",
            Self::Sun => "Sun",
        }
    }

    /// How many days of the week are before it.
    const fn before(self) -> i64 {
        match self {
            Self::Mon => 0,
            Self::Tue => 1,
            Self::Wed => 2,
            Self::Thu => 3,
            Self::Fri => 4,
            Self::Sat => 5,
            Self::Sun => 6,
        }
    }
}

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;
const WEEK: i64 = 7 * DAY;

/// The first Monday after 1970 began, which was a Thursday.
const MONDAY: i64 = 4 * DAY;

impl Windows {
    /// When the next window opens, where none is open at `now`.
    pub fn opens(&self, now: Timestamp) -> Option<Timestamp> {
        let mut soonest: Option<i64> = None;
        for window in &self.0 {
            for opening in window.openings() {
                let ago = since(opening, now);
                if ago < i64::from(window.minutes) * MINUTE {
                    return None;
                }
                let wait = WEEK - ago;
                soonest = Some(soonest.map_or(wait, |soonest| soonest.min(wait)));
            }
        }
        let wait = u64::try_from(soonest?).unwrap_or(0);
        Some(now.plus(Duration::from_millis(wait)))
    }

    /// Since when none is open; nothing where one is, or where there are none.
    pub fn shut(&self, now: Timestamp) -> Option<Timestamp> {
        let ago =
            |window: &Window, opening| since(opening, now) - i64::from(window.minutes) * MINUTE;
        let each = self.0.iter();
        let closed = each.flat_map(|window| window.openings().map(move |at| ago(window, at)));
        let latest = u64::try_from(closed.min()?).ok()?;
        Some(now.minus(Duration::from_millis(latest)))
    }
}

impl Window {
    /// Its openings, as milliseconds of the week in UTC; those of a clock that is ahead or
    /// behind may lie in the weeks beside it.
    fn openings(&self) -> impl Iterator<Item = i64> {
        let start = (i64::from(self.start) - i64::from(self.offset)) * MINUTE;
        self.days.iter().map(move |day| day.before() * DAY + start)
    }
}

/// How long ago, in milliseconds, an opening that comes every week came last.
fn since(opening: i64, now: Timestamp) -> i64 {
    // The point of the week first, so that no point in time is too far away to be counted.
    let point = (now.as_millis().rem_euclid(WEEK) - MONDAY).rem_euclid(WEEK);
    (point - opening).rem_euclid(WEEK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    fn window(days: &[Day], start: u16, minutes: u32, offset: i16) -> Window {
        Window {
            days: days.iter().copied().collect(),
            start,
            minutes,
            offset,
        }
    }

    /// The windows from hour to hour of eight days from Sunday, 1 March 2026: a day per line,
    /// `#` for open, and what opens next at noon.
    #[track_caller]
    fn check(windows: &[Window], expected: &Expect) {
        // The midnight with which it begins, in UTC.
        const SUNDAY: i64 = 1_772_323_200_000;
        let windows = Windows(windows.to_vec());
        let mut told = String::new();
        for day in 0..8 {
            let at = |hour: i64| Timestamp::from_millis(SUNDAY + day * DAY + hour * 60 * MINUTE);
            let hours = (0..24).map(|hour| {
                if windows.opens(at(hour)).is_none() {
                    '#'
                } else {
                    '.'
                }
            });
            let hours: String = hours.collect();
            let next = windows.opens(at(12)).map(|opens| opens.to_string());
            let line = format!("{hours}  {}", next.unwrap_or_default());
            told += &format!("{}\n", line.trim_end());
        }
        expected.assert_eq(&told);
    }

    #[test]
    fn no_window_is_always_open() {
        assert_eq!(Windows::default().opens(Timestamp::from_millis(0)), None);
        assert_eq!(Windows::default().shut(Timestamp::from_millis(0)), None);
    }

    #[test]
    fn windows_are_shut_since_the_last_of_them_closed() {
        // Sunday, 1 March 2026, noon.
        let noon = Timestamp::from_millis(1_772_323_200_000 + 12 * 60 * MINUTE);
        let windows = Windows(vec![
            window(&[Day::Fri], 8 * 60, 10 * 60, 0),
            window(&[Day::Sat], 8 * 60, 2 * 60, 60),
        ]);
        let since = windows.shut(noon).map(|since| since.to_string());
        assert_eq!(since.as_deref(), Some("Sat 2026-02-28 09:00 UTC"));
        let monday = noon.plus(Duration::from_hours(5 * 24 - 2));
        assert_eq!(windows.shut(monday), None, "one is open");
    }

    #[test]
    fn a_window_opens_on_its_days() {
        check(
            &[window(&[Day::Tue, Day::Sat], 2 * 60, 180, 0)],
            &expect![[r#"
                ........................  Tue 2026-03-03 02:00 UTC
                ........................  Tue 2026-03-03 02:00 UTC
                ..###...................  Sat 2026-03-07 02:00 UTC
                ........................  Sat 2026-03-07 02:00 UTC
                ........................  Sat 2026-03-07 02:00 UTC
                ........................  Sat 2026-03-07 02:00 UTC
                ..###...................  Tue 2026-03-10 02:00 UTC
                ........................  Tue 2026-03-10 02:00 UTC
            "#]],
        );
    }

    #[test]
    fn a_window_crosses_midnight_and_the_end_of_the_week() {
        check(
            &[window(&[Day::Sun], 22 * 60, 300, 0)],
            &expect![[r#"
            ......................##  Sun 2026-03-01 22:00 UTC
            ###.....................  Sun 2026-03-08 22:00 UTC
            ........................  Sun 2026-03-08 22:00 UTC
            ........................  Sun 2026-03-08 22:00 UTC
            ........................  Sun 2026-03-08 22:00 UTC
            ........................  Sun 2026-03-08 22:00 UTC
            ........................  Sun 2026-03-08 22:00 UTC
            ......................##  Sun 2026-03-08 22:00 UTC
        "#]],
        );
    }

    #[test]
    fn a_window_has_a_clock_of_its_own() {
        check(
            &[window(&[Day::Mon], 60, 120, 120)],
            &expect![[r#"
            .......................#  Sun 2026-03-01 23:00 UTC
            #.......................  Sun 2026-03-08 23:00 UTC
            ........................  Sun 2026-03-08 23:00 UTC
            ........................  Sun 2026-03-08 23:00 UTC
            ........................  Sun 2026-03-08 23:00 UTC
            ........................  Sun 2026-03-08 23:00 UTC
            ........................  Sun 2026-03-08 23:00 UTC
            .......................#  Sun 2026-03-08 23:00 UTC
        "#]],
        );
        check(
            &[window(&[Day::Sun], 23 * 60, 120, -300)],
            &expect![[r#"
            ........................  Mon 2026-03-02 04:00 UTC
            ....##..................  Mon 2026-03-09 04:00 UTC
            ........................  Mon 2026-03-09 04:00 UTC
            ........................  Mon 2026-03-09 04:00 UTC
            ........................  Mon 2026-03-09 04:00 UTC
            ........................  Mon 2026-03-09 04:00 UTC
            ........................  Mon 2026-03-09 04:00 UTC
            ........................  Mon 2026-03-09 04:00 UTC
        "#]],
        );
    }

    #[test]
    fn windows_that_meet_are_one() {
        check(
            &[
                window(&[Day::Wed], 0, 24 * 60, 0),
                window(&Day::ALL, 6 * 60, 60, 0),
            ],
            &expect![[r#"
                ......#.................  Mon 2026-03-02 06:00 UTC
                ......#.................  Tue 2026-03-03 06:00 UTC
                ......#.................  Wed 2026-03-04 00:00 UTC
                ########################
                ......#.................  Fri 2026-03-06 06:00 UTC
                ......#.................  Sat 2026-03-07 06:00 UTC
                ......#.................  Sun 2026-03-08 06:00 UTC
                ......#.................  Mon 2026-03-09 06:00 UTC
            "#]],
        );
    }

    proptest! {
        #[test]
        fn what_was_told_to_open_opens_and_not_before(
            now in any::<i64>().prop_map(|millis| millis / 2),
            windows in prop::collection::vec(
                (prop::collection::btree_set(prop::sample::select(Day::ALL.to_vec()), 1..3), 0..1_440_u16, 1..600_u32, -720..840_i16),
                1..3,
            ),
        ) {
            let windows = windows.into_iter().map(|(days, start, minutes, offset)| Window { days, start, minutes, offset });
            let windows = Windows(windows.collect());
            let now = Timestamp::from_millis(now);
            if let Some(opens) = windows.opens(now) {
                prop_assert!(opens > now);
                prop_assert_eq!(windows.opens(opens), None);
                let before = Timestamp::from_millis(opens.as_millis() - 1);
                prop_assert_eq!(windows.opens(before), Some(opens));
            }
        }
    }
}
