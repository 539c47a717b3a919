//! `slipway ssh` into real hosts: one of the sandbox that the server made, and a given one.

use crate::apart::{Lab, apart};
use crate::secrets::{done, until};
use crate::server::{Server, slipway};
use crate::wrong_key;
use hosts::sandbox::Level;
use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// One host of the sandbox.
const MANIFEST: &str = "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {name: loft}
spec:
  providers:
    - {name: here, providerType: sandbox}
  nodePools:
    dynamic:
      - {name: bed, providerSpec: {name: here, region: local}, count: 1, serverType: lite, image: debian-12}
  kubernetes:
    clusters:
      - {name: loft, version: v1.34.0, network: 10.31.0.0/24, pools: {control: [bed], compute: []}}
";

const MACHINE: &str = "loft-bed-01";
const FILE: &str = "/root/.ssh/authorized_keys";

/// Somebody at a terminal, whose rooms are in a directory of their own.
struct Person {
    address: String,
    data: PathBuf,
    rooms: PathBuf,
}

impl Person {
    fn new(server: &mut Server) -> Self {
        let rooms = server.directory.join("rooms");
        std::fs::create_dir_all(&rooms).unwrap();
        Self {
            address: server.address(),
            data: server.directory.join("data"),
            rooms,
        }
    }

    fn ssh(&self, words: &[&str]) -> Command {
        let mut command = slipway();
        command.env("TMPDIR", &self.rooms).env("HOME", &self.rooms);
        command.args(["--server", &self.address, "--data-dir"]);
        command.arg(&self.data).arg("ssh").args(words);
        command
    }

    fn runs(&self, machine: &str, line: &str) -> Output {
        let mut command = self.ssh(&[machine, "--", line]);
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// What is left of visits.
    fn left(&self) -> Vec<PathBuf> {
        let rooms = std::fs::read_dir(&self.rooms).unwrap().flatten();
        let rooms = rooms.map(|entry| entry.path());
        rooms
            .filter(|path| path.file_name() != Some(".ssh".as_ref()))
            .collect()
    }
}

#[test]
fn a_machine_is_entered_through_the_server() {
    let name = "entering::a_machine_is_entered_through_the_server";
    apart(name, Level::Lite, async |lab| {
        tokio::task::block_in_place(|| {
            let mut server = Server::start(&lab.dir);
            let manifest = lab.dir.join("manifest.yaml");
            std::fs::write(&manifest, MANIFEST).unwrap();
            done(&server.client(&["apply", "-f", manifest.to_str().unwrap()]));
            until("the machine runs", || {
                let machine = server.client(&["get", "machine", MACHINE, "-o", "json"]);
                let machine: serde_json::Value = serde_json::from_slice(&machine.stdout).ok()?;
                (machine["machine"]["state"] == "running").then_some(())
            });
            let person = Person::new(&mut server);
            as_with_ssh(&person);
            kept_for_scp(&person);
            good_for_a_while(&person);
            interrupted(&person);
            refused(&person);
            audited(&mut server);
            assert!(person.left().is_empty(), "{:?}", person.left());
            done(&server.client(&["delete", "manifest", "loft", "--yes"]));
            until("it is gone", || {
                let left = server.client(&["get", "machines", "-o", "json"]);
                let left: serde_json::Value = serde_json::from_slice(&left.stdout).ok()?;
                left["items"].as_array()?.is_empty().then_some(())
            });
        });
    });
}

/// Input, output and the status pass through.
fn as_with_ssh(person: &Person) {
    let ended = person.runs(MACHINE, "id -un; hostname; echo aside >&2; exit 7");
    assert_eq!(ended.status.code(), Some(7), "{ended:?}");
    assert_eq!(
        String::from_utf8_lossy(&ended.stdout),
        format!("root\n{MACHINE}\n")
    );
    assert!(
        String::from_utf8_lossy(&ended.stderr).contains("aside"),
        "{ended:?}"
    );
    let said: Vec<u8> = (0..3_000_000_u32)
        .map(|number| number.to_le_bytes()[0])
        .collect();
    let mut child = person
        .ssh(&[MACHINE, "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let (writing, sent) = (said.clone(), std::thread::spawn);
    let writer = sent(move || input.write_all(&writing).unwrap());
    let ended = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(
        ended.status.success() && ended.stdout == said,
        "{}",
        ended.stdout.len()
    );
}

/// Other programs use what is kept.
fn kept_for_scp(person: &Person) {
    let way = person.rooms.join("way");
    let kept = person
        .ssh(&[MACHINE, "--keep", way.to_str().unwrap()])
        .output();
    let told = done(&kept.unwrap());
    let config = way.join("config");
    let first = format!("ssh -F {} {MACHINE}\n", config.display());
    assert!(told.starts_with(&first), "{told}");
    let file = person.rooms.join("file");
    std::fs::write(&file, "brought").unwrap();
    let mut scp = Command::new("scp");
    scp.arg("-q").arg("-F").arg(&config).arg(&file);
    let copied = scp.arg(format!("{MACHINE}:/tmp/file")).output().unwrap();
    assert!(copied.status.success(), "{copied:?}");
    assert_eq!(done(&person.runs(MACHINE, "cat /tmp/file")), "brought");
    std::fs::remove_file(&file).unwrap();
}

/// Runs a command with what was kept.
fn with(way: &Path, line: &str) -> Output {
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(way.join("config")).args([MACHINE, line]);
    ssh.stdin(Stdio::null()).output().unwrap()
}

/// A key whose time has passed opens nothing, and the next who comes takes it out.
fn good_for_a_while(person: &Person) {
    let way = person.rooms.join("way");
    let key = std::fs::read_to_string(way.join("key.pub")).unwrap();
    let key = key.trim();
    assert_eq!(done(&with(&way, "echo in")), "in\n");
    let keys = done(&person.runs(MACHINE, &format!("cat {FILE}")));
    let line = keys.lines().find(|line| line.contains(key)).unwrap();
    assert!(line.starts_with("expiry-time=\""), "{line}");
    let own = keys.lines().filter(|line| !line.contains("slipway-guest"));
    let own: Vec<&str> = own.collect();
    assert!(!own.is_empty(), "the key of the cluster stays: {keys}");
    let past = "s/^expiry-time=\"[0-9]*\"/expiry-time=\"20200101000000\"/; s/until-[0-9]*$/until-1577836800/";
    let aged = format!("sed -i '{past}' {FILE} && grep -c until-1577836800 {FILE}");
    assert_ne!(done(&person.runs(MACHINE, &aged)).trim(), "0");
    let refused = with(&way, "echo in");
    assert_eq!(refused.status.code(), Some(255), "{refused:?}");
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("Permission denied"),
        "{refused:?}"
    );
    let keys = done(&person.runs(MACHINE, &format!("cat {FILE}; stat -c %a {FILE}")));
    assert!(
        !keys.contains(key) && !keys.contains("until-1577836800"),
        "{keys}"
    );
    assert!(own.iter().all(|line| keys.contains(line)), "{keys}");
    assert!(keys.ends_with("\n600\n"), "{keys}");
    std::fs::remove_dir_all(&way).unwrap();
}

/// Ctrl-C ends what runs there, and nothing of the visit is left.
fn interrupted(person: &Person) {
    let mut command = person.ssh(&[MACHINE, "--", "echo begun; exec sleep 1000"]);
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let mut begun = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut begun).unwrap();
    let group = format!("-{}", child.id());
    let sent = Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(sent.unwrap().success());
    // What ssh says of itself when it was interrupted.
    let status = child.wait().unwrap();
    assert_eq!((status.signal(), status.code()), (None, Some(255)));
}

/// What cannot be is told, and by whom.
fn refused(person: &Person) {
    let said = |output: Output| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let (code, told) = said(person.runs("loft-bed-09", "true"));
    assert!(code == Some(1) && told.contains("(API-002)"), "{told}");
    let mut without = person.ssh(&[MACHINE]);
    let (code, told) = said(without.env("PATH", "/nowhere").output().unwrap());
    assert!(code == Some(1) && told.contains("(CLI-011)"), "{told}");
}

fn audited(server: &mut Server) {
    let entries = done(&server.client(&["audit", "list", "-o", "json"]));
    let entries: serde_json::Value = serde_json::from_str(&entries).unwrap();
    let mut entries = entries["items"].as_array().unwrap().iter();
    let entered = entries
        .find(|entry| entry["action"] == "machine.enter")
        .unwrap();
    assert_eq!(entered["object"], format!("machine/{MACHINE}"));
    assert_eq!(
        (&entered["actor"], &entered["project"]),
        (&"admin".into(), &"default".into())
    );
}

#[test]
fn a_given_machine_is_entered_and_keeps_nothing_of_it() {
    let name = "entering::a_given_machine_is_entered_and_keeps_nothing_of_it";
    apart(name, Level::Lite, async |lab| {
        let sandbox = lab.open().await;
        let host = sandbox
            .create(&lab.order("one", Level::Lite))
            .await
            .unwrap();
        tokio::task::block_in_place(|| given(&lab, &host.address.to_string()));
        let keys = lab.ssh(&host, "cat /root/.ssh/authorized_keys").unwrap();
        assert!(!keys.contains("slipway-guest"), "{keys}");
        sandbox.clear().await.unwrap();
    });
}

fn given(lab: &Lab, endpoint: &str) {
    let mut server = Server::start(&lab.dir);
    wrong_key::set(&mut server, &lab.dir.join("key"));
    let manifest = wrong_key::manifest(lab, endpoint);
    done(&server.client(&["apply", "-f", &manifest]));
    wrong_key::goes_as_far_as_it_can(&mut server);
    let person = Person::new(&mut server);
    let keys = done(&person.runs("attic-trunk-01", &format!("cat {FILE}")));
    assert!(keys.contains("slipway-guest-until-"), "{keys}");
    done(&server.client(&["delete", "manifest", "attic", "--yes"]));
    until("it is given back", || {
        let left = server.client(&["get", "machines", "-o", "json"]);
        let left: serde_json::Value = serde_json::from_slice(&left.stdout).ok()?;
        left["items"].as_array()?.is_empty().then_some(())
    });
}
