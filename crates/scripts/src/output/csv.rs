//! Reads CSV as RFC 4180 has it, with lines that end in LF or CRLF.

use super::Unreadable;

/// One field, and where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) text: String,
}

/// All rows that are not blank.
pub(super) fn rows(text: &str, most: usize) -> Result<Vec<Vec<Field>>, Unreadable> {
    let mut reader = Reader {
        rest: text.chars().peekable(),
        line: 1,
        column: 1,
    };
    let mut rows = Vec::new();
    while reader.rest.peek().is_some() {
        let line = reader.line;
        let row = reader.row()?;
        if is_blank(&row) {
            continue;
        }
        if rows.len() == most {
            return Err(Unreadable::new(line, 1, format!("more than {most} rows")));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Whether there is nothing on a line.
fn is_blank(row: &[Field]) -> bool {
    matches!(row, [only] if only.text.trim().is_empty())
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
    column: usize,
}

impl Reader<'_> {
    /// One row, with the end of its line.
    fn row(&mut self) -> Result<Vec<Field>, Unreadable> {
        let mut row = Vec::new();
        loop {
            row.push(self.field()?);
            match self.next() {
                Some(',') => {}
                // A field ends before one of these, or with the text.
                Some(_) | None => return Ok(row),
            }
        }
    }

    /// One field, without what ends it.
    fn field(&mut self) -> Result<Field, Unreadable> {
        let (line, column) = (self.line, self.column);
        let text = if self.rest.peek() == Some(&'"') {
            self.quoted()?
        } else {
            self.plain()?
        };
        Ok(Field { line, column, text })
    }

    fn plain(&mut self) -> Result<String, Unreadable> {
        let mut text = String::new();
        while let Some(found) = self.rest.peek() {
            match found {
                ',' | '\n' => break,
                '"' => {
                    let why = "a quote within a field that does not begin with one";
                    return Err(Unreadable::new(self.line, self.column, why));
                }
                _ => text.extend(self.next()),
            }
        }
        // What is left of the end of a line that has two characters.
        if text.ends_with('\r') && self.rest.peek() != Some(&',') {
            text.pop();
        }
        Ok(text)
    }

    fn quoted(&mut self) -> Result<String, Unreadable> {
        let (line, column) = (self.line, self.column);
        self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                Some('"') if self.rest.peek() == Some(&'"') => text.extend(self.next()),
                Some('"') => break,
                Some(other) => text.push(other),
                None => {
                    let why = "a quote that is never closed";
                    return Err(Unreadable::new(line, column, why));
                }
            }
        }
        if self.rest.peek() == Some(&'\r') {
            self.next();
        }
        match self.rest.peek() {
            Some(',' | '\n') | None => Ok(text),
            Some(_) => {
                let why = "more text after a closing quote";
                Err(Unreadable::new(self.line, self.column, why))
            }
        }
    }

    /// One character on.
    fn next(&mut self) -> Option<char> {
        let found = self.rest.next()?;
        if found == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(found)
    }
}
