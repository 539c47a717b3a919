//! Names of load balancers: what is read, and what can be wrong with them.

use super::{HELLO, admit, source};
use crate::manifest::Manifest;
use expect_test::{Expect, expect};

/// A manifest with two load balancers that have these names, the first with the API where said.
fn text(front: &str, back: &str, roles: &str) -> String {
    let providers = "providers:
    - {name: zones, providerType: simulated}
    - {name: quiet, providerType: verda, secretRef: {name: account}}";
    let balancers = format!(
        "  loadBalancers:
    roles: [{{name: api, protocol: tcp, port: 6443, targetPort: 6443, targetPools: [brain]}}]
    clusters:
      - {{name: front, targetedK8s: first, pools: [muscle], roles: [{roles}], dns: {front}}}
      - {{name: back, targetedK8s: first, dns: {back}}}
"
    );
    HELLO.replacen("providers:", providers, 1) + &balancers
}

fn admitted(front: &str, back: &str) -> Manifest {
    admit(&source::parse(&text(front, back, "api")).unwrap()).unwrap()
}

#[track_caller]
fn check(front: &str, back: &str, expected: &Expect) {
    let faults = admit(&source::parse(&text(front, back, "api")).unwrap()).unwrap_err();
    let told: String = faults.iter().map(|fault| format!("{fault}\n")).collect();
    expected.assert_eq(&told);
}

#[test]
fn names_are_read_and_stored() {
    let manifest = admitted(
        "{dnsZone: example.org, provider: zones, hostname: www}",
        "{dnsZone: example.org, provider: zones, hostname: '', alternativeNames: [shop, a.b]}",
    );
    let dns = manifest.balancers.iter();
    let dns: Vec<_> = dns.filter_map(|of| of.dns.as_ref()).collect();
    assert_eq!(dns[0].hostname, Some("www".parse().unwrap()));
    assert_eq!((&dns[1].hostname, dns[1].alternatives.len()), (&None, 2));
    let stored = serde_json::to_string(&manifest).unwrap();
    // What has no effect is told once, and not stored.
    let manifest = Manifest {
        remarks: Vec::new(),
        ..manifest
    };
    assert_eq!(serde_json::from_str::<Manifest>(&stored).unwrap(), manifest);
    // The same name in two zones is two names.
    admitted(
        "{dnsZone: example.org, provider: zones, hostname: www}",
        "{dnsZone: example.net, provider: zones, hostname: www}",
    );
}

#[test]
fn what_no_name_can_be_is_refused() {
    let long = vec!["a".repeat(60); 4].join(".");
    check(
        "{dnsZone: Example.org, provider: nobody, hostname: a.b, ttl: 5}",
        &format!(
            "{{dnsZone: {long}, provider: quiet, hostname: 7, alternativeNames: [7, a_b, '', {}]}}",
            "x".repeat(12)
        ),
        &expect![[r#"
            spec.loadBalancers.clusters[0].dns.dnsZone: found `Example.org`: a name of DNS is made of labels with dots between them, and here a name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `example`
            spec.loadBalancers.clusters[0].dns.provider: found `nobody`, allowed: a provider of this manifest (lab, quiet, zones)
            spec.loadBalancers.clusters[0].dns.hostname: found `a.b`: name has `.`; allowed are a-z, 0-9 and, inside, hyphens
            spec.loadBalancers.clusters[0].dns.ttl: unknown field; allowed: dnsZone, provider, hostname, alternativeNames
            spec.loadBalancers.clusters[1].dns.dnsZone: found 243 characters, allowed: at most 235, for a name before it
            spec.loadBalancers.clusters[1].dns.provider: found `quiet` of type verda, allowed: a provider that answers for names, of type simulated, gcp, hetzner, aws, oci, azure, cloudflare, exoscale, ovh
            spec.loadBalancers.clusters[1].dns.hostname: found `7` (a number), allowed: a text
            spec.loadBalancers.clusters[1].dns.alternativeNames[0]: found `7`: a name is a text
            spec.loadBalancers.clusters[1].dns.alternativeNames[1]: found `a_b`: a name of DNS is made of labels with dots between them, and here a name has `_`; allowed are a-z, 0-9 and, inside, hyphens
            spec.loadBalancers.clusters[1].dns.alternativeNames[2]: found ``: a name of DNS is made of labels with dots between them, and here a name is empty
            spec.loadBalancers.clusters[1].dns.alternativeNames[3]: found `xxxxxxxxxxxx.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`: a name of DNS has at most 253 characters, not 256
        "#]],
    );
    check(
        "example.org",
        "{hostname: www}",
        &expect![[r#"
        spec.loadBalancers.clusters[0].dns: found `example.org` (a text), allowed: a mapping
        spec.loadBalancers.clusters[1].dns.dnsZone: found nothing; this field is required
        spec.loadBalancers.clusters[1].dns.provider: found nothing; this field is required
    "#]],
    );
}

#[test]
fn one_name_belongs_to_one_load_balancer_and_the_api_has_one() {
    check(
        "{dnsZone: example.org, provider: zones, hostname: www, alternativeNames: [shop, www, shop]}",
        "{dnsZone: example.org, provider: zones, hostname: shop, alternativeNames: [www]}",
        &expect![[r#"
            spec.loadBalancers.clusters[0].dns.alternativeNames: found other names, allowed: none on a load balancer with the API (role `api`)
            spec.loadBalancers.clusters[0].dns.alternativeNames[1]: found `www` again in zone example.org; it is at spec.loadBalancers.clusters[0].dns.hostname
            spec.loadBalancers.clusters[0].dns.alternativeNames[2]: found `shop` again in zone example.org; it is at spec.loadBalancers.clusters[0].dns.alternativeNames[0]
            spec.loadBalancers.clusters[1].dns.hostname: found `shop` again in zone example.org; it is at spec.loadBalancers.clusters[0].dns.alternativeNames[2]
            spec.loadBalancers.clusters[1].dns.alternativeNames[0]: found `www` again in zone example.org; it is at spec.loadBalancers.clusters[0].dns.alternativeNames[1]
        "#]],
    );
}

#[test]
fn one_name_is_one_in_zones_that_overlap_and_the_narrower_zone_answers() {
    check(
        "{dnsZone: eu.example.org, provider: zones, hostname: www}",
        "{dnsZone: example.org, provider: zones, hostname: eu, alternativeNames: [www.eu, shop.eu, shop]}",
        &expect![[r#"
            spec.loadBalancers.clusters[1].dns.hostname: found `eu` in zone example.org, which is eu.example.org, allowed: a name outside of eu.example.org, a zone of this manifest that answers for all below it; name it there
            spec.loadBalancers.clusters[1].dns.alternativeNames[0]: found `www.eu` in zone example.org, which is www.eu.example.org; that is at spec.loadBalancers.clusters[0].dns.hostname, in zone eu.example.org
            spec.loadBalancers.clusters[1].dns.alternativeNames[1]: found `shop.eu` in zone example.org, which is shop.eu.example.org, allowed: a name outside of eu.example.org, a zone of this manifest that answers for all below it; name it there
        "#]],
    );
}

#[test]
fn names_that_only_look_alike_are_others() {
    let manifest = admitted(
        "{dnsZone: example.org, provider: zones, hostname: eu-west}",
        "{dnsZone: west.example.org, provider: zones, hostname: www, alternativeNames: [eu]}",
    );
    assert_eq!(manifest.balancers.len(), 2);
}
