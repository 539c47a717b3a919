//! Lists what is in the program: a software bill of materials in `CycloneDX` 1.5.
//!
//! `cargo tree` says which packages are in, since it alone knows which features are on; `cargo
//! metadata` says what each is and who uses whom; the lock file says what its bytes were. What is
//! in the program and comes from no package is listed too: the C library, the database engine and
//! Rust's own library. Packages that only wrote code while compiling are listed as `excluded`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::time::rfc3339;

/// A name and a version.
pub(super) type Package = (String, String);

/// Where the list comes from.
pub(super) struct Sources<'a> {
    /// The package of the program.
    pub(super) root: &'a str,
    /// Its version.
    pub(super) version: &'a str,
    /// What `cargo metadata` says.
    pub(super) metadata: &'a Value,
    /// The text of `Cargo.lock`.
    pub(super) lock: &'a str,
    /// All packages that take part.
    pub(super) packages: &'a BTreeSet<Package>,
    /// Those of them whose code is in the program.
    pub(super) linked: &'a BTreeSet<Package>,
    /// What is linked and is no package: name, version, licence.
    pub(super) others: &'a [(String, String, &'static str)],
    /// When, in seconds since 1970.
    pub(super) time: u64,
}

/// The packages in what `cargo tree --prefix none --format {p}` prints.
pub(super) fn packages(tree: &str) -> BTreeSet<Package> {
    let mut found = BTreeSet::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next())
            && let Some(version) = version.strip_prefix('v')
        {
            found.insert((name.to_owned(), version.to_owned()));
        }
    }
    found
}

impl Sources<'_> {
    /// The list, in an order that depends on nothing but its content.
    pub(super) fn list(&self) -> Result<Value> {
        let known = self.known()?;
        let checksums = checksums(self.lock);
        let root = (self.root.to_owned(), self.version.to_owned());
        ensure!(
            known.contains_key(&root),
            "the packages lack {} {}",
            root.0,
            root.1
        );
        let mut components = Vec::new();
        let mut dependencies = Vec::new();
        for (package, described) in &known {
            let ours = described["source"].is_null();
            if *package != root {
                components.push(self.component(package, described, ours, &checksums)?);
            }
            let mut uses = self.uses(described, &known);
            if *package == root {
                uses.extend(self.others.iter().map(other_reference));
            }
            dependencies.push(json!({ "ref": reference(package), "dependsOn": uses }));
        }
        for other in self.others {
            let (name, version, licence) = other;
            components.push(json!({
                "type": "library",
                "bom-ref": other_reference(other),
                "name": name,
                "version": version,
                "scope": "required",
                "licenses": [{ "expression": licence }],
                "purl": other_reference(other),
            }));
            dependencies.push(json!({ "ref": other_reference(other), "dependsOn": [] }));
        }
        Ok(json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "timestamp": rfc3339(self.time),
                "tools": { "components": [{ "type": "application", "name": "cargo xtask release" }] },
                "component": {
                    "type": "application",
                    "bom-ref": reference(&root),
                    "name": root.0,
                    "version": root.1,
                    "licenses": [{ "expression": "Apache-2.0" }],
                    "purl": format!("pkg:generic/{}@{}", root.0, root.1),
                },
            },
            "components": components,
            "dependencies": dependencies,
        }))
    }

    /// The packages that take part, each with what cargo says of it.
    fn known(&self) -> Result<BTreeMap<Package, &Value>> {
        let all = self.metadata["packages"].as_array();
        let mut known = BTreeMap::new();
        for described in all.context("cargo metadata names no packages")? {
            let name = |key: &str| described[key].as_str().unwrap_or_default().to_owned();
            let package = (name("name"), name("version"));
            if self.packages.contains(&package) {
                known.insert(package, described);
            }
        }
        for package in self.packages {
            ensure!(
                known.contains_key(package),
                "cargo metadata does not know {} {}",
                package.0,
                package.1
            );
        }
        Ok(known)
    }

    /// One package.
    fn component(
        &self,
        package: &Package,
        described: &Value,
        ours: bool,
        checksums: &BTreeMap<Package, String>,
    ) -> Result<Value> {
        let (name, version) = package;
        let licence = described["license"]
            .as_str()
            .with_context(|| format!("{name} {version} names no licence"))?;
        let scope = if self.linked.contains(package) {
            "required"
        } else {
            "excluded"
        };
        let mut component = json!({
            "type": "library",
            "bom-ref": reference(package),
            "name": name,
            "version": version,
            "scope": scope,
            // The slash is an older way to say so.
            "licenses": [{ "expression": licence.replace('/', " OR ") }],
        });
        // A name of ours may be somebody else's in the registry: no address for those.
        if !ours {
            let checksum = checksums
                .get(package)
                .with_context(|| format!("Cargo.lock has no checksum of {name} {version}"))?;
            component["purl"] = json!(format!("pkg:cargo/{name}@{version}"));
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        Ok(component)
    }

    /// Which of the packages one uses, other than for its build and its tests.
    fn uses(&self, described: &Value, known: &BTreeMap<Package, &Value>) -> Vec<String> {
        let by_id: BTreeMap<&str, &Package> = known
            .iter()
            .filter_map(|(package, described)| Some((described["id"].as_str()?, package)))
            .collect();
        let nodes = self.metadata["resolve"]["nodes"].as_array();
        let node = nodes
            .into_iter()
            .flatten()
            .find(|node| node["id"] == described["id"]);
        let uses: BTreeSet<String> = node
            .and_then(|node| node["deps"].as_array())
            .into_iter()
            .flatten()
            .filter(|used| {
                let kinds = used["dep_kinds"].as_array();
                kinds
                    .into_iter()
                    .flatten()
                    .any(|kind| kind["kind"].is_null())
            })
            .filter_map(|used| by_id.get(used["pkg"].as_str()?))
            .map(|package| reference(package))
            .collect();
        uses.into_iter().collect()
    }
}

/// How the list names a package.
fn reference((name, version): &Package) -> String {
    format!("{name}@{version}")
}

/// How the list names what is no package.
fn other_reference((name, version, _): &(String, String, &str)) -> String {
    format!("pkg:generic/{name}@{version}")
}

/// The checksums in a lock file; packages of our own have none.
fn checksums(lock: &str) -> BTreeMap<Package, String> {
    let mut found = BTreeMap::new();
    for entry in lock.split("[[package]]") {
        let value = |key: &str| {
            entry.lines().find_map(|line| {
                let value = line.strip_prefix(key)?.strip_prefix(" = \"")?;
                value.strip_suffix('"').map(str::to_owned)
            })
        };
        if let (Some(name), Some(version), Some(checksum)) =
            (value("name"), value("version"), value("checksum"))
        {
            found.insert((name, version), checksum);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Package, Sources, packages};
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"app\"\nversion = \"0.1.0\"\n\
        dependencies = [\n \"lib\",\n]\n\n[[package]]\nname = \"lib\"\nversion = \"1.0.0\"\n\
        source = \"registry\"\nchecksum = \"c0ffee\"\n\n[[package]]\nname = \"derive\"\n\
        version = \"2.0.0\"\nsource = \"registry\"\nchecksum = \"decade\"\n";

    fn package(name: &str, version: &str) -> Package {
        (name.to_owned(), version.to_owned())
    }

    fn metadata() -> Value {
        let used = |id: &str, kind: Value| json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] });
        json!({
            "packages": [
                { "id": "r", "name": "derive", "version": "2.0.0", "source": "x", "license": "MIT/Apache-2.0" },
                { "id": "a", "name": "app", "version": "0.1.0", "source": null, "license": "Apache-2.0" },
                { "id": "l", "name": "lib", "version": "1.0.0", "source": "x", "license": "MIT" },
                { "id": "t", "name": "test-only", "version": "9.0.0", "source": "x", "license": "MIT" },
            ],
            "resolve": { "nodes": [
                { "id": "a", "deps": [used("l", Value::Null), used("r", Value::Null), used("t", json!("dev"))] },
                { "id": "l", "deps": [used("t", json!("build"))] },
            ] },
        })
    }

    fn list(metadata: &Value) -> anyhow::Result<Value> {
        let all = packages(
            "app v0.1.0 (/somewhere)\nlib v1.0.0\nderive v2.0.0 (proc-macro)\nlib v1.0.0 (*)\n",
        );
        let linked = BTreeSet::from([package("app", "0.1.0"), package("lib", "1.0.0")]);
        let sources = Sources {
            root: "app",
            version: "0.1.0",
            metadata,
            lock: LOCK,
            packages: &all,
            linked: &linked,
            others: &[("engine".to_owned(), "3.1".to_owned(), "blessing")],
            time: 0,
        };
        sources.list()
    }

    #[test]
    fn what_is_in_is_listed_and_what_only_builds_or_tests_is_not() {
        let list = list(&metadata()).unwrap();
        let shown: Vec<String> = list["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| {
                format!(
                    "{} {} {} {} {}",
                    part["bom-ref"],
                    part["purl"],
                    part["scope"],
                    part["licenses"][0]["expression"],
                    part["hashes"][0]["content"]
                )
                .replace('"', "")
            })
            .collect();
        assert_eq!(
            shown,
            [
                "derive@2.0.0 pkg:cargo/derive@2.0.0 excluded MIT OR Apache-2.0 decade",
                "lib@1.0.0 pkg:cargo/lib@1.0.0 required MIT c0ffee",
                "pkg:generic/engine@3.1 pkg:generic/engine@3.1 required blessing null",
            ]
        );
    }

    #[test]
    fn the_graph_begins_at_the_program() {
        let list = list(&metadata()).unwrap();
        assert_eq!(list["metadata"]["component"]["bom-ref"], "app@0.1.0");
        assert_eq!(
            list["dependencies"],
            json!([
                { "ref": "app@0.1.0", "dependsOn": ["derive@2.0.0", "lib@1.0.0", "pkg:generic/engine@3.1"] },
                { "ref": "derive@2.0.0", "dependsOn": [] },
                { "ref": "lib@1.0.0", "dependsOn": [] },
                { "ref": "pkg:generic/engine@3.1", "dependsOn": [] },
            ])
        );
    }

    #[test]
    fn the_order_of_the_answers_does_not_show() {
        let mut other = metadata();
        for place in ["/packages", "/resolve/nodes/0/deps", "/resolve/nodes"] {
            let rows = other.pointer_mut(place).unwrap();
            rows.as_array_mut().unwrap().reverse();
        }
        assert_ne!(other, metadata());
        assert_eq!(
            list(&other).unwrap().to_string(),
            list(&metadata()).unwrap().to_string()
        );
    }

    #[test]
    fn a_package_without_licence_or_description_is_refused() {
        let mut without = metadata();
        without["packages"][2]["license"] = Value::Null;
        let refused = list(&without).unwrap_err().to_string();
        assert_eq!(refused, "lib 1.0.0 names no licence");
        let mut unknown = metadata();
        unknown["packages"][2]["version"] = json!("1.0.1");
        let refused = list(&unknown).unwrap_err().to_string();
        assert_eq!(refused, "cargo metadata does not know lib 1.0.0");
    }
}
