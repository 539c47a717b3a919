//! Playbooks of the user's, played by a real Ansible on a real host.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and says what it saw"
)]

#[expect(dead_code, reason = "the tests of the sandbox use the rest")]
#[path = "../sandbox/apart.rs"]
mod apart;
mod leftovers;
mod stage;

use leftovers::Leftovers;
use model::task::Action;
use stage::{Stage, behind_another, on_a_host, recipe, told};
use std::time::Duration;

/// Counts how often it was played, and writes down what it knows of its host.
const TUNE: &str = r#"
- hosts: control
  gather_facts: false
  tasks:
    - ansible.builtin.shell: echo x >>/root/count; id -un >/root/who
    - ansible.builtin.copy:
        dest: /root/known
        content: "{{ inventory_hostname }} {{ group_names | join(',') }} {{ slipway_mesh_address }} {{ slipway_role }}\n"
- hosts: pool_other
  tasks:
    - ansible.builtin.fail: {msg: not for this host}
"#;

/// Says on the host that it waits, and waits until it may go on.
const WAITS: &str = "
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.file: {path: /run/waits, state: touch}
    - ansible.builtin.wait_for: {path: /run/go, timeout: 300}
";

/// Writes down from where it was entered.
const WHO: &str = "
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.shell: echo $SSH_CLIENT >/root/came
";

const FAILS: &str =
    "[{hosts: all, gather_facts: false, tasks: [{ansible.builtin.fail: {msg: no such thing}}]}]";

#[test]
fn a_playbook_is_played_once_and_again_when_it_changed() {
    on_a_host(
        "a_playbook_is_played_once_and_again_when_it_changed",
        "ann",
        async |stage| {
            let more = format!("{TUNE}# changed\n");
            let after = TUNE.replace("/root/count", "/root/after");
            let played = async |playbooks: &[(&str, &str)]| {
                let done = format!("done {}", recipe(playbooks).fingerprint());
                assert_eq!(stage.equip(playbooks).await, done, "{}", stage.log());
                assert_eq!(format!("done {}", stage.stamp()), done);
                let count = "cat /root/count /root/after 2>/dev/null | wc -l";
                (stage.on_host(count), stage.log())
            };
            let (count, log) = played(&[("tune", TUNE)]).await;
            assert_eq!(count, "1", "{log}");
            assert!(log.contains("\ntune: 2 changed, 0 unchanged"), "{log}");
            assert_eq!(
                stage.on_host("cat /root/who /root/known"),
                "root\nedge-brain-01 cluster_edge,control,pool_brain 10.8.0.1 control"
            );
            let (count, log) = played(&[("tune", TUNE)]).await;
            assert_eq!(count, "1", "{log}");
            assert!(log.contains("tune: unchanged, it was played"), "{log}");
            let (count, log) = played(&[("tune", &more)]).await;
            assert_eq!(count, "2", "{log}");
            assert!(log.contains("\ntune: 1 changed, 1 unchanged"), "{log}");
            let (count, log) = played(&[("tune", &more), ("label", &after)]).await;
            assert_eq!(count, "3", "{log}");
            // What was taken out and comes back is played again.
            let (count, _) = played(&[("tune", &more)]).await;
            assert_eq!(count, "3");
            let (count, log) = played(&[("tune", &more), ("label", &after)]).await;
            assert_eq!(count, "4", "{log}");
            assert_eq!(Leftovers::of(&stage), Leftovers::default());
        },
    );
}

#[test]
fn a_playbook_that_fails_is_for_a_person_and_leaves_no_stamp() {
    on_a_host(
        "a_playbook_that_fails_is_for_a_person_and_leaves_no_stamp",
        "root",
        async |stage| {
            let failed = stage.equip(&[("tune", TUNE), ("bad", FAILS)]).await;
            let log = stage.log();
            assert!(failed.starts_with("stuck "), "{failed}\n{log}");
            assert!(failed.ends_with(" (HOST-022)"), "{failed}\n{log}");
            assert!(failed.contains("no such thing"), "{failed}\n{log}");
            assert_eq!(stage.stamp(), "none");
            // What no Ansible understands fails as soon as it is read.
            let misspelt = "[{hosts: all, taks: []}]";
            let failed = stage.equip(&[("tune", TUNE), ("bad", misspelt)]).await;
            assert!(failed.contains("taks"), "{failed}\n{}", stage.log());
            assert!(failed.ends_with(" (HOST-022)"), "{failed}");
            // What went well is not played again.
            let done = stage.equip(&[("tune", TUNE), ("bad", TUNE)]).await;
            assert!(done.starts_with("done "), "{done}\n{}", stage.log());
            assert_eq!(stage.on_host("wc -l </root/count"), "2");
            assert_eq!(Leftovers::of(&stage), Leftovers::default());
        },
    );
}

#[test]
fn the_key_is_neither_on_a_disk_nor_in_an_argument() {
    on_a_host(
        "the_key_is_neither_on_a_disk_nor_in_an_argument",
        "root",
        async |stage| {
            let playing = stage.equip(&[("waits", WAITS)]);
            let watching = async {
                waits(&stage).await;
                let during = Leftovers::of(&stage);
                stage.on_host("touch /run/go");
                during
            };
            let (done, during) = tokio::join!(playing, watching);
            assert!(done.starts_with("done "), "{done}\n{}", stage.log());
            let has = |program: &str| during.processes.iter().any(|one| one.contains(program));
            assert!(has("ansible-playbook") && has("ssh-agent"), "{during:?}");
            assert_eq!(during.directories.len(), 1, "{during:?}");
            assert_eq!(during.open_to_others, Vec::<String>::new());
            assert_eq!(during.with_key, Vec::<String>::new());
            assert_eq!(Leftovers::of(&stage), Leftovers::default());
        },
    );
}

#[test]
fn a_playbook_goes_through_the_jump_host() {
    behind_another(
        "a_playbook_goes_through_the_jump_host",
        async |stage, front| {
            let playing = stage.equip(&[("who", WHO), ("waits", WAITS)]);
            let watching = async {
                waits(&stage).await;
                let during = Leftovers::of(&stage);
                stage.on_host("touch /run/go");
                during
            };
            let (done, during) = tokio::join!(playing, watching);
            assert!(done.starts_with("done "), "{done}\n{}", stage.log());
            let came = stage.on_host("cut -d' ' -f1 /root/came");
            assert_eq!(came, front.address.to_string(), "{}", stage.log());
            let has = |program: &str| during.processes.iter().any(|one| one.contains(program));
            assert!(has(" -W "), "a client of its own passes it: {during:?}");
            assert_eq!(during.with_key, Vec::<String>::new());
            assert_eq!(during.open_to_others, Vec::<String>::new());
            assert_eq!(Leftovers::of(&stage), Leftovers::default());
        },
    );
}

#[test]
fn nothing_is_left_of_a_run_that_is_called_off() {
    on_a_host(
        "nothing_is_left_of_a_run_that_is_called_off",
        "root",
        async |stage| {
            let watching = async {
                waits(&stage).await;
                let during = Leftovers::of(&stage);
                stage.cancel.cancel();
                during
            };
            let (ended, during) = tokio::join!(stage.equip(&[("waits", WAITS)]), watching);
            assert!(ended.contains("called off"), "{ended}\n{}", stage.log());
            assert_eq!(Leftovers::of(&stage), Leftovers::default());
            assert!(during.processes.len() > 3, "{during:?}");
            assert!(!during.directories[0].exists());
            assert_eq!(stage.stamp(), "none");
        },
    );
}

#[test]
fn nothing_is_left_of_a_run_that_is_dropped() {
    on_a_host(
        "nothing_is_left_of_a_run_that_is_dropped",
        "root",
        async |stage| {
            let recipe = recipe(&[("waits", WAITS)]);
            let watching = async {
                waits(&stage).await;
                Leftovers::of(&stage)
            };
            let during = tokio::select! {
                outcome = stage.act(Action::Equip { recipe }) => panic!("{}", told(outcome)),
                during = watching => during,
            };
            assert!(during.processes.len() > 3, "{during:?}");
            // Nobody waits for it, so it takes a moment.
            for _ in 0..500 {
                if Leftovers::of(&stage) == Leftovers::default() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert_eq!(Leftovers::of(&stage), Leftovers::default());
            assert!(!during.directories[0].exists());
        },
    );
}

#[test]
fn without_ansible_it_is_said_where_it_is_missing() {
    on_a_host(
        "without_ansible_it_is_said_where_it_is_missing",
        "root",
        async |stage| {
            let stage = stage.searching("/nowhere");
            let failed = stage.equip(&[("tune", TUNE)]).await;
            let what = "the program ansible-playbook is missing on the machine that runs Slipway";
            assert!(failed.starts_with("stuck "), "{failed}");
            assert!(failed.contains(what), "{failed}");
            assert!(failed.ends_with(" (HOST-008)"), "{failed}");
            // Who has none needs none.
            assert!(stage.equip(&[]).await.starts_with("done "));
        },
    );
}

/// Until the playbook has come so far that it waits.
async fn waits(stage: &Stage) {
    for _ in 0..1_500 {
        if stage.lab.ssh(&stage.made, "test -e /run/waits").is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    panic!("the playbook does not come so far:\n{}", stage.log());
}
