//! How a manifest names secrets: `secretRef`.

use super::fields::Fields;
use crate::fault::Faults;
use crate::manifest::Named;
use crate::name::Name;
use crate::secret::{EntryName, SecretRef};

/// The entry that holds the private key with which a given machine is entered.
pub(super) const SSH_KEY: &str = "privatekey";

/// The secret that a mapping names in `secretRef`; `usual` is the entry where none is said.
///
/// A namespace is read because the files that people have say one; secrets are always those
/// of the manifest's own project, and `plan::expand` refuses another name.
pub(super) fn named(
    fields: &mut Fields<'_>,
    usual: Option<&str>,
    faults: &mut Faults,
) -> Option<Named> {
    let key = |reference: &mut Fields<'_>, faults: &mut Faults| {
        let key = reference.optional_parsed("key", faults);
        key.or_else(|| usual?.parse().ok())
    };
    read(fields, key, faults)
}

/// The secret that a mapping names in `secretRef`, where several of its entries are needed: nobody
/// can choose one.
pub(super) fn named_whole(fields: &mut Fields<'_>, faults: &mut Faults) -> Option<Named> {
    read(fields, |_, _| None, faults)
}

fn read(
    fields: &mut Fields<'_>,
    key: impl FnOnce(&mut Fields<'_>, &mut Faults) -> Option<EntryName>,
    faults: &mut Faults,
) -> Option<Named> {
    let path = fields.path("secretRef");
    let mut reference = fields.mapping("secretRef", faults)?;
    let name = reference.name("name", Name::LEN_MAX, faults);
    let key = key(&mut reference, faults);
    let namespace: Option<Name> = reference.optional_parsed("namespace", faults);
    reference.finish(faults);
    if let Some(namespace) = &namespace {
        faults.beside(format!("{path}.namespace"), namespace);
    }
    Some(Named {
        path,
        secret: SecretRef { name: name?, key },
        namespace,
    })
}
