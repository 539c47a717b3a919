//! A cluster gets an add-on, another version of it, and loses it again.

use crate::asking::{asked_for, until};
use crate::shape::{NAME, Shape};
use crate::site::{Site, VERSION, foreseen};
use lab::kubernetes::{EXPORTERS, exporter};

/// The add-on as it comes, and as it is changed.
const FIRST: &str = "[{name: node-exporter, version: v1.9.1}]";
const THEN: &str = "[{name: node-exporter, version: v1.10.2, values: {port: 9200}}]";

#[test]
fn an_add_on_comes_to_every_node_is_changed_and_goes_with_all_that_it_brought() {
    let test = "addon::an_add_on_comes_to_every_node_is_changed_and_goes_with_all_that_it_brought";
    if !EXPORTERS.iter().all(|version| exporter(version)) {
        return lab::skip(
            test,
            "there is no add-on to install; `cargo xtask addons` builds it",
        );
    }
    let with = |addons, compute| Shape {
        addons,
        ..Shape::small(VERSION, compute)
    };
    foreseen(test, &[VERSION], |site| {
        site.step("from apply to an add-on that is well", |site| {
            site.apply(with(FIRST, 1));
            told(site, "node-exporter v1.9.1, well");
        });
        site.step("every node tells what it does", |site| {
            exported(site, 9100, "1.9.1");
        });
        site.step("a node that comes has it, too", |site| {
            site.apply(with(FIRST, 2));
            exported(site, 9100, "1.9.1");
        });
        site.step("what somebody removed comes back", |site| {
            let words = ["-n", "kube-system", "delete", "daemonset", "node-exporter"];
            site.kubectl(&words, "").unwrap();
            exported(site, 9100, "1.9.1");
        });
        site.step("another version, at another port", |site| {
            site.apply(with(THEN, 2));
            told(site, "node-exporter v1.10.2, well");
            exported(site, 9200, "1.10.2");
            let at = site.addresses("compute").remove(0);
            assert!(asked_for("/metrics", &at, 9100).is_err());
        });
        site.step("it goes, and nothing of it is left", |site| {
            assert!(!left(site).is_empty());
            site.apply(with("[]", 2));
            assert_eq!(left(site), Vec::<String>::new());
        });
        site.step("delete", |site| site.delete());
    });
}

/// Looks whether people are told so of the cluster.
#[track_caller]
fn told(site: &mut Site, line: &str) {
    let told = site.client(&["describe", "cluster", NAME]);
    assert!(told.contains(line), "{told}");
}

/// Waits until every node tells of itself in this version.
#[track_caller]
fn exported(site: &mut Site, port: u16, version: &str) {
    let version = format!("version=\"{version}\"");
    for role in ["control", "compute"] {
        let names = site.names(role);
        for (name, at) in names.iter().zip(site.addresses(role)) {
            until(&format!("metrics of {name} at {at}:{port}"), || {
                let metrics = asked_for("/metrics", &at, port).ok()?;
                let mut lines = metrics.lines();
                let built = lines.find(|line| line.starts_with("node_exporter_build_info{"))?;
                let named = format!("nodename=\"{name}\"");
                (built.contains(&version) && metrics.contains(&named)).then_some(())
            });
        }
    }
}

/// All objects that come with the add-on.
fn left(site: &mut Site) -> Vec<String> {
    let kinds = "daemonsets,services,serviceaccounts,configmaps,pods,endpointslices";
    let words = ["get", kinds, "--all-namespaces", "-o", "name"];
    let names = site.kubectl(&words, "").unwrap();
    let of_it = names.lines().filter(|name| name.contains("node-exporter"));
    of_it.map(str::to_owned).collect()
}
