//! Tables of plain text, as wide as what is in them.

/// Rows below a head, padded into columns.
pub(crate) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table with this head and no rows yet.
    pub(crate) fn new(head: [&str; N]) -> Self {
        Self {
            rows: vec![head.map(str::to_owned)],
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| plain(&cell)));
    }

    /// The text; none at all when there is no row.
    pub(crate) fn render(&self) -> String {
        if self.rows.len() == 1 {
            return String::new();
        }
        let width = |at: usize| self.rows.iter().map(|row| row[at].chars().count()).max();
        let widths: [usize; N] = std::array::from_fn(|at| width(at).unwrap_or(0));
        let mut text = String::new();
        for row in &self.rows {
            let cells: Vec<String> = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            text.push_str(cells.join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// Text from elsewhere on one line, with nothing in it that a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// A count with its noun: `1 cluster`, `2 clusters`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The text moved right by two columns.
pub(crate) fn indent(text: &str) -> String {
    text.lines().fold(String::new(), |sum, line| {
        if line.is_empty() {
            sum + "\n"
        } else {
            sum + "  " + line + "\n"
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["NAME", "STATE"]);
        table.row(["a".to_owned(), "done".to_owned()]);
        table.row(["grün".to_owned(), String::new()]);
        table.row(["evil\u{1b}[2J\nname".to_owned(), "x".to_owned()]);
        expect![[r"
            NAME           STATE
            a              done
            grün
            evil [2J name  x
        "]]
        .assert_eq(&table.render());
    }

    #[test]
    fn a_head_alone_is_no_table() {
        assert_eq!(Table::new(["NAME"]).render(), "");
    }
}
