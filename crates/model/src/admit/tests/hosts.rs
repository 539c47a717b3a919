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
            spec.nodePools.static[0].nodes[8].endpoint: found `host.example.org`: allowed: an IPv4 address, such as 203.0.113.5; not a name, not IPv6, no port
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
fn a_real_address_is_outside_the_networks_of_the_cluster() {
    let nodes = "{endpoint: 10.8.0.255, secretRef: {name: keys}}, {endpoint: 10.8.1.0, secretRef: {name: keys}}, \
                 {endpoint: 10.244.3.4, secretRef: {name: keys}}, {endpoint: 10.96.0.10, secretRef: {name: keys}}";
    check(
        &[("{endpoint: 203.0.113.5}", nodes)],
        &expect![[r#"
            spec.nodePools.static[0].nodes[0].endpoint: found 10.8.0.255, allowed: an address outside 10.8.0.0/24, the private network of cluster `first`; unless it lives so
            spec.nodePools.static[0].nodes[2].endpoint: found 10.244.3.4, allowed: an address outside 10.244.0.0/16, the network of pods of cluster `first`; unless it lives so
            spec.nodePools.static[0].nodes[3].endpoint: found 10.96.0.10, allowed: an address outside 10.96.0.0/12, the network of services of cluster `first`; unless it lives so
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
        proxy("{mode: default, endpoint: 'http://proxy.example.org'}"),
    ];
    expect![[r#"
        http://proxy.example.org:3128 but for 127.0.0.0/8,localhost,cluster.local,svc,slipway.internal,10.244.0.0/16,10.96.0.0/12,10.8.0.0/24,.example.org,192.168.0.0/16
        https://[fd00::1]:3128/ but for 127.0.0.0/8,localhost,cluster.local,svc,slipway.internal,10.244.0.0/16,10.96.0.0/12,10.8.0.0/24
        none
        none
        none"#]].assert_eq(&told.join("\n"));
}

#[test]
fn a_proxy_is_usual_where_addresses_are_refused() {
    let behind = |mode: &str| {
        let text = HELLO.replacen("version: v1.34.1", &format!("{PROXY}{mode}"), 1);
        let text = text.replace(
            "providerType: simulated",
            "providerType: hetzner, secretRef: {name: h}",
        );
        let manifest = admit(&source::parse(&text).unwrap()).unwrap();
        manifest.clusters[0].proxy.is_some()
    };
    assert!(behind(
        "{mode: default, endpoint: 'http://proxy.example.org'}"
    ));
    assert!(!behind("{mode: default}"));
    assert!(!behind("{mode: off, endpoint: 'http://proxy.example.org'}"));
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

#[test]
fn users_of_machines_are_called_as_users_may_be() {
    let long = "a".repeat(65);
    let nodes = format!(
        "{{endpoint: 203.0.113.5, username: \"ann\\nProxyCommand x\"}}, \
         {{endpoint: 203.0.113.6, username: 'ann -o ProxyCommand=x'}}, \
         {{endpoint: 203.0.113.7, username: -l}}, {{endpoint: 203.0.113.8, username: {long}}}, \
         {{endpoint: 203.0.113.9, username: ann.lee@example}}"
    );
    check(
        &[("{endpoint: 203.0.113.5}", &nodes)],
        &expect![[r#"
            spec.nodePools.static[0].nodes[0].username: found `ann\nProxyCommand x`, allowed: a text without control characters or outer blanks
            spec.nodePools.static[0].nodes[1].username: found `ann -o ProxyCommand=x`, allowed: at most 64 of A-Z, a-z, 0-9, `.`, `_`, `@`, `+` and, inside, `-`
            spec.nodePools.static[0].nodes[2].username: found `-l`, allowed: at most 64 of A-Z, a-z, 0-9, `.`, `_`, `@`, `+` and, inside, `-`
            spec.nodePools.static[0].nodes[3].username: found `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…`, allowed: at most 64 of A-Z, a-z, 0-9, `.`, `_`, `@`, `+` and, inside, `-`
        "#]],
    );
}

/// The pool `attic` of two real machines, behind a jump host.
fn behind(jump: &str, expected: &expect_test::Expect) {
    let nodes = "nodes: [{endpoint: 203.0.113.5}]";
    let real = "nodes: [{endpoint: 10.0.0.5, secretRef: {name: keys}}, {endpoint: 10.0.0.6, secretRef: {name: keys}}]";
    check(
        &[(nodes, &format!("{real}\n        jumpHost: {jump}"))],
        expected,
    );
}

#[test]
fn machines_are_reached_through_another_one() {
    behind(
        "{endpoint: 192.168.7.1, secretRef: {name: front}}",
        &expect![[r#"
            admitted: 1 clusters, 3 pools
        "#]],
    );
    let text = HELLO.replace(
        "nodes: [{endpoint: 203.0.113.5}]",
        "nodes: [{endpoint: 203.0.113.5}]\n        jumpHost: {endpoint: 203.0.113.1, secretRef: {name: front}}",
    );
    let manifest = admit(&source::parse(&text).unwrap()).unwrap();
    let Some(crate::manifest::Pool::Static(pool)) = manifest
        .pools
        .values()
        .find(|pool| matches!(pool, crate::manifest::Pool::Static(_)))
    else {
        panic!("the pool is static");
    };
    let jump = pool.jump.as_ref().unwrap();
    let secret = jump.secret.as_ref().unwrap();
    assert_eq!(
        (
            jump.ssh_port,
            jump.username.as_str(),
            secret.secret.to_string().as_str()
        ),
        (22, "root", "front/privatekey"),
    );
    assert_eq!(secret.path, "spec.nodePools.static[0].jumpHost.secretRef");
}

#[test]
fn all_faults_of_a_jump_host_are_told() {
    behind(
        "192.168.7.1",
        &expect![[r#"
        spec.nodePools.static[0].jumpHost: found `192.168.7.1` (a text), allowed: a mapping
    "#]],
    );
    behind(
        "{}",
        &expect![[r#"
        spec.nodePools.static[0].jumpHost.endpoint: found nothing; this field is required
    "#]],
    );
    behind(
        "{endpoint: jump.example.org, port: 22, sshPort: 0, username: 'ann -o ProxyCommand=x', secretRef: {nom: front}}",
        &expect![[r#"
            spec.nodePools.static[0].jumpHost.endpoint: found `jump.example.org`: allowed: an IPv4 address, such as 203.0.113.5; not a name, not IPv6, no port
            spec.nodePools.static[0].jumpHost.port: unknown field; allowed: endpoint, sshPort, username, secretRef
            spec.nodePools.static[0].jumpHost.username: found `ann -o ProxyCommand=x`, allowed: at most 64 of A-Z, a-z, 0-9, `.`, `_`, `@`, `+` and, inside, `-`
            spec.nodePools.static[0].jumpHost.secretRef.name: found nothing; this field is required
            spec.nodePools.static[0].jumpHost.secretRef.nom: unknown field; allowed: name, key, namespace
        "#]],
    );
    behind(
        "{endpoint: 169.254.0.1, username: -l, sshPort: 2222, secretRef: {name: front}}",
        &expect![[r#"
            spec.nodePools.static[0].jumpHost.endpoint: found `169.254.0.1`, allowed: an address that one machine has
            spec.nodePools.static[0].jumpHost.username: found `-l`, allowed: at most 64 of A-Z, a-z, 0-9, `.`, `_`, `@`, `+` and, inside, `-`
        "#]],
    );
    behind(
        "{endpoint: 192.168.7.1}",
        &expect![[r#"
        spec.nodePools.static[0].jumpHost.secretRef: found nothing, allowed: the name of a secret that holds a private SSH key
    "#]],
    );
    behind(
        "{endpoint: 203.0.113.1}",
        &expect![[r#"
        spec.nodePools.static[0].jumpHost.endpoint: found 203.0.113.1, an address of the simulated world, allowed: where a machine answers, because machines of this pool are real
    "#]],
    );
}

#[test]
fn a_jump_host_is_reached_directly() {
    behind(
        "{endpoint: 10.0.0.6, secretRef: {name: keys}}",
        &expect![[r#"
            spec.nodePools.static[0].jumpHost.endpoint: found 10.0.0.6, the machine at spec.nodePools.static[0].nodes[1], which is reached through a jump host itself; allowed: a host that is reached directly
        "#]],
    );
    // Two pools, each with the other's machine in front: nobody could ever begin.
    let pool = |name: &str, node: &str, jump: &str| {
        format!(
            "      - name: {name}\n        nodes: [{{endpoint: {node}, secretRef: {{name: keys}}}}]\n        \
             jumpHost: {{endpoint: {jump}, secretRef: {{name: keys}}}}\n"
        )
    };
    let attic = "      - name: attic\n        nodes: [{endpoint: 203.0.113.5}]\n";
    let both = pool("attic", "10.0.0.5", "10.0.0.6") + &pool("cellar", "10.0.0.6", "10.0.0.5");
    check(
        &[
            (attic, &both),
            ("[muscle, attic]", "[muscle, attic, cellar]"),
        ],
        &expect![[r#"
            spec.nodePools.static[0].jumpHost.endpoint: found 10.0.0.6, the machine at spec.nodePools.static[1].nodes[0], which is reached through a jump host itself; allowed: a host that is reached directly
            spec.nodePools.static[1].jumpHost.endpoint: found 10.0.0.5, the machine at spec.nodePools.static[0].nodes[0], which is reached through a jump host itself; allowed: a host that is reached directly
        "#]],
    );
    // A machine that is reached directly may be in front of others.
    let direct = both.replace(
        "        jumpHost: {endpoint: 10.0.0.5, secretRef: {name: keys}}\n",
        "",
    );
    check(
        &[
            (attic, &direct),
            ("[muscle, attic]", "[muscle, attic, cellar]"),
        ],
        &expect![[r#"
            admitted: 1 clusters, 4 pools
        "#]],
    );
}
