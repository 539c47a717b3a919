//! The server is killed in the middle of what takes long; the next one finishes it.

use crate::asking::{answered, until};
use crate::hosts_within::runs;
use crate::shape::{NAME, NODE_PORT, Shape};
use crate::site::{NEXT, VERSION, story};

#[test]
fn killed_while_a_cluster_is_made_and_deleted_it_finishes_both() {
    let test = "killed::killed_while_a_cluster_is_made_and_deleted_it_finishes_both";
    let shape = Shape::small(VERSION, 1);
    story(test, &[VERSION], |site| {
        site.declare(shape, &[]);
        for verb in ["init", "join"] {
            site.step(&format!("killed while kubeadm {verb} runs"), |site| {
                let what = format!("kubeadm {verb}");
                until(&what, || runs(&["kubeadm", verb]).then_some(()));
                site.start();
            });
        }
        let before = site.ids();
        site.step("the last server makes it ready", |site| site.apply(shape));
        assert_eq!(site.ids(), before, "no machine was made twice");
        site.step("a pod answers", |site| {
            site.deploy(1);
            let at = site.addresses("compute");
            answered(&at[0], NODE_PORT);
        });
        site.step("killed while machines are deleted", |site| {
            site.client(&["delete", "manifest", NAME, "--yes"]);
            let hosts = site.directory().join("sandbox/hosts");
            until("the first host goes", || {
                let left = std::fs::read_dir(&hosts).map_or(0, Iterator::count);
                (left < 2).then_some(())
            });
            site.start();
        });
        site.step("the last server deletes the rest", |site| site.gone());
    });
}

#[test]
fn killed_while_a_cluster_is_upgraded_it_finishes_that() {
    let test = "killed::killed_while_a_cluster_is_upgraded_it_finishes_that";
    let shape = Shape::small(VERSION, 1);
    let next = Shape::small(NEXT, 1);
    story(test, &[VERSION, NEXT], |site| {
        site.step("from apply to all nodes ready", |site| site.apply(shape));
        let before = site.ids();
        site.declare(next, &[]);
        for what in ["the control plane", "the other node"] {
            site.step(&format!("killed while kubeadm upgrades {what}"), |site| {
                until(what, || runs(&["kubeadm", "upgrade"]).then_some(()));
                site.start();
                // The next one is to be seen as well.
                until("that ends", || {
                    (!runs(&["kubeadm", "upgrade"])).then_some(())
                });
            });
        }
        site.step("the last server finishes it", |site| site.apply(next));
        assert_eq!(site.ids(), before, "no machine was made anew");
        site.step("delete", |site| site.delete());
    });
}
