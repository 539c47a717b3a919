//! Prices that somebody wrote, read field by field; all that is wrong with them is told at once.

use super::{DiskPrice, MachinePrice, Prices};
use model::provider::Provider;
use model::source::Value;
use std::collections::BTreeMap;

/// The longest text that is a price's: a date, the word for a type or a region.
const CHARACTERS_MAX: usize = 100;

/// The most that anything costs a month: beyond it sums mean nothing.
const CENTS_MAX: u64 = 1_000_000_000_000;

impl Prices {
    /// Admits what somebody wrote, or tells every fault of it with its place.
    pub fn admit(document: &Value) -> Result<Self, Vec<String>> {
        let mut reader = Reader::default();
        let prices = reader.prices(document);
        match prices {
            Some(prices) if reader.faults.is_empty() => Ok(prices),
            Some(_) | None => Err(reader.faults),
        }
    }
}

/// What is wrong so far.
#[derive(Default)]
struct Reader {
    faults: Vec<String>,
}

/// A mapping and where it stands.
struct Fields<'a> {
    path: &'a str,
    values: BTreeMap<&'a str, &'a Value>,
}

impl Fields<'_> {
    fn place(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }
}

impl Reader {
    fn fault(&mut self, path: &str, found: &str, allowed: &str) {
        let begin = if path.is_empty() { "" } else { ": " };
        self.faults
            .push(format!("{path}{begin}found {found}, allowed: {allowed}"));
    }

    fn prices(&mut self, document: &Value) -> Option<Prices> {
        let fields = self.fields("", document, &["asOf", "machines", "disks"])?;
        let as_of = self.text(&fields, "asOf", true);
        let machines = self.list(&fields, "machines", Self::machine);
        let disks = self.list(&fields, "disks", Self::disk);
        Some(Prices {
            as_of: as_of?,
            machines: machines?,
            disks: disks?,
        })
    }

    fn machine(&mut self, path: &str, value: &Value) -> Option<MachinePrice> {
        let names = ["provider", "serverType", "region", "spot", "cents"];
        let fields = self.fields(path, value, &names)?;
        let provider = self.provider(&fields);
        let server_type = self.text(&fields, "serverType", true);
        let region = self.text(&fields, "region", false);
        let spot = self.flag(&fields, "spot");
        let cents = self.cents(&fields, "cents");
        Some(MachinePrice {
            provider: provider?,
            server_type: server_type?,
            region,
            spot: spot?,
            cents: cents?,
        })
    }

    fn disk(&mut self, path: &str, value: &Value) -> Option<DiskPrice> {
        let fields = self.fields(path, value, &["provider", "region", "centsPer100Gb"])?;
        let provider = self.provider(&fields);
        let region = self.text(&fields, "region", false);
        let cents = self.cents(&fields, "centsPer100Gb");
        Some(DiskPrice {
            provider: provider?,
            region,
            cents_per_100_gb: cents?,
        })
    }

    fn fields<'a>(
        &mut self,
        path: &'a str,
        value: &'a Value,
        names: &[&str],
    ) -> Option<Fields<'a>> {
        let allowed = names.join(", ");
        let Value::Map(entries) = value else {
            self.fault(path, value.kind(), &format!("a mapping with {allowed}"));
            return None;
        };
        let mut values = BTreeMap::new();
        for (name, value) in entries {
            if names.contains(&name.as_str()) {
                values.insert(name.as_str(), value);
            } else {
                self.fault(path, &format!("field `{}`", name.escape_debug()), &allowed);
            }
        }
        Some(Fields { path, values })
    }

    fn list<T>(
        &mut self,
        fields: &Fields<'_>,
        name: &str,
        item: impl Fn(&mut Self, &str, &Value) -> Option<T>,
    ) -> Option<Vec<T>> {
        match fields.values.get(name) {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(Value::List(items)) => {
                let items = items.iter().enumerate();
                let read: Vec<Option<T>> = items
                    .map(|(at, value)| item(self, &format!("{}[{at}]", fields.place(name)), value))
                    .collect();
                read.into_iter().collect()
            }
            Some(
                other @ (Value::Bool(_)
                | Value::Int(_)
                | Value::Float(_)
                | Value::Text(_)
                | Value::Map(_)),
            ) => {
                self.fault(&fields.place(name), other.kind(), "a list of prices");
                None
            }
        }
    }

    fn text(&mut self, fields: &Fields<'_>, name: &str, needed: bool) -> Option<String> {
        match fields.values.get(name) {
            None if !needed => None,
            Some(Value::Text(text))
                if !text.is_empty() && text.chars().count() <= CHARACTERS_MAX =>
            {
                Some(text.clone())
            }
            other => {
                let found = other.map_or("nothing", |value| value.kind());
                let allowed = format!("a text of 1 to {CHARACTERS_MAX} characters");
                self.fault(&fields.place(name), found, &allowed);
                None
            }
        }
    }

    fn provider(&mut self, fields: &Fields<'_>) -> Option<Provider> {
        let word = self.text(fields, "provider", true)?;
        let found = Provider::named(&word).filter(|provider| provider.lends());
        if found.is_none() {
            let lenders = Provider::all().filter(|provider| provider.lends());
            let words: Vec<_> = lenders.map(Provider::as_str).collect();
            let found = format!("`{}`", word.escape_debug());
            self.fault(&fields.place("provider"), &found, &words.join(", "));
        }
        found
    }

    fn flag(&mut self, fields: &Fields<'_>, name: &str) -> Option<bool> {
        match fields.values.get(name) {
            None => Some(false),
            Some(Value::Bool(flag)) => Some(*flag),
            Some(other) => {
                self.fault(&fields.place(name), other.kind(), "true, false");
                None
            }
        }
    }

    fn cents(&mut self, fields: &Fields<'_>, name: &str) -> Option<u64> {
        let value = fields.values.get(name);
        let cents = value.and_then(|value| match value {
            Value::Int(cents) => u64::try_from(*cents).ok(),
            Value::Null
            | Value::Bool(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_) => None,
        });
        let cents = cents.filter(|cents| *cents <= CENTS_MAX);
        if cents.is_none() {
            let found = value.map_or("nothing".to_owned(), ToString::to_string);
            let allowed = format!("whole cents of US dollars, 0 to {CENTS_MAX}");
            self.fault(&fields.place(name), &found, &allowed);
        }
        cents
    }
}
