//! The difference between two texts, line by line.
//!
//! Myers' algorithm on what is left between the common beginning and the common end. Texts
//! that share next to nothing are not worth the search: past a limit everything in between
//! is shown as taken away and put there.

/// More edits than anybody reads; beyond it the search would cost more than it shows.
const EDITS_MAX: usize = 2_000;

/// Lines shown around each change.
const AROUND: usize = 3;

/// What became of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// Shows how to get from `old` to `new`; nothing when they are equal.
pub(crate) fn difference(old: &str, new: &str, colours: bool) -> String {
    let edits = edits(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let changed = |at: &usize| !matches!(edits[*at], Edit::Same(_));
    let near = |at: usize| {
        (at.saturating_sub(AROUND)..(at + AROUND + 1).min(edits.len())).any(|at| changed(&at))
    };
    let mut text = String::new();
    let (mut before, mut after, mut shown) = (1, 1, false);
    for (at, edit) in edits.iter().enumerate() {
        let show = near(at);
        if show && !shown {
            text.push_str(&paint(&format!("@@ -{before} +{after} @@"), "36", colours));
        }
        shown = show;
        let (line, colour) = match edit {
            Edit::Same(line) => (format!("  {line}"), ""),
            Edit::Gone(line) => (format!("- {line}"), "31"),
            Edit::New(line) => (format!("+ {line}"), "32"),
        };
        before += usize::from(!matches!(edit, Edit::New(_)));
        after += usize::from(!matches!(edit, Edit::Gone(_)));
        if show {
            text.push_str(&paint(&line, colour, colours));
        }
    }
    text
}

fn paint(line: &str, colour: &str, colours: bool) -> String {
    let line = crate::table::plain(line);
    if colours && !colour.is_empty() {
        format!("\u{1b}[{colour}m{line}\u{1b}[0m\n")
    } else {
        format!("{}\n", line.trim_end())
    }
}

fn edits<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Edit<'a>> {
    let begin = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[begin..], &new[begin..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_mid, old_end) = old_rest.split_at(old_rest.len() - end);
    let (new_mid, _) = new_rest.split_at(new_rest.len() - end);
    let same = |lines: &[&'a str]| lines.iter().map(|line| Edit::Same(line)).collect::<Vec<_>>();
    let mut edits = same(&old[..begin]);
    edits.extend(search(old_mid, new_mid).unwrap_or_else(|| {
        let gone = old_mid.iter().map(|line| Edit::Gone(line));
        gone.chain(new_mid.iter().map(|line| Edit::New(line))).collect()
    }));
    edits.extend(same(old_end));
    edits
}

/// The shortest way from `old` to `new`, unless it is longer than the limit.
///
/// `reach[k]` is how far into `old` one gets on diagonal `k` with so many edits; the
/// diagonals are shifted by `EDITS_MAX + 1` to count from zero.
fn search<'a>(old: &[&'a str], new: &[&'a str]) -> Option<Vec<Edit<'a>>> {
    let middle = EDITS_MAX + 1;
    let mut reach = vec![0_usize; 2 * middle + 1];
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for edits in 0..=EDITS_MAX {
        trace.push(reach[middle - edits..=middle + edits].to_vec());
        for diagonal in (middle - edits..=middle + edits).step_by(2) {
            let down = diagonal == middle - edits
                || (diagonal != middle + edits && reach[diagonal - 1] < reach[diagonal + 1]);
            let mut x = if down { reach[diagonal + 1] } else { reach[diagonal - 1] + 1 };
            // Diagonals that leave the square lead nowhere.
            let Some(mut y) = (x + middle).checked_sub(diagonal) else { continue };
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            reach[diagonal] = x;
            if x >= old.len() && y >= new.len() {
                return Some(walk_back(old, new, &trace));
            }
        }
    }
    None
}

/// Follows the recorded reaches from the end back to the beginning.
fn walk_back<'a>(old: &[&'a str], new: &[&'a str], trace: &[Vec<usize>]) -> Vec<Edit<'a>> {
    let (mut x, mut y) = (old.len(), new.len());
    let mut back = Vec::new();
    for (edits, reach) in trace.iter().enumerate().rev() {
        // Within `reach`, diagonal zero is at `edits`.
        let diagonal = x + edits - y;
        let at = |diagonal: usize| reach.get(diagonal).copied().unwrap_or(0);
        let down = diagonal == 0 || (diagonal != 2 * edits && at(diagonal - 1) < at(diagonal + 1));
        let (from_x, from_y) = if edits == 0 {
            (0, 0)
        } else if down {
            let from = at(diagonal + 1);
            (from, from + edits - diagonal - 1)
        } else {
            let from = at(diagonal - 1);
            (from, from + edits - (diagonal - 1))
        };
        while x > from_x && y > from_y && (edits == 0 || old[x - 1] == new[y - 1]) {
            (x, y) = (x - 1, y - 1);
            back.push(Edit::Same(old[x]));
        }
        if edits > 0 {
            back.push(if down { Edit::New(new[from_y]) } else { Edit::Gone(old[from_x]) });
        }
        (x, y) = (from_x, from_y);
    }
    back.reverse();
    back
}
