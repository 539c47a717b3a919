//! What manifests say of those who lend machines, and of what these are made with.

use super::{HELLO, admit, check, source};
use crate::hardware::{Hardware, MachineSpec};
use crate::manifest::Pool;
use expect_test::expect;

const LAB: &str = "{name: lab, providerType: simulated}";
const BRAIN: &str = "        image: debian-12\n      - name: muscle";
const MUSCLE: &str = "        image: debian-12\n    static:";

#[test]
fn everybody_who_lends_machines_is_known_and_wants_to_be_shown_a_secret() {
    check(
        &[(
            LAB,
            "{name: lab, providerType: hetzner, secretRef: {name: account}}",
        )],
        &expect![[r#"
            admitted: 1 clusters, 3 pools
        "#]],
    );
    check(
        &[(LAB, "{name: lab, providerType: openstack}")],
        &expect![[r#"
            spec.providers[0].secretRef: found nothing, allowed: the name of a secret with what opens the account (authurl, domainid, projectid, applicationcredentialid, applicationcredentialsecret)
            spec.nodePools.dynamic[0].providerSpec.externalNetworkName: found nothing, allowed: the network through which machines are reached; a provider of type openstack has several
            spec.nodePools.dynamic[1].providerSpec.externalNetworkName: found nothing, allowed: the network through which machines are reached; a provider of type openstack has several
        "#]],
    );
    check(
        &[(
            LAB,
            "{name: lab, providerType: aws, secretRef: {name: account, key: accesskey}}",
        )],
        &expect![[r#"
            spec.providers[0].secretRef.key: unknown field; allowed: name, namespace
        "#]],
    );
    check(
        &[(LAB, "{name: lab, providerType: Hetzner}")],
        &expect![[r#"
            spec.providers[0].providerType: found `Hetzner`, allowed: simulated, sandbox, gcp, hetzner, aws, oci, azure, cloudflare, openstack, exoscale, cloudrift, verda, ovh
        "#]],
    );
    check(
        &[(
            LAB,
            "{name: lab, providerType: cloudflare, secretRef: {name: account}}",
        )],
        &expect![[r#"
            spec.nodePools.dynamic[0].providerSpec.name: found `lab` of type cloudflare, allowed: a provider that lends machines; this one answers for names alone
            spec.nodePools.dynamic[1].providerSpec.name: found `lab` of type cloudflare, allowed: a provider that lends machines; this one answers for names alone
        "#]],
    );
    check(
        &[(
            "{name: lab, region: north}",
            "{name: lab, region: north, externalNetworkName: out}",
        )],
        &expect![[r#"
            spec.nodePools.dynamic[0].providerSpec.externalNetworkName: found a network, allowed: nothing; only those of type openstack have several
        "#]],
    );
}

#[test]
fn what_machines_are_made_with_is_read() {
    let more = "        image: debian-12
        storageDiskSize: 100
        spot: true
        machineSpec: {cpuCount: 8, memory: 32, nvidiaGpu: 2, nvidiaGpuType: big}
    static:";
    let text = HELLO.replacen(MUSCLE, more, 1);
    let manifest = admit(&source::parse(&text).unwrap()).unwrap();
    let Pool::Dynamic(muscle) = &manifest.pools[&"muscle".parse().unwrap()] else {
        panic!("it is made");
    };
    let machine = MachineSpec {
        cpus: Some(8),
        memory: Some(32),
        gpus: 2,
        gpu_type: Some("big".to_owned()),
    };
    let hardware = Hardware {
        disk: Some(100),
        spot: true,
        external_network: None,
        subnet: None,
        machine: Some(machine),
        templates: None,
    };
    assert_eq!(muscle.hardware, hardware);
    let Pool::Dynamic(brain) = &manifest.pools[&"brain".parse().unwrap()] else {
        panic!("it is made");
    };
    assert!(brain.hardware.is_usual());
}

#[test]
fn machines_that_cannot_be_made_so_are_refused() {
    check(
        &[
            (
                LAB,
                "{name: lab, providerType: hetzner, secretRef: {name: account}}",
            ),
            (
                BRAIN,
                "        image: debian-12\n        spot: true\n        storageDiskSize: 49\n      - name: muscle",
            ),
            (
                MUSCLE,
                "        image: debian-12\n        spot: sometimes\n        machineSpec: {cpuCount: 8, nvidiaGpuCount: -1, colour: red}\n    static:",
            ),
        ],
        &expect![[r#"
            spec.nodePools.dynamic[0].spot: found true on a provider of type hetzner, allowed: on those of type simulated, gcp, aws, oci, azure, verda
            spec.nodePools.dynamic[0].storageDiskSize: found 49, allowed: 0 for no disk, or at least 50 (GB)
            spec.nodePools.dynamic[1].spot: found `sometimes`, allowed: true or false
            spec.nodePools.dynamic[1].machineSpec.memory: found nothing, allowed: a number beside cpuCount
            spec.nodePools.dynamic[1].machineSpec.nvidiaGpuCount: found `-1`, allowed: a whole number from 0 to 64
            spec.nodePools.dynamic[1].machineSpec.colour: unknown field; allowed: cpuCount, memory, nvidiaGpuCount, nvidiaGpu, nvidiaGpuType
            spec.kubernetes.clusters[0].pools.control[0]: found `brain`, whose machines may be taken back at any time (spot: true), allowed: a pool whose machines stay
        "#]],
    );
    check(
        &[
            (
                LAB,
                "{name: lab, providerType: gcp, secretRef: {name: account}}",
            ),
            (
                BRAIN,
                "        image: debian-12\n        spot: true\n      - name: muscle",
            ),
            (
                MUSCLE,
                "        image: debian-12\n        machineSpec: {memory: 8, nvidiaGpuCount: 1}\n    static:",
            ),
        ],
        &expect![[r#"
            spec.nodePools.dynamic[1].machineSpec.cpuCount: found nothing, allowed: a number beside memory
            spec.nodePools.dynamic[1].machineSpec.nvidiaGpuType: found nothing, allowed: which graphics processors; a provider of type gcp has to be told
            spec.kubernetes.clusters[0].pools.control[0]: found `brain`, whose machines may be taken back at any time (spot: true), allowed: a pool whose machines stay
        "#]],
    );
}

const REPOSITORY: &str = "{name: lab, providerType: simulated, templates: {repository: github.com/org/modules, commit: v1.2.0, path: a/b}}";

#[test]
fn the_modules_of_a_provider_are_read_and_noted_as_moving() {
    let read = |provider: &str| {
        let text = HELLO.replacen(LAB, provider, 1);
        let manifest = admit(&source::parse(&text).unwrap()).unwrap();
        let stored = serde_json::to_string(&manifest).unwrap();
        assert_eq!(
            serde_json::from_str::<crate::manifest::Manifest>(&stored).unwrap(),
            manifest
        );
        let account = &manifest.providers[&"lab".parse().unwrap()];
        let templates = account.templates.as_ref().unwrap();
        (templates.to_string(), templates.moves())
    };
    assert_eq!(
        read(REPOSITORY),
        ("github.com/org/modules//a/b@v1.2.0".to_owned(), true)
    );
    let branch = REPOSITORY.replace("commit: v1.2.0, path: a/b", "commit: release/2");
    assert_eq!(
        read(&branch),
        ("github.com/org/modules@release/2".to_owned(), true)
    );
    let hash = "0a".repeat(20);
    let still = REPOSITORY.replace("v1.2.0", &hash);
    let told = format!("github.com/org/modules//a/b@{hash}");
    assert_eq!(read(&still), (told, false));
}

#[test]
fn modules_that_cannot_be_fetched_are_refused() {
    let mut told = Vec::new();
    for wrong in [
        "templates: {repository: 'https://github.com/org/modules', path: /x, branch: main}",
        "templates: {repository: modules, commit: '-x', path: ../x}, templatesRef: {namespace: N}",
        "templates: {repository: github.com/o/m, commit: v1}, templatesRef: {name: ours}",
        "templatesRef: ours",
    ] {
        let provider = format!("{{name: lab, providerType: simulated, {wrong}}}");
        let text = HELLO.replacen(LAB, &provider, 1);
        let faults = admit(&source::parse(&text).unwrap()).unwrap_err();
        told.extend(faults.iter().map(|fault| format!("{fault}\n")));
        told.push("--\n".to_owned());
    }
    expect![[r#"
        spec.providers[0].templates.commit: found nothing; this field is required
        spec.providers[0].templates.repository: found `https://github.com/org/modules`, allowed: a repository without a scheme, for example github.com/org/modules; it is fetched by https
        spec.providers[0].templates.path: found `/x`, allowed: a path within the repository
        spec.providers[0].templates.branch: unknown field; allowed: repository, commit, path, secretRef
        --
        spec.providers[0].templates.repository: found `modules`, allowed: a host and what is there, for example github.com/org/modules
        spec.providers[0].templates.commit: found `-x`, allowed: a hash, a tag or a branch
        spec.providers[0].templates.path: found `../x`, allowed: a path within the repository
        spec.providers[0].templatesRef.name: found nothing; this field is required
        spec.providers[0].templatesRef: found templatesRef beside templates, allowed: one of them
        spec.providers[0].templatesRef.namespace: found `N`: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `n`
        --
        spec.providers[0].templatesRef: found templatesRef beside templates, allowed: one of them
        spec.providers[0].templatesRef.name: found `ours`, allowed: a TemplateGitReference of the same file (none is defined), or claudie-default-templates
        --
        spec.providers[0].templatesRef: found `ours` (a text), allowed: a mapping
        --
    "#]].assert_eq(&told.concat());
}

#[test]
fn two_words_for_graphics_processors_say_the_same() {
    let with = |spec: &str| {
        format!("        image: debian-12\n        machineSpec: {{{spec}}}\n    static:")
    };
    check(
        &[(MUSCLE, &with("nvidiaGpuCount: 2, nvidiaGpu: 2"))],
        &expect![[r#"
            admitted: 1 clusters, 3 pools
        "#]],
    );
    check(
        &[(MUSCLE, &with("nvidiaGpuCount: 2, nvidiaGpu: 4"))],
        &expect![[r#"
            spec.nodePools.dynamic[1].machineSpec.nvidiaGpu: found 4, allowed: 2, which nvidiaGpuCount says, or nothing
        "#]],
    );
}
