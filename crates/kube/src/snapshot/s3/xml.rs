//! Reads the answers of a store: elements, and text between them. What a store has no use for,
//! as attributes and kinds of documents, is passed over or refused.

/// How deep elements may be in each other; answers of stores are four deep.
const DEPTH_MAX: usize = 16;

/// An element with all that is in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) name: String,
    text: String,
    children: Vec<Self>,
}

impl Element {
    /// Reads a document; nothing of one that is damaged.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut rest = text.trim_start_matches('\u{feff}').trim();
        let mut open: Vec<Self> = Vec::new();
        while !rest.is_empty() {
            let (before, markup) = rest.split_at(rest.find('<')?);
            match open.last_mut() {
                Some(inside) => inside.text.push_str(&plain(before)?),
                None if before.trim().is_empty() => {}
                None => return None,
            }
            if let Some(comment) = markup.strip_prefix("<!--") {
                rest = comment.split_once("-->")?.1;
                continue;
            }
            let (tag, after) = markup.strip_prefix('<')?.split_once('>')?;
            rest = after;
            if tag.starts_with('?') {
                continue;
            }
            let closed = if let Some(name) = tag.strip_prefix('/') {
                let whole = open.pop()?;
                (whole.name == local(name)).then_some(whole)
            } else {
                let (tag, empty) = match tag.strip_suffix('/') {
                    Some(tag) => (tag, true),
                    None => (tag, false),
                };
                let element = Self {
                    name: named(tag)?,
                    ..Self::default()
                };
                if !empty {
                    open.push(element);
                    if open.len() > DEPTH_MAX {
                        return None;
                    }
                    continue;
                }
                Some(element)
            };
            let closed = closed?;
            match open.last_mut() {
                Some(around) => around.children.push(closed),
                None => return rest.trim().is_empty().then_some(closed),
            }
        }
        None
    }

    /// All elements of a name right inside it.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &Self> {
        let children = self.children.iter();
        children.filter(move |child| child.name == name)
    }

    /// The text of the first element of a name right inside it.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let mut children = self.children.iter();
        let found = children.find(|child| child.name == name);
        found.map(|child| child.text.trim())
    }
}

/// The name of an element whose beginning is this, without its attributes.
fn named(tag: &str) -> Option<String> {
    let name = tag.split_whitespace().next()?;
    let usable = |c: char| c.is_alphanumeric() || matches!(c, ':' | '_' | '-' | '.');
    // Also what begins with `!`: kinds of documents are nobody's business here.
    name.chars().all(usable).then(|| local(name))
}

/// A name without its space.
fn local(name: &str) -> String {
    let name = name.trim();
    name.rsplit(':').next().unwrap_or(name).to_owned()
}

/// A text as it is meant.
fn plain(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let (word, after) = after.split_once(';')?;
        plain.push(match word {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            word => {
                let number = word.strip_prefix('#')?;
                let number = match number.strip_prefix('x') {
                    Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(number)?
            }
        });
        rest = after;
    }
    plain.push_str(rest);
    Some(plain)
}

/// A text as it is written in a document.
pub(super) fn written(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            other => written.push(other),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_store_says_is_read() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
            <!-- a list -->
            <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
                <Name>etcd</Name><Prefix/><IsTruncated>false</IsTruncated>
                <Contents><Key>a&amp;b&#x2f;&#99;</Key><Size>7</Size></Contents>
                <s3:Contents><s3:Key>d</s3:Key></s3:Contents>
            </ListBucketResult>"#;
        let list = Element::read(text).unwrap();
        assert_eq!(list.name, "ListBucketResult");
        assert_eq!(list.text("Prefix"), Some(""));
        assert_eq!(list.text("IsTruncated"), Some("false"));
        assert_eq!(list.text("Nothing"), None);
        let keys: Vec<_> = list.all("Contents").map(|one| one.text("Key")).collect();
        assert_eq!(keys, [Some("a&b/c"), Some("d")]);
        let quoted = "\"<5&6>\"";
        assert_eq!(plain(&written(quoted)).as_deref(), Some(quoted));
    }

    #[test]
    fn what_is_no_answer_is_not_read() {
        for text in [
            "",
            "it works!",
            "<a>",
            "<a></b>",
            "<a></a><b></b>",
            "</a>",
            "<a>&unknown;</a>",
            "<a>&amp</a>",
            "<!DOCTYPE html><html></html>",
            "<a",
            &"<a>".repeat(1_000),
        ] {
            assert_eq!(Element::read(text), None, "{text:?}");
        }
    }
}
