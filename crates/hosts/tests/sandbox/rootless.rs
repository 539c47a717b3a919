//! The same for a user who is not root: the program runs itself again in namespaces of its own.

use crate::apart::{Lab, apart, runtime};
use hosts::sandbox::{
    Level, Means, Sandbox, State, default_cache, ensure_rootfs, entered, entering, inherited, means,
};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tells the user where they may write.
const USER: &str = "SLIPWAY_TEST_USER";
/// Tells the program inside how often it was entered.
const ROUND: &str = "SLIPWAY_TEST_ROUND";
/// Nobody else's number.
const UID: u32 = 54_321;

#[test]
fn a_user_who_is_not_root_has_hosts_that_outlive_the_program() {
    let name = "rootless::a_user_who_is_not_root_has_hosts_that_outlive_the_program";
    if !Path::new("/usr/bin/newuidmap").exists() {
        return lab::skip(name, "the program newuidmap is missing");
    }
    apart(name, Level::Lite, async |lab| {
        let home = user(&lab.dir);
        let told = |line: &str| println!("{line}");
        let archive = ensure_rootfs(Level::Lite, &default_cache(), &told)
            .await
            .unwrap();
        std::fs::copy(archive, home.join("rootfs.tar")).unwrap();
        // What is built may lie where only root can go.
        let program = home.join("program");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let status = Command::new("setpriv")
            .args([format!("--reuid={UID}"), format!("--regid={UID}")])
            .args(["--clear-groups", "--"])
            .arg(&program)
            .args(["--exact", "rootless::as_a_user", "--nocapture"])
            .env(USER, &home)
            .env("HOME", &home)
            .status()
            .unwrap();
        assert!(status.success());
    });
}

/// Makes a user in the files that only we see, and gives them a home.
fn user(dir: &Path) -> PathBuf {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let home = dir.join("home");
    let files = [
        (
            "passwd",
            format!(
                "{passwd}slipwaytest:x:{UID}:{UID}::{}:/bin/sh\n",
                home.display()
            ),
        ),
        ("subuid", "slipwaytest:300000:65536\n".to_owned()),
        ("subgid", "slipwaytest:300000:65536\n".to_owned()),
    ];
    for (name, text) in files {
        let file = dir.join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        let mut mount = Command::new("mount");
        mount.arg("--bind").arg(&file).arg(format!("/etc/{name}"));
        assert!(mount.status().unwrap().success());
    }
    std::fs::create_dir(&home).unwrap();
    chown(&home, Some(UID), Some(UID)).unwrap();
    std::fs::set_permissions(dir, PermissionsExt::from_mode(0o711)).unwrap();
    home
}

#[test]
fn as_a_user() {
    let Some(home) = std::env::var_os(USER).map(PathBuf::from) else {
        return;
    };
    assert!(!entered());
    assert_eq!(means().unwrap(), Means::ByEntering);
    for round in ["1", "2"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let arguments = ["--exact", "rootless::inside", "--nocapture"];
        let program = std::env::current_exe().unwrap();
        let keep = home.join("sandbox");
        let mut command = entering(Some(&keep), &program, arguments, &[listener.as_fd()]).unwrap();
        let address = listener.local_addr().unwrap();
        let mut child = command.env(ROUND, round).spawn().unwrap();
        drop((command, listener));
        // Somebody inside answers at the address outside.
        let mut word = String::new();
        TcpStream::connect(address)
            .unwrap()
            .read_to_string(&mut word)
            .unwrap();
        assert_eq!(word, "from inside");
        assert!(child.wait().unwrap().success(), "round {round}");
    }
}

#[test]
fn inside() {
    let Some(home) = std::env::var_os(USER).map(PathBuf::from) else {
        return;
    };
    assert!(entered());
    let mut sockets = inherited().unwrap();
    let listener = TcpListener::from(sockets.pop().unwrap());
    assert!(inherited().unwrap().is_empty(), "they are handed over once");
    listener
        .accept()
        .unwrap()
        .0
        .write_all(b"from inside")
        .unwrap();
    assert_eq!(means().unwrap(), Means::Here);
    runtime().block_on(async {
        let lab = Lab::new(home.clone());
        let mut settings = lab.settings(hosts::sandbox::Ending::Stay);
        settings.rootfs = Some(home.join("rootfs.tar"));
        settings.cache = Some(home.join("cache"));
        let sandbox = Sandbox::open(settings).await.unwrap();
        let order = lab.order("one", Level::Lite);
        if std::env::var(ROUND).unwrap() == "1" {
            let made = sandbox.create(&order).await.unwrap();
            lab.ssh(
                &made,
                "echo kept >/note; id -u; ip tuntap add mode tun dev probe0",
            )
            .unwrap();
            let refused = sandbox
                .create(&lab.order("two", Level::Systemd))
                .await
                .unwrap_err();
            assert_eq!(refused.kind, hosts::error::Kind::NoSandbox, "{refused}");
            return;
        }
        let seen = sandbox.find("one").await.unwrap();
        assert_eq!(seen.state, State::Running, "it outlived the program");
        let made = sandbox.create(&order).await.unwrap();
        assert_eq!(
            lab.ssh(&made, "cat /note; test -e /sys/class/net/probe0")
                .unwrap(),
            "kept"
        );
        sandbox.clear().await.unwrap();
        // What was unpacked belongs to users that only we have.
        std::fs::remove_dir_all(home.join("cache")).unwrap();
    });
}
