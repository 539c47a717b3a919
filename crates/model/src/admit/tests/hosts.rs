//! Real machines: where they are, what opens them, and how they reach package sources.

use super::{HELLO, admit, check, source};
use expect_test::expect;

const PROXY: &str = "version: v1.34.1\n        installationProxy: ";

#[test]
fn a_real_address_needs_a_key_and_is_one_that_a_machine_can_have() {
    let nodes = "{endpoint: 10.0.0.5, secretRef: {name: keys}}, {endpoint: 10.0.0.6, username: ann}, \
                 {endpoint: 224.0.0.9, secretRef: {name: keys}}, {endpoint: 0.1.2.3}, \
                 {endpoint: 255.255.255.255}, {endpoint: 169.254.3.4}, {endpoint: 203.0.113.6}, \
                 {endpoint: 10.0.0.7, secretRef: {nom: keys}}, {endpoint: host.example.org, secretRef: {name: keys}}";
    check(
        &[("{endpoint: 203.0.113.5}", nodes)],
        &expect![[r#"
            spec.nodePools.static[0].nodes[1].secretRef: found nothing, allowed: the name of a secret that holds a private SSH key
            spec.nodePools.static[0].nodes[2].endpoint: found `224.0.0.9`, allowed: an address that one machine has
            spec.nodePools.static[0].nodes[3].endpoint: found `0.1.2.3`, allowed: an address that one machine has
            spec.nodePools.static[0].nodes[4].endpoint: found `255.255.255.255`, allowed: an address that one machine has
            spec.nodePools.static[0].nodes[5].endpoint: found `169.254.3.4`, allowed: an address that one machine has
            spec.nodePools.static[0].nodes[7].secretRef.name: found nothing; this field is required
            spec.nodePools.static[0].nodes[7].secretRef.nom: unknown field; allowed: name, key, namespace
            spec.nodePools.static[0].nodes[8].endpoint: found `host.example.org`: invalid IPv4 address syntax
        "#]],
    );
}

#[test]
fn hosts_of_the_sandbox_are_of_two_kinds() {
    check(
        &[("providerType: simulated", "providerType: sandbox")],
        &expect![[r#"
            spec.nodePools.dynamic[0].serverType: found `small`, allowed: lite or systemd on a provider of type sandbox
            spec.nodePools.dynamic[1].serverType: found `large`, allowed: lite or systemd on a provider of type sandbox
        "#]],
    );
}

#[test]
fn a_real_address_is_outside_the_private_network() {
    let nodes = "{endpoint: 10.8.0.255, secretRef: {name: keys}}, {endpoint: 10.8.1.0, secretRef: {name: keys}}";
    check(
        &[("{endpoint: 203.0.113.5}", nodes)],
        &expect![[r#"
        spec.nodePools.static[0].nodes[0].endpoint: found 10.8.0.255, allowed: an address outside 10.8.0.0/24, the private network of cluster `first`
    "#]],
    );
}

#[test]
fn a_proxy_is_for_those_who_turn_it_on() {
    let proxy = |text: &str| {
        let text = HELLO.replacen("version: v1.34.1", &format!("{PROXY}{text}"), 1);
        let manifest = admit(&source::parse(&text).unwrap()).unwrap();
        let proxy = manifest.clusters[0].proxy.as_ref();
        proxy.map_or_else(
            || "none".to_owned(),
            |proxy| format!("{} but for {}", proxy.endpoint, proxy.except.join(",")),
        )
    };
    let told = [
        proxy(
            "{mode: on, endpoint: 'http://proxy.example.org:3128', noProxy: ' ,.example.org, 192.168.0.0/16,, '}",
        ),
        proxy("{mode: 'on', endpoint: 'https://[fd00::1]:3128/', noProxy: ''}"),
        proxy("{mode: off, endpoint: 'http://proxy.example.org'}"),
        proxy("{mode: default}"),
    ];
    expect![[r#"
        http://proxy.example.org:3128 but for 127.0.0.0/8,localhost,cluster.local,svc,10.244.0.0/16,10.96.0.0/12,10.8.0.0/24,.example.org,192.168.0.0/16
        https://[fd00::1]:3128/ but for 127.0.0.0/8,localhost,cluster.local,svc,10.244.0.0/16,10.96.0.0/12,10.8.0.0/24
        none
        none"#]].assert_eq(&told.join("\n"));
}

#[test]
fn all_faults_of_a_proxy_are_told() {
    let faulty = |text: &str| {
        let text = HELLO.replacen("version: v1.34.1", &format!("{PROXY}{text}"), 1);
        let faults = admit(&source::parse(&text).unwrap()).expect_err("must be refused");
        let path = "spec.kubernetes.clusters[0].installationProxy";
        let told = faults
            .iter()
            .map(|fault| fault.to_string().replace(path, "proxy") + "\n");
        told.collect::<String>()
    };
    let told = [
        faulty("{mode: On, endpoint: proxy.example.org, noProxy: 'a b,c'}"),
        faulty("{mode: on, noProxy: [a, b], no_proxy: a}"),
        faulty("{mode: on, endpoint: 'http://ann:hunter2@proxy.example.org'}"),
        faulty("{mode: on, endpoint: 'http://', noProxy: \"a\\nb\"}"),
        faulty("{mode: on, endpoint: 'http://proxy.example.org:99999'}"),
        faulty("{mode: on, endpoint: 'http://proxy.example.org/path?x=y'}"),
        faulty("{mode: on, endpoint: 'http://pro$(reboot)xy'}"),
        faulty("{mode: on, endpoint: 3128}"),
        faulty("{endpoint: 'http://proxy.example.org', noProxy: 'a;b'}"),
        faulty("on"),
    ];
    assert!(!told.concat().contains("hunter2"));
    expect![[r#"
        proxy.mode: found `On`, allowed: on, off or default
        proxy.endpoint: found `proxy.example.org`, allowed: for example http://proxy.example.org:3128
        proxy.noProxy: found `a b`, allowed: names, addresses and networks, with commas between
        proxy.endpoint: found nothing, allowed: the URL of the proxy, because its mode is on
        proxy.noProxy: found a list, allowed: names, addresses and networks, with commas between
        proxy.no_proxy: unknown field; did you mean `noProxy`? allowed: mode, endpoint, noProxy
        proxy.endpoint: found a user or a password, which a manifest must not hold; allowed: for example http://proxy.example.org:3128
        proxy.endpoint: found `http://`, allowed: for example http://proxy.example.org:3128
        proxy.noProxy: found `a\nb`, allowed: names, addresses and networks, with commas between
        proxy.endpoint: found `http://proxy.example.org:99999`, allowed: for example http://proxy.example.org:3128
        proxy.endpoint: found `http://proxy.example.org/path?x=y`, allowed: for example http://proxy.example.org:3128
        proxy.endpoint: found `http://pro$(reboot)xy`, allowed: for example http://proxy.example.org:3128
        proxy.endpoint: found `3128` (a number), allowed: a text
        proxy.mode: found nothing; this field is required
        proxy.noProxy: found `a;b`, allowed: names, addresses and networks, with commas between
        proxy: found `on` (a text), allowed: a mapping
    "#]].assert_eq(&told.concat());
}
