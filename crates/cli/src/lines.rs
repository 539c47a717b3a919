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
    let edits = edits(
        &old.lines().collect::<Vec<_>>(),
        &new.lines().collect::<Vec<_>>(),
    );
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
    let end = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (old_mid, old_end) = old_rest.split_at(old_rest.len() - end);
    let (new_mid, _) = new_rest.split_at(new_rest.len() - end);
    let same = |lines: &[&'a str]| {
        lines
            .iter()
            .map(|line| Edit::Same(line))
            .collect::<Vec<_>>()
    };
    let mut edits = same(&old[..begin]);
    edits.extend(search(old_mid, new_mid).unwrap_or_else(|| {
        let gone = old_mid.iter().map(|line| Edit::Gone(line));
        gone.chain(new_mid.iter().map(|line| Edit::New(line)))
            .collect()
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
            let mut x = if down {
                reach[diagonal + 1]
            } else {
                reach[diagonal - 1] + 1
            };
            // Never below zero: every step to a higher diagonal was a step into `old`.
            let mut y = x + middle - diagonal;
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
            back.push(if down {
                Edit::New(new[from_y])
            } else {
                Edit::Gone(old[from_x])
            });
        }
        (x, y) = (from_x, from_y);
    }
    back.reverse();
    back
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn changes_are_shown_with_the_lines_around_them() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\n";
        let new = old.replace("c\n", "c: 1\nc: 2\n").replace("m\n", "");
        expect![[r"
            @@ -1 +1 @@
              a
              b
            - c
            + c: 1
            + c: 2
              d
              e
              f
            @@ -10 +11 @@
              j
              k
              l
            - m
              n
        "]]
        .assert_eq(&difference(old, &new, false));
    }

    #[test]
    fn colours_are_for_terminals() {
        assert_eq!(difference("a", "b", true).matches("\u{1b}[3").count(), 3);
        assert_eq!(
            difference("a\u{1b}[2J", "b", false),
            "@@ -1 +1 @@\n- a [2J\n+ b\n"
        );
    }

    #[test]
    fn equal_texts_show_nothing() {
        assert_eq!(difference("a\nb", "a\nb\n", false), "");
        assert_eq!(difference("", "", false), "");
    }

    /// A number that looks random, and is the same in every run.
    fn next(state: &mut u64) -> u64 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        *state >> 33
    }

    /// How many lines the longest common subsequence has, by the textbook.
    fn common(old: &[&str], new: &[&str]) -> usize {
        let mut row = vec![0; new.len() + 1];
        for a in old {
            let mut corner = 0;
            for (at, b) in new.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if a == b {
                    corner + 1
                } else {
                    above.max(row[at])
                };
                corner = above;
            }
        }
        row[new.len()]
    }

    #[test]
    fn the_way_is_right_and_the_shortest() {
        let mut state = 7;
        for _ in 0..2_000 {
            let mut text = |most: u64| -> Vec<&str> {
                let length = next(&mut state) % most;
                (0..length)
                    .map(|_| ["a", "b", "c"][usize::try_from(next(&mut state) % 3).unwrap()])
                    .collect()
            };
            let (old, new) = (text(12), text(12));
            let edits = edits(&old, &new);
            let pick = |side: fn(&Edit<'static>) -> Option<&'static str>| -> Vec<_> {
                edits.iter().filter_map(side).collect()
            };
            let before = pick(|edit| match edit {
                Edit::Same(line) | Edit::Gone(line) => Some(*line),
                Edit::New(_) => None,
            });
            let after = pick(|edit| match edit {
                Edit::Same(line) | Edit::New(line) => Some(*line),
                Edit::Gone(_) => None,
            });
            let same = edits
                .iter()
                .filter(|edit| matches!(edit, Edit::Same(_)))
                .count();
            assert_eq!((before, after), (old.clone(), new.clone()));
            assert_eq!(same, common(&old, &new), "{old:?} {new:?}");
        }
    }

    #[test]
    fn texts_with_nothing_in_common_are_given_up_on_in_time() {
        let text = |letter: &str| -> String {
            (0..20_000).map(|n| n.to_string() + letter + "\n").collect()
        };
        let shown = difference(&text("a"), &text("b"), false);
        assert_eq!(shown.lines().count(), 40_001);
    }
}
