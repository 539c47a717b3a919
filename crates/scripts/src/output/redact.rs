//! Takes out of text what nobody should see.

use std::borrow::Cow;

use zeroize::Zeroizing;

/// What stands in its place.
const MARK: &str = "***";

/// Lines of a secret with fewer characters stand in any text by chance.
const LINE_MIN: usize = 4;

/// Knows what is secret, and takes it out of text.
#[derive(Default)]
pub struct Redactor {
    /// The longest first: one may be a part of another.
    words: Vec<Zeroizing<String>>,
    /// Those that are taken out only where they stand alone.
    short: Vec<Zeroizing<String>>,
}

impl Redactor {
    /// Of a value with several lines each line counts. A very short one beside longer ones does
    /// where it is no part of another word, and not at all where it has neither letter nor digit.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let (mut words, mut short) = (Vec::new(), Vec::new());
        for value in values {
            let value = Zeroizing::new(value);
            let lines = value.lines().map(str::trim);
            let lines = lines.filter(|line| !line.is_empty());
            let is_long = |line: &str| line.chars().count() >= LINE_MIN;
            let any_long = lines.clone().any(is_long);
            for line in lines {
                let own = Zeroizing::new(line.to_owned());
                if is_long(line) || !any_long {
                    words.push(own);
                } else if line.chars().any(char::is_alphanumeric) {
                    short.push(own);
                }
            }
        }
        for all in [&mut words, &mut short] {
            all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            all.dedup();
        }
        Self { words, short }
    }

    /// The longest thing that is taken out, in bytes.
    pub fn longest(&self) -> usize {
        self.words.first().map_or(0, |word| word.len())
    }

    /// The same text without what is secret.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
        for word in &self.words {
            if clean.contains(word.as_str()) {
                clean = Cow::Owned(clean.replace(word.as_str(), MARK));
            }
        }
        for word in &self.short {
            if clean.contains(word.as_str()) {
                clean = Cow::Owned(without(&clean, word));
            }
        }
        clean
    }

    /// A clean text that was cut at its end, without what there is left of something secret.
    pub fn before_cut<'a>(&self, text: &'a str) -> &'a str {
        let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
        let left = self.words.iter().filter_map(|word| {
            let mut ends = word.char_indices().rev().map(|(end, _)| end);
            ends.find(|end| *end > 0 && text.ends_with(&word[..*end]))
        });
        &text[..text.len() - left.max().unwrap_or(0)]
    }

    /// The same of one that was cut at its beginning.
    pub fn after_cut<'a>(&self, text: &'a str) -> &'a str {
        let text = text.trim_start_matches(char::REPLACEMENT_CHARACTER);
        let left = self.words.iter().filter_map(|word| {
            let mut begins = word.char_indices().skip(1).map(|(begin, _)| begin);
            let begin = begins.find(|begin| text.starts_with(&word[*begin..]))?;
            Some(word.len() - begin)
        });
        &text[left.max().unwrap_or(0)..]
    }
}

/// A text without a word where that is no part of another.
fn without(text: &str, word: &str) -> String {
    let (mut clean, mut from) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices(word) {
        let end = at + word.len();
        let before = text[..at].chars().next_back();
        let after = text[end..].chars().next();
        if before.into_iter().chain(after).any(char::is_alphanumeric) {
            continue;
        }
        clean.push_str(&text[from..at]);
        clean.push_str(MARK);
        from = end;
    }
    clean.push_str(&text[from..]);
    clean
}
