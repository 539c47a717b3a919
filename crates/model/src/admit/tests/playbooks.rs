//! Playbooks that the user brings: what they are, and when they are played.

use super::{HELLO, admit, source};
use crate::fault::Fault;
use crate::manifest::Manifest;
use expect_test::expect;

fn admitted(playbooks: &str) -> Result<Manifest, Vec<Fault>> {
    let more = format!("version: v1.34.1\n        playbooks: {playbooks}");
    let text = HELLO.replacen("version: v1.34.1", &more, 1);
    admit(&source::parse(&text).unwrap())
}

#[test]
fn playbooks_are_declared_by_when_they_are_played() {
    let manifest = admitted(
        r#"
          beforeJoining:
            - name: tune
              text: |
                ---
                - hosts: all
                  tasks:
                    - name: quiet
                      ansible.builtin.copy: {dest: /etc/motd, content: "{{ inventory_hostname }}"}
                      no_log: yes
          afterJoining:
            - {name: label, text: "- {hosts: control, vars: {a: !unsafe '{{'}}"}
            - name: sealed
              text: |
                - hosts: all
                  vars:
                    token: !vault |
                      $ANSIBLE_VAULT;1.1;AES256
                      3338
            - {name: more, text: "- {ansible.builtin.import_playbook: /srv/more.yml}"}"#,
    )
    .unwrap();
    let playbooks = &manifest.clusters[0].playbooks;
    let told = |joined| {
        let due = playbooks.due(joined).into_iter();
        let told = due.map(|playbook| format!("{} {}", playbook.name, playbook.text.len()));
        told.collect::<Vec<_>>().join(", ")
    };
    expect![[r#"
        before: tune 145
        after: tune 145, label 43, sealed 84, more 50
    "#]]
    .assert_eq(&format!("before: {}\nafter: {}\n", told(false), told(true)));
}

#[test]
fn a_cluster_without_playbooks_has_none() {
    for none in ["", "{}", "{beforeJoining: [], afterJoining: }"] {
        assert!(
            admitted(none).unwrap().clusters[0].playbooks.is_empty(),
            "{none}"
        );
    }
}

#[test]
fn all_faults_of_playbooks_are_told() {
    let faulty = |text: &str| {
        let faults = admitted(text).expect_err("must be refused");
        let path = "spec.kubernetes.clusters[0].playbooks";
        let told = faults.iter();
        let told = told.map(|fault| fault.to_string().replace(path, "") + "\n");
        told.collect::<String>()
    };
    let one = |text: &str| faulty(&format!("{{beforeJoining: [{{name: a, text: {text}}}]}}"));
    let long = format!("\"- {}\"", "x".repeat(256 * 1024));
    let many = "{name: a, text: '- {}'},".repeat(21);
    let told = [
        faulty("[a]"),
        faulty("{before: [], afterJoining: {name: a}}"),
        faulty("{beforeJoining: [{name: A, text: '- {}'}, {name: a, file: x}, b]}"),
        faulty(
            "{beforeJoining: [{name: a, text: '- {}'}], afterJoining: [{name: a, text: '- {}'}]}",
        ),
        faulty(&format!("{{beforeJoining: [{many}]}}")),
        one("[{hosts: all}]"),
        one("'hosts: all'"),
        one("''"),
        one("'[]'"),
        one("'- hosts: all\n\n  - x'"),
        one("'[{}, command]'"),
        one(&long),
        one("\"- {}\\n---\\n- {}\""),
    ];
    expect![[r#"
        : found a list, allowed: a mapping
        .before: unknown field; allowed: beforeJoining, afterJoining
        .afterJoining: found a mapping, allowed: a list
        .beforeJoining[0].name: found `A`: name has capital letters; allowed are a-z, 0-9 and, inside, hyphens, such as `a`
        .beforeJoining[1].text: found nothing; this field is required
        .beforeJoining[1].file: unknown field; allowed: name, text
        .beforeJoining[2]: found `b` (a text), allowed: a mapping
        .afterJoining[0].name: found `a` again; the playbook at .beforeJoining[0] has this name
        .beforeJoining: found 21 items, allowed: at most 20
        .beforeJoining[0].text: found a list, allowed: a list of plays, in YAML, as one text
        .beforeJoining[0].text: found a mapping, allowed: a list of plays, in YAML
        .beforeJoining[0].text: found nothing, allowed: a list of plays, in YAML
        .beforeJoining[0].text: found no play, allowed: a list of plays, in YAML
        .beforeJoining[0].text: found `x` among the plays, allowed: a list of plays, in YAML
        .beforeJoining[0].text: found `command` among the plays, allowed: a list of plays, in YAML
        .beforeJoining[0].text: found 262146 bytes, allowed: at most 262144
        .beforeJoining[0].text: found a text that is no YAML (it holds more than one document, at line 2, column 1), allowed: a list of plays, in YAML
    "#]].assert_eq(&told.concat());
}
