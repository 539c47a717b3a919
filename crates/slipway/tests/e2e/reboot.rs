//! A compute machine reboots, and comes back without anybody's help; its node is deleted, and comes
//! back, too.

use crate::asking::{answered, until};
use crate::hosts_within::Within;
use crate::shape::{NODE_PORT, Shape};
use crate::site::{Site, VERSION, story};

#[test]
fn a_rebooted_compute_machine_comes_back_by_itself() {
    let test = "reboot::a_rebooted_compute_machine_comes_back_by_itself";
    let shape = Shape::small(VERSION, 1);
    story(test, &[VERSION], |site| {
        site.step("from apply to all nodes ready", |site| site.apply(shape));
        site.step("a pod answers", |site| {
            site.deploy(1);
            let at = site.addresses("compute");
            answered(&at[0], NODE_PORT);
        });
        let name = site.names("compute").remove(0);
        let at = site.addresses("compute").remove(0);
        // Nobody is there who could help.
        site.kill();
        site.step("the machine reboots", |_| {
            let before = Site::host(&name);
            before.run(&["systemctl", "reboot"], b"").unwrap();
            until("the reboot", || {
                let now = Within::find(&name)?;
                (now.first != before.first).then_some(())
            });
        });
        site.step("its pod answers again", |_| {
            answered(&at, NODE_PORT);
        });
        site.start();
        site.step("all is as declared", |site| site.apply(shape));
        site.step("a node that somebody deleted is there again", |site| {
            site.kubectl(&["delete", "node", &name], "").unwrap();
            until("the node", || {
                let node = site.kubectl(&["get", "node", &name, "--no-headers"], "");
                let ready = |line: &String| line.split_whitespace().nth(1) == Some("Ready");
                node.ok().filter(ready).map(drop)
            });
            answered(&at, NODE_PORT);
        });
        site.step("delete", |site| site.delete());
    });
}
