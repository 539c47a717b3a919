//! The shell that hosts get is clean.

use hosts::program::Program;
use hosts::recipe::item::Item;
use hosts::recipe::services::{Verb, ask};
use hosts::recipe::{Level, look, prepare, removal, render};
use model::host::{Proxy, Purpose, Recipe};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

fn programs() -> Vec<Program> {
    let limit = Duration::from_mins(1);
    let mut programs = vec![
        look(&["sw_fact more 1"], limit),
        ask("x", Verb::Restart, limit),
        render(&removal(Level::Systemd), "test", limit),
    ];
    let proxy = Proxy {
        endpoint: "http://10.0.0.1:3128".to_owned(),
        except: vec!["localhost".to_owned()],
    };
    for proxy in [None, Some(proxy)] {
        for purpose in [Purpose::Node, Purpose::Balancer] {
            for level in [Level::Systemd, Level::Lite] {
                let recipe = Recipe {
                    purpose,
                    proxy: proxy.clone(),
                    playbooks: Vec::new(),
                };
                let items: Vec<Item> = prepare(&recipe, level);
                programs.push(render(&items, "test", limit));
            }
        }
    }
    programs
}

#[test]
fn shellcheck_finds_nothing() {
    let mut texts: Vec<String> = programs()
        .iter()
        .map(|program| program.text.to_string())
        .collect();
    texts.push(include_str!("../../src/recipe/supervise.sh").to_owned());
    texts.push(include_str!("../../src/playbook/keeper.sh").to_owned());
    texts.push(include_str!("../../src/recipe/reset.sh").to_owned());
    for text in texts {
        // Functions are called by names that are put together, and each program needs but some.
        let child = Command::new("shellcheck")
            .args(["-s", "sh", "-e", "SC2317,SC2329,SC2034,SC2016,SC2154", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            lab::skip("shellcheck_finds_nothing", "shellcheck is not installed");
            return;
        };
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
    }
}
