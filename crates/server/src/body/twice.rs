//! Names that stand twice in one object of a JSON body: whoever reads it takes one of them, and nobody
//! says which.

use std::collections::BTreeSet;
use std::fmt;

use model::fault::{Code, Fault, Faults};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{below, cut};

/// Every name that stands twice, with its place.
pub(crate) fn twice(body: &[u8]) -> Vec<Fault> {
    let mut faults = Faults::default();
    let seek = Seek {
        path: "",
        faults: &mut faults,
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    // What is no JSON is told by whoever reads it.
    drop(seek.deserialize(&mut json));
    faults.into_vec()
}

/// Looks at one value.
struct Seek<'a> {
    path: &'a str,
    faults: &'a mut Faults,
}

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

/// Whatever is no object and no list has no names.
macro_rules! nothing {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<(), E> {
            Ok(())
        })*
    };
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    nothing!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for at in 0_usize.. {
            let path = format!("{}[{at}]", self.path);
            let seek = Seek {
                path: &path,
                faults: &mut *self.faults,
            };
            if items.next_element_seed(seek)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = fields.next_key::<String>()? {
            let path = below(self.path, &cut(&name));
            if !names.insert(name) {
                let message = "found twice, allowed: each name once";
                self.faults.note(path, Code::Duplicate, message);
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            let seek = Seek {
                path: &path,
                faults: &mut *self.faults,
            };
            fields.next_value_seed(seek)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::twice;

    #[test]
    fn names_that_stand_twice_are_told_with_their_places() {
        let told = |text: &str| {
            let faults = twice(text.as_bytes());
            let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
            lines.join("\n")
        };
        let text = r#"{"a": {"x": 1, "y": null, "x": {"z": 1, "z": 2}}, "b": [{}, {"c": "d", "c": 1.5}], "a": true}"#;
        let twice = "found twice, allowed: each name once";
        assert_eq!(
            told(text),
            format!("a.x: {twice}\nb[1].c: {twice}\na: {twice}")
        );
        assert_eq!(told(r#"{"a": {"a": {"a": [-1]}}}"#), "");
        assert_eq!(told(r#"{"a": 1, "a""#), format!("a: {twice}"));
        assert_eq!(told("no"), "");
    }
}
