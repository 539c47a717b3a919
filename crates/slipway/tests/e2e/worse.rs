//! What goes wrong in a cluster that runs: each trouble has its own error with a hint that says who
//! must act, and once somebody did the same task goes on.

use crate::asking::{answered, until};
use crate::shape::{NODE_PORT, Shape};
use crate::site::{Site, VERSION, story};

const CONTROL: &str = "shed-control-01";
const GOES: &str = "shed-compute-02";

/// Where the kubelet finds what the API server is run with.
const MANIFEST: &str = "/etc/kubernetes/manifests/kube-apiserver.yaml";

/// A webhook that nobody answers for, in the way of whoever leaves.
const WEBHOOK: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: nobody-home}
webhooks:
  - name: guard.lab.test
    failurePolicy: Fail
    sideEffects: None
    admissionReviewVersions: [v1]
    clientConfig: {url: 'https://127.0.0.1:1/'}
    rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods/eviction]}]
";

#[test]
fn each_trouble_of_a_running_cluster_is_told_and_can_be_mended() {
    let test = "worse::each_trouble_of_a_running_cluster_is_told_and_can_be_mended";
    story(test, &[VERSION], |site| {
        site.step("all nodes are ready", |site| {
            site.apply(Shape::small(VERSION, 2));
        });
        site.deploy(2);
        site.kubectl(&["apply", "-f", "-"], WEBHOOK).unwrap();
        site.kubectl(&["apply", "-f", "-"], &held()).unwrap();
        no_longer_known(site);
        site.step("a webhook that blocks draining", |site| {
            site.failing("KUBE-009", "mend or remove the webhook");
            let webhook = "validatingwebhookconfiguration/nobody-home";
            site.kubectl(&["delete", webhook], "").unwrap();
            site.retry();
        });
        site.step("a pod that refuses to leave", |site| {
            site.failing("KUBE-007", "run more replicas, or change it");
            site.kubectl(&["delete", "poddisruptionbudget/held"], "")
                .unwrap();
            site.retry();
        });
        site.step("the node has left", |site| {
            site.apply(Shape::small(VERSION, 1));
        });
        site.step("all pods moved", |site| {
            site.rolled_out();
            let at = site.addresses("compute");
            answered(&at[0], NODE_PORT);
        });
        site.step("delete", |site| site.delete());
    });
}

/// An API server that takes our certificate for that of a stranger.
fn no_longer_known(site: &mut Site) {
    site.step("a kubeconfig that no longer works", |site| {
        let host = Site::host(CONTROL);
        let other = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout /dev/null -out /etc/kubernetes/pki/other.crt";
        host.run(&["sh", "-c", other], b"").unwrap();
        let trust = |from: &str, to: &str| {
            let edit = format!("s,client-ca-file=/etc/kubernetes/pki/{from},client-ca-file=/etc/kubernetes/pki/{to},");
            host.run(&["sed", "-i", &edit, MANIFEST], b"").unwrap();
        };
        trust("ca.crt", "other.crt");
        // Also where nobody asks for anything.
        let hint = "the kubeconfig that is kept for the cluster no longer works";
        site.failing("KUBE-002", hint);
        site.declare(Shape::small(VERSION, 1), &[]);
        until("the first task waits for a person", || {
            let tasks = site.told(&["get", "tasks"]);
            tasks.iter().any(|task| task["state"] == "stuck").then_some(())
        });
        site.failing("KUBE-002", hint);
        trust("other.crt", "ca.crt");
        until("the API knows us again", || {
            let asked = site.kubectl(&["get", "--raw", "/readyz"], "");
            asked.is_ok_and(|said| said == "ok").then_some(())
        });
        site.retry();
    });
}

/// A pod on the node that is to go, with a budget that never lets it.
fn held() -> String {
    format!(
        "apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: held}}
spec: {{minAvailable: 1, selector: {{matchLabels: {{app: held}}}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: held, labels: {{app: held}}}}
spec:
  nodeName: {GOES}
  terminationGracePeriodSeconds: 1
  containers: [{{name: held, image: 'slipway.lab/echo:1', imagePullPolicy: Never}}]
"
    )
}
