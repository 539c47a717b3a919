//! Certificates that end within days are made anew, and nobody but that one member is disturbed.

use crate::asking::{answered, until};
use crate::shape::{NAME, NODE_PORT, Shape};
use crate::site::{Site, VERSION, story};
use serde_json::Value;

/// Makes certificates that end in five days, as kubeadm does where it is told so.
const EARLY: &str = "set -eu
kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system get configmap kubeadm-config \
    -o 'jsonpath={.data.ClusterConfiguration}' >/tmp/early.yaml
sed -i '/^certificateValidityPeriod:/d' /tmp/early.yaml
echo 'certificateValidityPeriod: 120h0m0s' >>/tmp/early.yaml
kubeadm certs renew all --config /tmp/early.yaml
rm /tmp/early.yaml
";

/// In how many days the first certificate of the control machine ends, as the host itself says.
fn days(name: &str) -> i64 {
    let words = ["kubeadm", "certs", "check-expiration", "-o", "json"];
    let said = Site::host(name).run(&words, b"").unwrap();
    let told: Value = serde_json::from_str(&said[said.find('{').unwrap()..]).unwrap();
    let certificates = told["certificates"].as_array().unwrap().iter();
    let left = certificates.filter(|one| one["missing"] != true);
    let left = left.filter_map(|one| one["residualTime"].as_i64());
    left.min().unwrap() / 86_400
}

/// The containers of the control plane that run.
fn containers(name: &str) -> Vec<String> {
    let words = ["ctr", "-n", "k8s.io", "containers", "ls", "-q"];
    let parts = [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    ];
    let ids = parts.iter().map(|part| {
        let filter = format!("labels.\"io.kubernetes.container.name\"=={part}");
        Site::host(name)
            .run(&[&words[..], &[&filter]].concat(), b"")
            .unwrap()
    });
    ids.collect()
}

#[test]
fn certificates_that_end_soon_are_made_anew_and_used() {
    let test = "renew::certificates_that_end_soon_are_made_anew_and_used";
    let shape = Shape::small(VERSION, 1);
    story(test, &[VERSION], |site| {
        site.step("from apply to all nodes ready", |site| site.apply(shape));
        site.step("a pod answers", |site| {
            site.deploy(1);
            let at = site.addresses("compute");
            answered(&at[0], NODE_PORT);
        });
        let control = site.names("control").remove(0);
        let before = containers(&control);
        site.step("a year passes but for five days", |site| {
            site.kill();
            let host = Site::host(&control);
            host.run(&["sh", "-c", EARLY], b"").unwrap();
            assert!(days(&control) < 6);
            site.start();
        });
        site.step("they are renewed", |site| {
            until("the renewal", || {
                let tasks = site.told(&["get", "tasks"]);
                let renew = |task: &&Value| task["kind"] == "renew";
                let done = tasks.iter().find(renew)?["state"] == "done";
                done.then_some(())
            });
            assert!(days(&control) > 360, "{}", days(&control));
            let after = containers(&control);
            assert!(
                before.iter().zip(&after).all(|(old, new)| old != new),
                "{after:?}"
            );
        });
        site.step("the kubeconfig that is given out is the new one", |site| {
            let given = site.client(&["kubeconfig", NAME]);
            let own = ["cat", "/etc/kubernetes/admin.conf"];
            let own = Site::host(&control).run(&own, b"").unwrap();
            let data = |text: &str| {
                let mut lines = text.lines().map(str::trim);
                let found = lines.find(|line| line.starts_with("client-certificate-data"));
                found.unwrap().to_owned()
            };
            assert_eq!(data(&given), data(&own));
            let at = site.addresses("compute");
            answered(&at[0], NODE_PORT);
        });
        site.step("nothing is left to do", |site| site.apply(shape));
        site.step("delete", |site| site.delete());
    });
}
