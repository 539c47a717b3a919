//! Takes out of text what nobody should see.

use std::borrow::Cow;

/// What stands in its place.
const MARK: &str = "***";

/// Lines of a secret with fewer characters stand in any text by chance.
const LINE_MIN: usize = 4;

/// Knows what is secret, and takes it out of lines.
#[derive(Default)]
pub struct Redactor {
    /// The longest first: one may be a part of another.
    words: Vec<zeroize::Zeroizing<String>>,
}

impl Redactor {
    /// Of a value with several lines each line counts, unless it is very short.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut words = Vec::new();
        for value in values {
            let value = zeroize::Zeroizing::new(value);
            let trimmed = value.trim();
            let mut lines = trimmed.lines().map(str::trim);
            if trimmed.lines().nth(1).is_some() {
                let long = lines.filter(|line| line.chars().count() >= LINE_MIN);
                words.extend(long.map(|line| zeroize::Zeroizing::new(line.to_owned())));
            } else if let Some(line) = lines.next() {
                words.push(zeroize::Zeroizing::new(line.to_owned()));
            }
        }
        words.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        words.dedup();
        Self { words }
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
        clean
    }
}
