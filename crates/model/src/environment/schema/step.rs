//! Where in a tree of values something is, as a key says it: `ingress.hosts[0].name`.

/// One part of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Of a mapping.
    Name(String),
    /// Of a list.
    Index(usize),
}

/// The parts of a key.
pub fn path(key: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for part in key.split('.') {
        let (name, indices) = indexed(part);
        steps.push(Step::Name(name.to_owned()));
        steps.extend(indices.into_iter().map(Step::Index));
    }
    steps
}

/// A name, and the items of lists behind it, if that is what there is.
fn indexed(part: &str) -> (&str, Vec<usize>) {
    let plain = (part, Vec::new());
    let Some((name, rest)) = part.split_once('[') else {
        return plain;
    };
    let Some(rest) = rest.strip_suffix(']').filter(|_| !name.is_empty()) else {
        return plain;
    };
    let indices: Result<_, _> = rest.split("][").map(str::parse).collect();
    indices.map_or(plain, |indices| (name, indices))
}

/// A path as people write it.
pub fn written(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            Step::Name(name) if text.is_empty() => text.push_str(name),
            Step::Name(name) => text.push_str(&format!(".{name}")),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// Whether one key is a part of what another names.
pub fn is_below(key: &str, above: &str) -> bool {
    key.strip_prefix(above)
        .is_some_and(|rest| rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_keys_are_names() {
        for key in ["a[", "a[x]", "[0]", "a[-1]", "a]"] {
            assert_eq!(path(key), [Step::Name(key.to_owned())]);
        }
        let name = |name: &str| Step::Name(name.to_owned());
        let steps = path("a[0][12].b");
        assert_eq!(
            steps,
            [name("a"), Step::Index(0), Step::Index(12), name("b")]
        );
        assert_eq!(written(&steps), "a[0][12].b");
    }
}
