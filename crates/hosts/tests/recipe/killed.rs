//! A program that is killed at any moment and run again ends as if it never had been.

use crate::world::{World, eventually, possible, same};
use hosts::program::Program;
use hosts::recipe::item::{Item, State, Unit};
use hosts::recipe::services::Definition;
use hosts::recipe::{Level, node_requirements, proxy, render};
use model::host::Proxy;
use std::time::Duration;

/// Stands before each tool: counts, and kills the program before or after the one that is asked
/// for.
const SHIM: &str = r#"
for tool in sha256sum base64 stat mv rm cat mkdir chmod chown cp sync flock setsid mkfifo; do
    real=$(PATH=/usr/bin:/bin:/usr/sbin command -v $tool)
    cat >/usr/local/sbin/$tool <<END
#!/bin/sh
read -r n </tmp/count; n=\$((n + 1)); echo \$n >/tmp/count.\$\$; /bin/mv -f /tmp/count.\$\$ /tmp/count
read -r when at main </tmp/kill
[ "\$n \$when" != "\$at before" ] || { kill -9 \$main; exit 1; }
[ "\$n \$when" = "\$at after" ] || exec $real "\$@"
$real "\$@"; status=\$?
kill -9 \$main
exit \$status
END
    chmod 755 /usr/local/sbin/$tool
done
echo 0 >/tmp/count
"#;

/// Files, a block, settings, and a service that reads one of the files.
fn items(greeting: &str) -> Vec<Item> {
    let mut items = node_requirements(Level::Systemd);
    let wish = Proxy {
        endpoint: format!("http://{greeting}.example:3128"),
        except: vec!["localhost".to_owned()],
    };
    items.extend(proxy(Some(&wish), Level::Systemd));
    let greeting = Item::file("/etc/greeting", greeting);
    let binary: Vec<u8> = (0..=255).collect();
    items.push(Item::file("/etc/t/binary", binary));
    items.push(Item::Service {
        name: "greeter".to_owned(),
        unit: Unit::Ours(Definition {
            description: "greets".to_owned(),
            command: [
                "/bin/sh",
                "-c",
                "cat /etc/greeting >/tmp/greeted; exec sleep 1000",
            ]
            .map(str::to_owned)
            .to_vec(),
            reload: "HUP".to_owned(),
        }),
        state: State::Running,
        restart_when: vec![greeting.name()],
    });
    items.insert(0, greeting);
    items
}

fn program(greeting: &str) -> Program {
    render(&items(greeting), "test", Duration::from_mins(1))
}

/// Runs a program that may be killed from inside.
fn killed(world: &World, program: &Program, when: &str, at: usize) -> bool {
    let start = format!("echo '{when} {at}' $$ >/tmp/kill; exec sh -s");
    world
        .enter(&["sh", "-c", &start], program.text.as_bytes())
        .fact("finished")
        .is_none()
}

#[test]
fn killed_at_every_tool_it_ends_as_if_never_killed() {
    if !possible("killed_at_every_tool_it_ends_as_if_never_killed") {
        return;
    }
    let (old, new) = (program("old"), program("new"));
    let reference = World::new();
    reference.sh(SHIM);
    assert!(!killed(&reference, &old, "never", 0));
    reference.sh("echo 0 >/tmp/count");
    assert!(!killed(&reference, &new, "never", 0));
    let total: usize = reference.sh("cat /tmp/count").parse().unwrap();
    let wished = reference.snapshot();
    assert!(wished.contains("/greeting"), "{wished}");
    assert!(total > 30, "only {total} tools were used");

    let step = (total / 25).max(1);
    let points: Vec<usize> = (1..=total).step_by(step).collect();
    let one = |(round, at): (usize, usize)| {
        let world = World::new();
        world.sh(SHIM);
        assert!(!killed(&world, &old, "never", 0));
        world.sh("echo 0 >/tmp/count");
        let when = if round % 2 == 0 { "before" } else { "after" };
        let was_killed = killed(&world, &new, when, at);
        // The service's own tools count, too: nothing may be killed from here on.
        world.sh("echo never 0 0 >/tmp/kill");
        world.sh("find /etc -name binary -size -256c | grep . && exit 1; :");
        world.apply(&new);
        assert_eq!(world.apply(&new), 0, "killed {when} tool {at}");
        same(
            &world.snapshot(),
            &wished,
            &format!("killed {when} tool {at}"),
        );
        // The service reads what is there now, also if we died between file and restart.
        eventually("the service greets anew", || {
            world.sh("cat /tmp/greeted 2>/dev/null || :") == "new"
        });
        usize::from(was_killed)
    };
    let kills = each(points.into_iter().enumerate(), one);
    assert!(kills > 20, "only {kills} runs were killed");
}

/// Does one thing for each item, four at a time: most of it is waiting. The sum of the answers.
fn each<T: Send>(items: impl Iterator<Item = T> + Send, one: impl Fn(T) -> usize + Sync) -> usize {
    let items = std::sync::Mutex::new(items);
    let next = || items.lock().unwrap().next();
    let hand = || std::iter::from_fn(next).map(&one).sum::<usize>();
    std::thread::scope(|scope| {
        let hands = [(); 4].map(|()| scope.spawn(hand));
        hands.into_iter().map(|hand| hand.join().unwrap()).sum()
    })
}

#[test]
fn killed_at_any_moment_it_ends_as_if_never_killed() {
    if !possible("killed_at_any_moment_it_ends_as_if_never_killed") {
        return;
    }
    let new = program("new");
    let reference = World::new();
    let begun = std::time::Instant::now();
    reference.apply(&new);
    let whole = begun.elapsed();
    let wished = reference.snapshot();
    let one = |round: u32| {
        let world = World::new();
        let after = format!("{:.3}", (whole * round / 25).as_secs_f64());
        let command = ["timeout", "-s", "KILL", &after, "sh", "-s"];
        world.enter(&command, new.text.as_bytes());
        world.apply(&new);
        assert_eq!(world.apply(&new), 0, "killed after {after} s");
        same(
            &world.snapshot(),
            &wished,
            &format!("killed after {after} s"),
        );
        1
    };
    assert_eq!(each(1..=25, one), 25);
}
