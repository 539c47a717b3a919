//! Tells code, comments and string literals of a Rust file apart.
//!
//! Just enough of the grammar for the rules to look in the right place: a word in a string is
//! not a macro call, and an error code in a comment is not an error. It never fails; text that
//! rustc would refuse gives odd pieces, and rustc says why.

/// What a stretch of a source file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Everything that is none of the others.
    Code,
    /// A comment for those who read the source.
    Comment,
    /// A comment for those who read the documentation.
    Doc,
    /// A string literal, quotes included.
    Literal,
}

/// One stretch of a source file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) kind: Kind,
    /// The line it starts on, from 1.
    pub(super) line: usize,
    pub(super) text: &'a str,
}

impl Piece<'_> {
    /// The line of the byte at `offset` into the text.
    pub(super) fn line_at(&self, offset: usize) -> usize {
        self.line + self.text[..offset].matches('\n').count()
    }
}

/// Cuts a source file into its pieces; joined again they are the file.
pub(super) fn pieces<'a>(source: &'a str) -> Vec<Piece<'a>> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut push = |kind: Kind, text: &'a str| {
        if !text.is_empty() {
            found.push(Piece { kind, line, text });
            line += text.matches('\n').count();
        }
    };
    let mut code_start = 0;
    let mut at = 0;
    while let Some(next) = source[at..].chars().next() {
        match special(source, at) {
            Some((Kind::Code, end)) => at = end,
            Some((kind, end)) => {
                push(Kind::Code, &source[code_start..at]);
                push(kind, &source[at..end]);
                at = end;
                code_start = end;
            }
            None => at += next.len_utf8(),
        }
    }
    push(Kind::Code, &source[code_start..]);
    found
}

/// The text before the test module that closes a file.
///
/// A test module kept in another file (`mod tests;`) does not end the product's text.
pub(super) fn before_tests(source: &str) -> &str {
    let mut offset = 0;
    let mut lines = source.split_inclusive('\n');
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" && opens_module(lines.clone()) {
            return &source[..offset];
        }
        offset += line.len();
    }
    source
}

/// Whether the next item, after any attributes, is a module with a body.
fn opens_module<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    let mut inside_attribute = false;
    for line in lines.map(str::trim) {
        if inside_attribute || line.starts_with("#[") {
            inside_attribute = !line.ends_with(']');
        } else {
            return line.starts_with("mod ") && line.ends_with('{');
        }
    }
    false
}

/// What begins at `at` and is more than a single character of code, and where it ends.
///
/// Character literals are code, but must be stepped over whole: `'"'` opens no string.
fn special(source: &str, at: usize) -> Option<(Kind, usize)> {
    let rest = &source[at..];
    let end = |length: usize| at + length;
    match rest.as_bytes() {
        [b'/', b'/', ..] => {
            let length = rest.find('\n').unwrap_or(rest.len());
            Some((comment_kind(&rest[..length]), end(length)))
        }
        [b'/', b'*', ..] => {
            let length = block_comment(rest);
            Some((comment_kind(&rest[..length]), end(length)))
        }
        [b'"', ..] => Some((Kind::Literal, end(quoted(rest, '"')))),
        [b'r', b'"' | b'#', ..] if !follows_word(source, at) => {
            raw_string(rest).map(|length| (Kind::Literal, end(length)))
        }
        [b'\'', b'\\', ..] => Some((Kind::Code, end(quoted(rest, '\'')))),
        [b'\'', ..] => {
            let mut characters = rest.char_indices().skip(2);
            match characters.next() {
                Some((offset, '\'')) => Some((Kind::Code, end(offset + 1))),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether a comment is documentation.
fn comment_kind(comment: &str) -> Kind {
    let line =
        comment.starts_with("//!") || (comment.starts_with("///") && !comment.starts_with("////"));
    let block = comment.starts_with("/*!")
        || (comment.starts_with("/**") && !comment.starts_with("/***") && comment != "/**/");
    if line || block {
        Kind::Doc
    } else {
        Kind::Comment
    }
}

/// The length of the block comment that `rest` starts with; they nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let bytes = &rest.as_bytes()[at..];
        if bytes.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The length of the literal between `quote`s that `rest` starts with.
fn quoted(rest: &str, quote: char) -> usize {
    let mut characters = rest.char_indices().skip(1);
    while let Some((offset, character)) = characters.next() {
        if character == '\\' {
            characters.next();
        } else if character == quote {
            return offset + 1;
        }
    }
    rest.len()
}

/// The length of the raw string that `rest` starts with, if it is one.
fn raw_string(rest: &str) -> Option<usize> {
    let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
    let open = 1 + hashes;
    if rest.as_bytes().get(open) != Some(&b'"') {
        return None; // a raw identifier
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let body = &rest[open + 1..];
    let length = body.find(&close).map_or(body.len(), |at| at + close.len());
    Some(open + 1 + length)
}

/// Whether the character before `at` makes an `r` there part of a longer word.
///
/// The prefixes of byte and C strings are no such words.
fn follows_word(source: &str, at: usize) -> bool {
    let before = &source[..at];
    let word = |text: &str| text.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    match before.strip_suffix(['b', 'c']) {
        Some(shorter) => word(shorter),
        None => word(before),
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, before_tests, pieces};

    /// The pieces that are not code, as `kind@line text`.
    fn check(source: &str, expected: &[&str]) {
        let found: Vec<String> = pieces(source)
            .iter()
            .filter(|piece| piece.kind != Kind::Code)
            .map(|piece| format!("{:?}@{} {}", piece.kind, piece.line, piece.text))
            .collect();
        assert_eq!(found, expected);
        let whole: String = pieces(source).iter().map(|piece| piece.text).collect();
        assert_eq!(whole, source);
    }

    #[test]
    fn comments_are_told_from_documentation() {
        check(
            "//! a\n// b\n/// c\n/* d /* e */ */ x /** f */",
            &[
                "Doc@1 //! a",
                "Comment@2 // b",
                "Doc@3 /// c",
                "Comment@4 /* d /* e */ */",
                "Doc@4 /** f */",
            ],
        );
    }

    #[test]
    fn strings_end_where_rust_ends_them() {
        check(
            "a(\"x \\\" // y\", r#\"\n\"z\"#, br\"w\")",
            &[
                "Literal@1 \"x \\\" // y\"",
                "Literal@1 r#\"\n\"z\"#",
                "Literal@2 r\"w\"",
            ],
        );
    }

    #[test]
    fn quotes_in_characters_and_lifetimes_open_nothing() {
        check(
            "let c = '\"'; fn f<'a>(x: &'a str) {} '\\''; 'é'; r#fn; \"s\"",
            &["Literal@1 \"s\""],
        );
    }

    #[test]
    fn a_test_module_in_its_own_file_does_not_end_the_text() {
        let apart = "#[cfg(test)]\nmod tests;\nfn a() {}\n";
        assert_eq!(before_tests(apart), apart);
        let within = "fn a() {}\n#[cfg(test)]\n#[expect(\n  x\n)]\nmod tests {\n}\n";
        assert_eq!(before_tests(within), "fn a() {}\n");
    }
}
