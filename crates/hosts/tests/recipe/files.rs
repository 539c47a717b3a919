//! Files, blocks, directories: any bytes survive, and each way to fail has its own code.

use crate::world::{World, possible};
use base64::Engine as _;
use expect_test::expect;
use hosts::recipe::item::Item;
use hosts::recipe::render;
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(1);

fn calls(items: &[Item]) -> String {
    let text = render(items, "test", LIMIT).text.to_string();
    let (_, calls) = text.split_once("sw_alone 30\n").unwrap();
    calls.to_owned()
}

fn file(path: &str, content: impl Into<Vec<u8>>) -> Item {
    Item::file(path, content.into())
}

#[test]
fn items_become_calls() {
    let secret = Item::File {
        path: "/etc/x/key".to_owned(),
        mode: 0o600,
        owner: "root:root".to_owned(),
        content: b"hunter2".to_vec().into(),
        secret: true,
    };
    let items = [
        file("/etc/it's", "a\nb\n"),
        secret,
        Item::absent("/etc/y"),
        Item::Sysctl {
            key: "net.ipv4.ip_forward".to_owned(),
            value: "1".to_owned(),
            at_least: false,
        },
        Item::packages(&["a", "b"]),
        Item::Command {
            name: "touch".to_owned(),
            unless: "[ -e /z ]".to_owned(),
            run: "touch /z".to_owned(),
        },
    ];
    expect![[r#"
        sw_sysctls 'net.ipv4.ip_forward'
        sw_file '/etc/it'\''s' 644 'root:root' 911169ddaaf146aff539f58c26c489af3b892dff0fe283c1c264c65ae5aa59a2 4 plain 'a
        b
        '
        sw_file '/etc/x/key' 600 'root:root' f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7 7 base64 aHVudGVyMg==
        sw_absent '/etc/y'
        sw_sysctl 'net.ipv4.ip_forward' '1' 'exactly' '3add4423db4c48c62755562588d4da9224eb112cbf2e0a77ae287f8276e559e9' '25'
        sw_packages 'a b' distribution '' free
        sw_command 'touch' '[ -e /z ]' 'touch /z'
        sw_fact finished 1
        }
        sw_main </dev/null
    "#]]
    .assert_eq(&calls(&items));
}

#[test]
fn any_bytes_survive_and_a_second_run_changes_nothing() {
    if !possible("any_bytes_survive_and_a_second_run_changes_nothing") {
        return;
    }
    let world = World::new();
    let every: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    let mut contents: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"\n".to_vec(),
        b"no newline at the end".to_vec(),
        b"'\"$(id)`id`\\ ${x} EOF\nEND\n%s %d \\n\t#!".to_vec(),
        "sj\u{e4}l \u{1f600}\n".into(),
        every,
    ];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for size in 1..60 {
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed.to_le_bytes()[3]
        };
        contents.push((0..size * 7).map(|_| next()).collect());
    }
    let path = |index: usize| format!("/etc/deep/er {index}/it's $HOME");
    let items: Vec<Item> = contents
        .iter()
        .enumerate()
        .map(|(index, content)| file(&path(index), content.clone()))
        .collect();
    let program = render(&items, "test", LIMIT);
    assert_eq!(world.apply(&program), items.len());
    assert_eq!(world.apply(&program), 0);
    for (index, content) in contents.iter().enumerate() {
        let encoded = world.sh(&format!("base64 -w0 \"/etc/deep/er {index}/it's \\$HOME\""));
        let read = base64::engine::general_purpose::STANDARD.decode(encoded);
        assert_eq!(read.unwrap(), *content, "content {index}");
    }
}

#[test]
fn mode_owner_and_links_are_set_right() {
    if !possible("mode_owner_and_links_are_set_right") {
        return;
    }
    let world = World::new();
    world.sh(
        "mkdir /etc/t; echo x >/etc/t/other; ln -s other /etc/t/link; umask 0; echo a >/etc/t/wide",
    );
    let item = |path: &str, mode, owner: &str| Item::File {
        path: path.to_owned(),
        mode,
        owner: owner.to_owned(),
        content: b"a\n".to_vec().into(),
        secret: false,
    };
    let items = [
        item("/etc/t/link", 0o644, "root:root"),
        item("/etc/t/wide", 0o640, "root:daemon"),
        item("/etc/t/run", 0o755, "root:root"),
        item("/etc/t/deep/key", 0o600, "daemon:daemon"),
        Item::Directory {
            path: "/etc/t/d".to_owned(),
            mode: 0o750,
            owner: "daemon:root".to_owned(),
        },
    ];
    let program = render(&items, "test", LIMIT);
    assert_eq!(world.apply(&program), 5);
    assert_eq!(world.apply(&program), 0);
    expect![[r#"
        directory 750 daemon:root /etc/t/d
        directory 755 root:root /etc/t/deep
        regular file 600 daemon:daemon /etc/t/deep/key
        regular file 644 root:root /etc/t/link
        regular file 644 root:root /etc/t/other
        regular file 755 root:root /etc/t/run
        regular file 640 root:daemon /etc/t/wide
        x"#]]
    .assert_eq(&world.sh("stat -c '%F %a %U:%G %n' /etc/t/d /etc/t/deep /etc/t/deep/key /etc/t/link /etc/t/other /etc/t/run /etc/t/wide; cat /etc/t/other"));
}

#[test]
fn a_block_lives_among_the_lines_of_others() {
    if !possible("a_block_lives_among_the_lines_of_others") {
        return;
    }
    let world = World::new();
    let block = |lines: &[&str]| {
        let lines = lines.iter().map(|&line| line.to_owned()).collect();
        let block = |path: &str| Item::Block {
            path: path.to_owned(),
            marker: "m".to_owned(),
            lines,
        };
        render(&[block("/etc/t/b")], "test", LIMIT)
    };
    world.sh("mkdir /etc/t; printf 'first\\nwithout end' >/etc/t/b; chmod 640 /etc/t/b");
    assert_eq!(world.apply(&block(&["a", "b"])), 1);
    world.sh("echo after >>/etc/t/b");
    assert_eq!(world.apply(&block(&["a", "b"])), 0);
    assert_eq!(world.apply(&block(&["c $x"])), 1);
    expect![[r#"
        first
        without end
        # BEGIN slipway m
        c $x
        # END slipway m
        after
        640"#]]
    .assert_eq(&world.sh("cat /etc/t/b; stat -c %a /etc/t/b"));
    assert_eq!(world.apply(&block(&[])), 1);
    assert_eq!(world.apply(&block(&[])), 0);
    assert_eq!(world.sh("cat /etc/t/b"), "first\nwithout end\nafter");
    // Half a block, left by somebody who edited the file, takes nothing with it.
    world.sh("printf '# BEGIN slipway m\\nmine\\n' >/etc/t/b");
    assert_eq!(world.apply(&block(&["a"])), 1);
    assert!(world.sh("cat /etc/t/b").contains("mine\n"));
    // A file that is there only for the block goes with it; an empty one stays.
    world.sh("rm /etc/t/b");
    assert_eq!(world.apply(&block(&["a"])), 1);
    assert_eq!(world.apply(&block(&[])), 1);
    world.sh("[ ! -e /etc/t/b ]; : >/etc/t/b; rm -r /var/lib/slipway");
    assert_eq!(world.apply(&block(&["a"])), 1);
    assert_eq!(world.apply(&block(&[])), 1);
    world.sh("[ -e /etc/t/b ]");
}

#[test]
fn a_full_disk_and_a_read_only_one_are_told_apart() {
    if !possible("a_full_disk_and_a_read_only_one_are_told_apart") {
        return;
    }
    let world = World::new();
    world.sh("mkdir /opt/full /opt/ro; mount -t tmpfs -o size=64k tmpfs /opt/full; echo old >/opt/full/x; \
              head -c 100000 /dev/zero >/opt/full/fill 2>/dev/null || :; mount -t tmpfs -o ro tmpfs /opt/ro");
    for content in [b"new\n".to_vec(), vec![7; 40_000]] {
        let (code, what) = world.refuse(&render(&[file("/opt/full/x", content)], "test", LIMIT));
        assert_eq!(code, "HOST-006", "{what}");
        assert_eq!(world.sh("cat /opt/full/x; ls -A /opt/full"), "old\nfill\nx");
    }
    let (code, _) = world.refuse(&render(&[file("/opt/full/sub/x", "a")], "test", LIMIT));
    assert_eq!(code, "HOST-006");
    let (code, _) = world.refuse(&render(&[file("/opt/ro/x", "new\n")], "test", LIMIT));
    assert_eq!(code, "HOST-007");
    let (code, _) = world.refuse(&render(&[file("/opt/ro/sub/x", "new\n")], "test", LIMIT));
    assert_eq!(code, "HOST-007");
    // Room, once made, is enough: the next run goes on.
    world.sh("rm /opt/full/fill");
    assert_eq!(
        world.apply(&render(&[file("/opt/full/x", "new\n")], "test", LIMIT)),
        1
    );
}

#[test]
fn a_half_written_file_never_takes_the_place_of_a_whole_one() {
    if !possible("a_half_written_file_never_takes_the_place_of_a_whole_one") {
        return;
    }
    let world = World::new();
    world.sh("echo old >/etc/t; printf '#!/bin/sh\\n/usr/bin/base64 \"$@\" | head -c 3\\n' >/usr/local/sbin/base64; \
              chmod 755 /usr/local/sbin/base64");
    let program = render(&[file("/etc/t", vec![0, 1, 2, 3, 4, 5])], "test", LIMIT);
    let (code, what) = world.refuse(&program);
    assert_eq!(code, "HOST-019", "{what}");
    assert_eq!(
        world.sh("cat /etc/t; ls -A /etc | grep -c slipway-new || :"),
        "old\n0"
    );
    world.sh("rm /usr/local/sbin/base64");
    assert_eq!(world.apply(&program), 1);
}

#[test]
fn a_missing_tool_and_a_foreign_directory_are_named() {
    if !possible("a_missing_tool_and_a_foreign_directory_are_named") {
        return;
    }
    let world = World::new();
    world.sh("mkdir /etc/t");
    let (code, what) = world.refuse(&render(&[file("/etc/t", "x")], "test", LIMIT));
    assert_eq!(code, "HOST-021");
    assert!(what.contains("directory"), "{what}");
    world.sh("rm /usr/bin/sha256sum");
    let (code, what) = world.refuse(&render(&[file("/etc/t/x", "x")], "test", LIMIT));
    assert_eq!(
        (code.as_str(), what.as_str()),
        ("HOST-008", "the program sha256sum is missing")
    );
}

#[test]
fn half_a_program_does_nothing() {
    if !possible("half_a_program_does_nothing") {
        return;
    }
    let world = World::new();
    let program = render(&[file("/etc/t", "x")], "test", LIMIT);
    let whole = program.text.len();
    for cut in [100, whole / 2, whole - 30, whole - 15] {
        let report = world.enter(&["sh", "-s"], &program.text.as_bytes()[..cut]);
        assert!(hosts::recipe::done(&report).is_err(), "cut at {cut}");
        world.sh("[ ! -e /etc/t ]");
    }
}

#[test]
fn two_programs_never_work_at_once() {
    if !possible("two_programs_never_work_at_once") {
        return;
    }
    let world = World::new();
    let program = render(&[file("/etc/t", "x")], "test", Duration::from_secs(2));
    let (code, _) = {
        world.sh(
            "(exec 9</run; flock 9; : >/tmp/locked; sleep 60) >/dev/null 2>&1 & \
                  until [ -e /tmp/locked ]; do sleep 0.02; done",
        );
        world.refuse(&program)
    };
    assert_eq!(code, "HOST-005");
}
