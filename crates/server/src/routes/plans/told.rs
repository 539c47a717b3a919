//! Journeys as people read them.

use std::fmt;

use model::name::Name;
use plan::{Basis, Journey};

/// Clusters whose journeys are told in full; the rest are only counted. More is scrolled
/// past unread, and the answer for programs has them all.
const TOLD_MAX: usize = 50;

/// The journeys as people read them.
pub(super) struct Told<'a> {
    pub(super) moving: &'a [&'a Journey],
    pub(super) still: usize,
    /// Whether wishes hold pools at other sizes than manifests name.
    pub(super) wished: bool,
    pub(super) basis: &'a Basis,
    /// Clusters of which something cannot be read, a sentence each.
    pub(super) unread: &'a [String],
    pub(super) notes: &'a [String],
    pub(super) refused: Option<&'a api::Problem>,
}

/// Clusters that follow one another and whose journeys differ in nothing but the name.
struct Alike<'a> {
    /// The journey without the name.
    shape: String,
    first: &'a Journey,
    others: usize,
    last: &'a Name,
}

impl<'a> Told<'a> {
    fn groups(&self) -> Vec<Alike<'a>> {
        let mut groups: Vec<Alike<'a>> = Vec::new();
        for journey in self.moving {
            let shape = journey.to_string().replace(journey.cluster.as_str(), "");
            match groups.last_mut() {
                Some(group) if group.shape == shape => {
                    group.others += 1;
                    group.last = &journey.cluster;
                }
                Some(_) | None => {
                    groups.push(Alike {
                        shape,
                        first: journey,
                        others: 0,
                        last: &journey.cluster,
                    });
                }
            }
        }
        groups
    }
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.groups();
        for group in groups.iter().take(TOLD_MAX) {
            write!(f, "{}", group.first)?;
            match group.others {
                0 => {}
                1 => writeln!(f, "  the same for {}", group.last)?,
                others => writeln!(
                    f,
                    "  the same for {others} more clusters, up to {}",
                    group.last
                )?,
            }
        }
        let untold: usize = groups
            .iter()
            .skip(TOLD_MAX)
            .map(|group| group.others + 1)
            .sum();
        if untold > 0 {
            writeln!(f, "and {untold} more clusters")?;
        }
        for unread in self.unread {
            writeln!(f, "{unread}")?;
        }
        let nothing = self.moving.is_empty() && self.unread.is_empty();
        match (nothing, self.still) {
            (true, _) if self.wished => {
                writeln!(f, "nothing to do: every cluster is as declared and wished")?;
            }
            (true, _) => writeln!(f, "nothing to do: every cluster is as declared")?,
            (false, 0) => {}
            (false, 1) => writeln!(f, "1 cluster stays as it is")?,
            (false, still) => writeln!(f, "{still} clusters stay as they are")?,
        }
        if self.moving.iter().any(|journey| !journey.blocks.is_empty()) {
            writeln!(f, "{}", self.basis)?;
        }
        if !self.moving.is_empty() {
            writeln!(
                f,
                "this is the happy path; `slipway simulate` shows the others"
            )?;
        }
        for note in self.notes {
            writeln!(f, "note: {note}")?;
        }
        if let Some(problem) = self.refused {
            writeln!(f, "refused: {} ({})", problem.detail, problem.code)?;
            writeln!(
                f,
                "         {}",
                problem.hint.as_deref().unwrap_or_default()
            )?;
        }
        Ok(())
    }
}
