//! Objects by the text in which somebody wrote them down: applied, and taken away again.
//!
//! Everything is applied on the server's side as the field manager `slipway`, so that fields of
//! others stay theirs, and applying the same text twice changes nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube_client::Api;
use kube_client::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube_client::core::GroupVersionKind;
use kube_client::discovery::{ApiCapabilities, Scope};
use kube_client::error::DiscoveryError;
use model::secret::Secret;
use serde_json::{Value, json};

use super::{Door, MANAGER, answer, text};
use crate::error::{Error, Kind};

/// How long a kind may take to become known after its definition was applied.
const DEFINE_MAX: Duration = Duration::from_secs(30);

/// How often we look.
const LOOK: Duration = Duration::from_millis(200);

/// Where objects go that name no namespace.
const DEFAULT: &str = "default";

/// One object, by its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// `v1`, `apps/v1` …
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Where it is; nothing for what is in no namespace, and empty is the default one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Reference {
    /// Whether both name one object: that its group has another version says nothing.
    pub fn is_the_same(&self, other: &Self) -> bool {
        let whole = |one: &Self| {
            let (group, _) = one.api_version.split_once('/').unwrap_or_default();
            (
                group.to_owned(),
                one.kind.clone(),
                one.namespace.clone(),
                one.name.clone(),
            )
        };
        whole(self) == whole(other)
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// What a text holds, without asking anybody.
pub fn objects(text: &str) -> Result<Vec<Reference>, Error> {
    Ok(Objects::read(text)?.references())
}

/// Objects that were read from a text, in the order in which they are applied: namespaces and
/// definitions of kinds first, the rest in its order.
#[derive(Debug, Clone, PartialEq)]
pub struct Objects(Vec<DynamicObject>);

impl Objects {
    /// Reads a text of YAML documents.
    pub fn read(text: &str) -> Result<Self, Error> {
        let mut objects = text::read(text)?;
        objects.sort_by_key(rank);
        Ok(Self(objects))
    }

    /// The same with something changed in each of them.
    pub fn changed(self, change: impl Fn(&mut Value) -> Result<(), Error>) -> Result<Self, Error> {
        let changed = |object: DynamicObject| {
            let mut value = serde_json::to_value(object).map_err(|_| text::bad("it"))?;
            change(&mut value)?;
            serde_json::from_value(value).map_err(|_| text::bad("it"))
        };
        let all: Result<_, Error> = self.0.into_iter().map(changed).collect();
        all.map(Self)
    }

    /// Their names, as far as the text tells them.
    pub fn references(&self) -> Vec<Reference> {
        self.0.iter().map(reference).collect()
    }
}

impl Door {
    /// Applies every object of a text of YAML documents: namespaces and definitions of kinds
    /// first, the rest in its order.
    pub async fn apply(&self, text: &str) -> Result<Vec<Reference>, Error> {
        self.apply_all(&Objects::read(text)?).await
    }

    /// Applies objects in their order; answers their whole names.
    pub async fn apply_all(&self, objects: &Objects) -> Result<Vec<Reference>, Error> {
        let objects = &objects.0;
        let mut known = Kinds {
            defines: objects.iter().any(is_definition),
            ..Kinds::default()
        };
        let mut applied = Vec::with_capacity(objects.len());
        for object in objects {
            let (api, reference) = self.place(reference(object), &mut known).await?;
            self.apply_one(&api, &reference, object).await?;
            applied.push(reference);
        }
        Ok(applied)
    }

    /// Removes every object of a text, in the opposite order; what is gone already is fine.
    ///
    /// Their parts are removed in the background; a kind that is not known any more had none left.
    pub async fn remove(&self, text: &str) -> Result<(), Error> {
        self.prune(&objects(text)?, &[]).await
    }

    /// Removes objects in the same way, but for those to keep.
    pub async fn prune(&self, all: &[Reference], keep: &[Reference]) -> Result<(), Error> {
        self.delete_all(all, keep, &DeleteParams::background())
            .await
    }

    /// Removes objects in the opposite order; each is there until all its parts are gone.
    pub async fn take_down(&self, all: &[Reference]) -> Result<(), Error> {
        self.delete_all(all, &[], &DeleteParams::foreground()).await
    }

    async fn delete_all(
        &self,
        all: &[Reference],
        keep: &[Reference],
        params: &DeleteParams,
    ) -> Result<(), Error> {
        let mut known = Kinds::default();
        for reference in all.iter().rev() {
            let (api, reference) = match self.place(reference.clone(), &mut known).await {
                Err(error) if error.kind == Kind::UnknownKind => continue,
                placed => placed?,
            };
            if keep.iter().any(|kept| kept.is_the_same(&reference)) {
                continue;
            }
            let asked = self
                .ask(
                    &format!("delete {reference}"),
                    api.delete(&reference.name, params),
                )
                .await;
            match asked {
                Err(error) if error.kind != Kind::Absent => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Those of some objects that are still there.
    pub async fn still_there(&self, all: &[Reference]) -> Result<Vec<Reference>, Error> {
        let mut known = Kinds::default();
        let mut there = Vec::new();
        for reference in all {
            let (api, reference) = match self.place(reference.clone(), &mut known).await {
                Err(error) if error.kind == Kind::UnknownKind => continue,
                placed => placed?,
            };
            let question = api.get_metadata_opt(&reference.name);
            if self
                .ask(&format!("look for {reference}"), question)
                .await?
                .is_some()
            {
                there.push(reference);
            }
        }
        Ok(there)
    }

    /// Applies a `ConfigMap` with these entries and no others of ours.
    pub async fn apply_config_map(
        &self,
        namespace: &str,
        name: &str,
        entries: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": namespace, "name": name },
            "data": entries,
        });
        self.apply_value(object).await
    }

    /// Applies a `Secret` with these entries and no others of ours; `of` is its type, such as
    /// `Opaque`, and cannot be changed later.
    pub async fn apply_secret(
        &self,
        namespace: &str,
        name: &str,
        of: &str,
        entries: &BTreeMap<String, Secret>,
    ) -> Result<(), Error> {
        let data: BTreeMap<&String, String> = entries
            .iter()
            .map(|(entry, value)| (entry, STANDARD.encode(value.expose())))
            .collect();
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "type": of,
            "metadata": { "namespace": namespace, "name": name },
            "data": data,
        });
        self.apply_value(object).await
    }

    pub(super) async fn apply_value(&self, object: Value) -> Result<(), Error> {
        let object: DynamicObject = serde_json::from_value(object).map_err(|_| text::bad("it"))?;
        let (api, reference) = self
            .place(reference(&object), &mut Kinds::default())
            .await?;
        self.apply_one(&api, &reference, &object).await
    }

    async fn apply_one(
        &self,
        api: &Api<DynamicObject>,
        reference: &Reference,
        object: &DynamicObject,
    ) -> Result<(), Error> {
        let params = PatchParams::apply(MANAGER).force();
        let patch = Patch::Apply(object);
        // The answer has the metadata alone: values of secrets need not come back.
        let question = api.patch_metadata(&reference.name, &params, &patch);
        let asked = tokio::time::timeout(self.limits().answer, question).await;
        let what = format!("apply {reference}");
        match asked {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(hide(reference, &what, answer::told(&what, &error))),
            Err(_) => Err(self.silent(&what)),
        }
    }

    /// Where an object is applied: its kind is looked up once per text.
    async fn place(
        &self,
        mut reference: Reference,
        known: &mut Kinds,
    ) -> Result<(Api<DynamicObject>, Reference), Error> {
        let (kind, can) = self.kind(&reference, known).await?;
        let client = self.client.clone();
        let api = match can.scope {
            Scope::Cluster => {
                reference.namespace = None;
                Api::all_with(client, &kind)
            }
            Scope::Namespaced => {
                let namespace = reference
                    .namespace
                    .get_or_insert_with(|| DEFAULT.to_owned());
                Api::namespaced_with(client, namespace, &kind)
            }
        };
        Ok((api, reference))
    }

    async fn kind(
        &self,
        of: &Reference,
        known: &mut Kinds,
    ) -> Result<(ApiResource, ApiCapabilities), Error> {
        let key = (of.api_version.clone(), of.kind.clone());
        if let Some(found) = known.found.get(&key) {
            return Ok(found.clone());
        }
        let (group, version) = of
            .api_version
            .split_once('/')
            .unwrap_or(("", &of.api_version));
        let sought = GroupVersionKind::gvk(group, version, &of.kind);
        let began = Instant::now();
        loop {
            let question = kube_client::discovery::pinned_kind(&self.client, &sought);
            let asked = tokio::time::timeout(self.limits().answer, question).await;
            let what = format!("look up the kind {} of {}", of.kind, of.api_version);
            let error = match asked {
                Ok(Ok(found)) => {
                    known.found.insert(key, found.clone());
                    return Ok(found);
                }
                Ok(Err(error)) => unknown(of, &what, &error),
                Err(_) => self.silent(&what),
            };
            // A kind that was defined a moment ago is known a moment later.
            let may_come = known.defines && began.elapsed() < DEFINE_MAX;
            if error.kind != Kind::UnknownKind || !may_come {
                return Err(error);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// The kinds that were looked up already, and whether the text defines any.
#[derive(Default)]
struct Kinds {
    found: BTreeMap<(String, String), (ApiResource, ApiCapabilities)>,
    defines: bool,
}

/// What it means that a kind was not found.
fn unknown(of: &Reference, what: &str, error: &kube_client::Error) -> Error {
    let absent = matches!(
        error,
        kube_client::Error::Discovery(
            DiscoveryError::MissingKind(_)
                | DiscoveryError::MissingResource(_)
                | DiscoveryError::MissingApiGroup(_)
                | DiscoveryError::EmptyApiGroup(_),
        )
    ) || matches!(error, kube_client::Error::Api(status) if status.code == 404);
    if absent {
        return Error::new(
            Kind::UnknownKind,
            format!(
                "could not apply {of}, the API server knows no kind {} of {}",
                of.kind, of.api_version
            ),
        );
    }
    answer::told(what, error)
}

/// Leaves out words that may quote what must not be seen.
fn hide(reference: &Reference, what: &str, error: Error) -> Error {
    let quotes = matches!(error.kind, Kind::Rejected | Kind::Garbage | Kind::Busy);
    if reference.kind != "Secret" || !quotes {
        return error;
    }
    Error::new(
        error.kind,
        format!(
            "could not {what}, the API server refused it; its words are left out because they may quote values"
        ),
    )
}

/// What must be there before the rest.
fn rank(object: &DynamicObject) -> u8 {
    match kind_of(object) {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        _ => 2,
    }
}

fn is_definition(object: &DynamicObject) -> bool {
    kind_of(object) == "CustomResourceDefinition"
}

fn kind_of(object: &DynamicObject) -> &str {
    object
        .types
        .as_ref()
        .map_or("", |types| types.kind.as_str())
}

/// The name of an object that was read from a text.
fn reference(object: &DynamicObject) -> Reference {
    let types = object.types.clone().unwrap_or_default();
    Reference {
        api_version: types.api_version,
        kind: types.kind,
        namespace: object.metadata.namespace.clone(),
        name: object.metadata.name.clone().unwrap_or_default(),
    }
}
