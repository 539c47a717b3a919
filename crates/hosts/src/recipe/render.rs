//! Items become one shell program: what its calls need, and then one call for each item.

use crate::program::{Program, quoted};
use crate::recipe::item::{Content, Item, Mirror, Source, State, Unit};
use crate::recipe::services::{SUPERVISE, SUPERVISE_TEXT};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::host::Purpose;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;
use zeroize::Zeroizing;

const PRELUDE: &str = include_str!("prelude.sh");
pub(crate) const SYSTEM: &str = include_str!("system.sh");
const PACKAGES: &str = include_str!("packages.sh");
pub(crate) const SERVICES: &str = include_str!("services.sh");

/// What every program needs on its host.
const TOOLS: &str = "grep sha256sum base64 stat mv rm cat head mkdir chmod chown flock timeout";

/// How long a program waits for another one of ours to end.
const PATIENCE: Duration = Duration::from_mins(1);

/// Renders items into one program that brings them about in their order.
///
/// It does nothing unless all of it arrived, and ends at the first item that fails; whoever runs
/// it again goes on from there.
pub fn render(items: &[Item], title: impl Into<String>, limit: Duration) -> Program {
    let mut needs = BTreeMap::from([("", restarts(items))]);
    note_needs(items, &mut needs);
    let fragments: String = needs.values().map(|text| format!("{text}\n")).collect();
    // Room enough from the start: a text that moves leaves a copy of its secrets behind.
    let mut body = Zeroizing::new(String::with_capacity(room(items)));
    let mut keys = Vec::new();
    note_sysctls(items, &mut keys);
    if !keys.is_empty() {
        body.push_str(&format!("sw_sysctls {}\n", keys.join(" ")));
    }
    calls(items, &mut body);
    Program {
        title: title.into(),
        text: Zeroizing::new(program(&fragments, limit, &body)),
        limit,
    }
}

/// More bytes than the calls of items take.
fn room(items: &[Item]) -> usize {
    let one = |item: &Item| match item {
        Item::File { content, .. } => content.bytes().len() * 2,
        Item::Service { .. } => SUPERVISE_TEXT.len() * 2,
        Item::Block { lines, .. } => lines.iter().map(|line| line.len() * 2).sum(),
        Item::When { items, .. } | Item::Unprepared { items } => room(items),
        Item::Placed { .. }
        | Item::Directory { .. }
        | Item::Absent { .. }
        | Item::Packages { .. }
        | Item::Foreseen { .. }
        | Item::Removed { .. }
        | Item::Sysctl { .. }
        | Item::Restored
        | Item::Module { .. }
        | Item::Command { .. }
        | Item::Told { .. }
        | Item::Returned { .. }
        | Item::Supported { .. }
        | Item::Stamp { .. } => 0,
    };
    items.iter().map(|item| one(item) + 4096).sum()
}

/// A whole program: what was cut off on its way is a function without an end and runs nothing.
pub(crate) fn program(fragments: &str, limit: Duration, body: &str) -> String {
    let seconds = PATIENCE.min(limit / 2).as_secs().max(1);
    format!(
        "sw_main() {{\n{PRELUDE}\n{fragments}\nsw_needs {TOOLS}\nsw_alone {seconds}\n{body}\
         sw_fact finished 1\n}}\nsw_main </dev/null\n"
    )
}

/// Which fragments of shell the items need.
fn note_needs(items: &[Item], needs: &mut BTreeMap<&'static str, String>) {
    for item in items {
        match item {
            Item::Packages { .. } | Item::Foreseen { .. } | Item::Removed { .. } => {
                needs.insert("packages", PACKAGES.to_owned());
            }
            Item::Service { .. } => {
                needs.insert("services", SERVICES.to_owned());
            }
            Item::Sysctl { .. } | Item::Restored | Item::Module { .. } | Item::Supported { .. } => {
                needs.insert("system", SYSTEM.to_owned());
            }
            Item::File { .. }
            | Item::Placed { .. }
            | Item::Directory { .. }
            | Item::Absent { .. }
            | Item::Block { .. }
            | Item::Command { .. }
            | Item::Told { .. }
            | Item::Returned { .. }
            | Item::When { .. }
            | Item::Unprepared { .. }
            | Item::Stamp { .. } => {}
        }
        note_needs(item.inner(), needs);
    }
}

/// The settings of the kernel that are looked at: all at once, which is cheaper.
fn note_sysctls(items: &[Item], keys: &mut Vec<String>) {
    for item in items {
        if let Item::Sysctl { key, .. } = item {
            keys.push(quoted(key));
        }
        note_sysctls(item.inner(), keys);
    }
}

/// The function that says which services read an item.
fn restarts(items: &[Item]) -> String {
    let mut readers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    note_readers(items, &mut readers);
    let arms: String = readers
        .iter()
        .map(|(item, services)| {
            format!(
                "{}) sw_services='{}' ;;\n",
                quoted(item),
                services.join(" ")
            )
        })
        .collect();
    format!("sw_restarts() {{\nsw_services=\ncase $1 in\n{arms}esac\n}}\n")
}

fn note_readers(items: &[Item], readers: &mut BTreeMap<String, Vec<String>>) {
    for item in items {
        note_readers(item.inner(), readers);
        let Item::Service {
            name, restart_when, ..
        } = item
        else {
            continue;
        };
        let own = [unit_path(name), definition_path(name)].map(|path| format!("file {path}"));
        for read in restart_when.iter().chain(&own) {
            let services = readers.entry(read.clone()).or_default();
            if !services.contains(name) {
                services.push(name.clone());
            }
        }
    }
}

fn unit_path(service: &str) -> String {
    format!("/etc/systemd/system/{service}.service")
}

fn definition_path(service: &str) -> String {
    format!("/etc/slipway/services/{service}")
}

/// The calls of items, one after the other.
fn calls(items: &[Item], out: &mut String) {
    for item in items {
        call(item, out);
    }
}

fn call(item: &Item, out: &mut String) {
    match item {
        Item::File {
            path,
            mode,
            owner,
            content,
            secret,
        } => file(path, *mode, owner, content, *secret, out),
        Item::Packages {
            names,
            source,
            held,
        } => packages(names, source, *held, out),
        Item::Service {
            name, unit, state, ..
        } => service(name, unit, *state, out),
        Item::When { condition, items } => {
            out.push_str(&format!("if {{ {condition}\n}} >/dev/null 2>&1; then\n:\n"));
            calls(items, out);
            out.push_str("fi\n");
        }
        Item::Supported { purpose } => {
            let (purpose, programs) = promises(*purpose);
            out.push_str(&format!(
                "if sw_unprepared {purpose} '{programs}'; then sw_bare=1; else sw_bare=; fi\n"
            ));
        }
        Item::Unprepared { items } => {
            out.push_str("if [ -n \"${sw_bare-1}\" ]; then\n:\n");
            calls(items, out);
            out.push_str("fi\n");
        }
        Item::Told { key, print } => {
            out.push_str(&format!("sw_fact {} \"$({print}\n)\"\n", quoted(key)));
        }
        Item::Placed { .. }
        | Item::Directory { .. }
        | Item::Absent { .. }
        | Item::Returned { .. }
        | Item::Block { .. }
        | Item::Foreseen { .. }
        | Item::Removed { .. }
        | Item::Sysctl { .. }
        | Item::Restored
        | Item::Module { .. }
        | Item::Command { .. }
        | Item::Stamp { .. } => {
            let words: Vec<String> = words(item).iter().map(|word| quoted(word)).collect();
            // The first word is a function of ours and needs no quotes.
            out.push_str(words.join(" ").replacen('\'', "", 2).as_str());
            out.push('\n');
        }
    }
}

/// The one call of an item that needs no more than words.
fn words(item: &Item) -> Vec<String> {
    let all = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    match item {
        Item::Placed {
            path,
            mode,
            sha256,
            size,
            from,
        } => {
            let (mode, size) = (format!("{mode:o}"), size.to_string());
            all(&["sw_placed", path, &mode, sha256, &size, from])
        }
        Item::Directory { path, mode, owner } => {
            all(&["sw_directory", path, &format!("{mode:o}"), owner])
        }
        Item::Absent { path } => all(&["sw_absent", path]),
        Item::Returned { path } => all(&["sw_returned", path]),
        Item::Block {
            path,
            marker,
            lines,
        } => all(&["sw_block", path, marker, &lines.join("\n")]),
        Item::Foreseen { names, index } => {
            let index = index.as_deref().unwrap_or_default();
            all(&["sw_foreseen", &names.join(" "), index])
        }
        Item::Removed { names } => {
            let names = names.as_ref().map(|names| names.join(" "));
            all(&["sw_removed", &item.name(), &names.unwrap_or_default()])
        }
        Item::Sysctl {
            key,
            value,
            at_least,
        } => {
            let how = if *at_least { "at-least" } else { "exactly" };
            let (digest, size) = measured(format!("-{key} = {value}\n").as_bytes());
            all(&["sw_sysctl", key, value, how, &digest, &size.to_string()])
        }
        Item::Restored => all(&["sw_restored"]),
        Item::Module { name } => {
            let (digest, size) = measured(format!("{name}\n").as_bytes());
            all(&["sw_module", name, &digest, &size.to_string()])
        }
        Item::Command { name, unless, run } => all(&["sw_command", name, unless, run]),
        Item::Stamp { fingerprint } => all(&["sw_stamp", fingerprint.as_str()]),
        Item::File { .. }
        | Item::Packages { .. }
        | Item::Service { .. }
        | Item::Told { .. }
        | Item::When { .. }
        | Item::Supported { .. }
        | Item::Unprepared { .. } => Vec::new(),
    }
}

/// What a marker calls a purpose, and the programs it must promise for it.
fn promises(purpose: Purpose) -> (&'static str, &'static str) {
    match purpose {
        Purpose::Node => ("node", "containerd ip wg"),
        Purpose::Balancer => ("balancer", "ip wg"),
    }
}

/// The SHA-256 in hexadecimal, and the size.
fn measured(bytes: &[u8]) -> (String, usize) {
    let digest = Sha256::digest(bytes);
    let hex = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    (hex, bytes.len())
}

fn file(path: &str, mode: u32, owner: &str, content: &Content, secret: bool, out: &mut String) {
    let bytes = content.bytes();
    let (digest, size) = measured(bytes);
    let (path, owner) = (quoted(path), quoted(owner));
    out.push_str(&format!("sw_file {path} {mode:o} {owner} {digest} {size} "));
    // A shell takes any text in quotes as it is, but for bytes that it uses itself.
    let plain = |byte: &u8| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\n' | b'\t');
    match std::str::from_utf8(bytes) {
        Ok(text) if !secret && bytes.iter().all(plain) => {
            out.push_str("plain ");
            out.push_str(&quoted(text));
        }
        Ok(_) | Err(_) => {
            out.push_str("base64 ");
            out.push_str(&Zeroizing::new(STANDARD.encode(bytes)));
        }
    }
    out.push('\n');
}

fn public_file(path: &str, mode: u32, text: String, out: &mut String) {
    file(path, mode, "root:root", &Content::from(text), false, out);
}

fn packages(names: &[String], source: &Source, held: bool, out: &mut String) {
    let (kind, at) = match source {
        Source::Distribution => ("distribution", String::new()),
        Source::Directory(path) => ("directory", path.clone()),
        Source::Mirror(mirror) => {
            if let Some(key) = &mirror.key {
                public_file(&key_path(mirror), 0o644, key.clone(), out);
            }
            public_file(&sources_path(mirror), 0o644, sources(mirror), out);
            ("mirror", sources_path(mirror))
        }
    };
    let held = if held { "held" } else { "free" };
    let (names, at) = (quoted(&names.join(" ")), quoted(&at));
    out.push_str(&format!("sw_packages {names} {kind} {at} {held}\n"));
}

/// Where a mirror's key is kept.
fn key_path(mirror: &Mirror) -> String {
    format!("/etc/apt/keyrings/slipway-{}.asc", mirror.name)
}

/// Where a mirror is told to apt.
fn sources_path(mirror: &Mirror) -> String {
    format!("/etc/apt/sources.list.d/slipway-{}.list", mirror.name)
}

fn sources(mirror: &Mirror) -> String {
    let trust = match &mirror.key {
        Some(_) => format!("signed-by={}", key_path(mirror)),
        None => "trusted=yes".to_owned(),
    };
    let mut line = format!("deb [{trust}] {} {}", mirror.url, mirror.suite);
    for component in &mirror.components {
        line.push(' ');
        line.push_str(component);
    }
    line.push('\n');
    line
}

/// Whatever the host has for an init, its file is written and the service brought about.
fn service(name: &str, unit: &Unit, state: State, out: &mut String) {
    if let (Unit::Ours(definition), State::Running | State::Stopped) = (unit, state) {
        out.push_str("if [ \"$sw_init\" = own ]; then\nsw_needs setsid mkfifo dd tail\n");
        public_file(SUPERVISE, 0o755, SUPERVISE_TEXT.to_owned(), out);
        public_file(&definition_path(name), 0o644, definition.supervised(), out);
        out.push_str("else\n");
        public_file(&unit_path(name), 0o644, definition.unit(), out);
        out.push_str("fi\n");
    }
    let state = match (state, unit) {
        (State::Running, _) => "running",
        (State::Kept, _) => "kept",
        (State::Stopped, _) | (State::Absent, Unit::Packaged) => "stopped",
        (State::Absent, Unit::Ours(_)) => "absent",
    };
    out.push_str(&format!("sw_service {} {state}\n", quoted(name)));
}
