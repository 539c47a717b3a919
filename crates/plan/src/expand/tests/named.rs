//! Names of load balancers: given, kept, or chosen.

use super::{History, admitted};
use model::dns::Names;
use model::manifest::Manifest;

/// A cluster behind two load balancers that have these names.
fn manifest(front: &str, back: &str) -> Manifest {
    let dns = |dns: &str| match dns {
        "" => String::new(),
        said => format!(", dns: {{provider: lab, {said}}}"),
    };
    let text = format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: lab, providerType: simulated}}]
  nodePools:
    dynamic: [{{name: brain, providerSpec: {{name: lab, region: n}}, count: 1, serverType: s, image: i}}]
  kubernetes:
    clusters: [{{name: edge, version: v1.34.0, network: 10.8.0.0/24, pools: {{control: [brain]}}}}]
  loadBalancers:
    clusters:
      - {{name: front, targetedK8s: edge, pools: [brain]{}}}
      - {{name: back, targetedK8s: edge, pools: [brain]{}}}
",
        dns(front),
        dns(back)
    );
    admitted(&text)
}

fn names(history: &History) -> Vec<Option<Names>> {
    let desired = history.desired.as_ref().unwrap();
    desired.balancers.iter().map(|of| of.dns.clone()).collect()
}

fn endpoint(history: &History) -> String {
    names(history)[0].as_ref().unwrap().endpoint.to_string()
}

#[test]
fn a_given_name_is_whole_with_its_zone() {
    let named = History::new().apply(&manifest(
        "dnsZone: example.org, hostname: www, alternativeNames: [a.b]",
        "",
    ));
    let names = names(&named);
    let front = names[0].as_ref().unwrap();
    assert_eq!(front.endpoint.as_str(), "www.example.org");
    assert_eq!(front.alternatives[0].as_str(), "a.b.example.org");
    assert_eq!(names[1], None);
}

#[test]
fn a_chosen_name_stays_until_the_zone_is_another() {
    let org = manifest("dnsZone: example.org", "dnsZone: example.org");
    let first = History::new().apply(&org);
    let (chosen, back) = (endpoint(&first), names(&first)[1].clone().unwrap());
    assert_ne!(chosen, back.endpoint.to_string());
    let (label, zone) = chosen.split_once('.').unwrap();
    assert_eq!((label.len(), zone), (17, "example.org"));
    assert_eq!(first.next(&org).change, crate::Change::Unchanged);
    let moved = first.apply(&manifest("dnsZone: example.net", ""));
    assert_ne!(endpoint(&moved).split_once('.').unwrap().0, label);
}

#[test]
fn a_name_that_is_given_no_more_is_kept_unless_another_has_it() {
    let www = || History::new().apply(&manifest("dnsZone: example.org, hostname: www", ""));
    let kept = www().apply(&manifest("dnsZone: example.org", ""));
    assert_eq!(endpoint(&kept), "www.example.org");
    let taken = www().apply(&manifest(
        "dnsZone: example.org",
        "dnsZone: example.org, alternativeNames: [www]",
    ));
    assert_ne!(endpoint(&taken), "www.example.org");
}
