//! Who is let in, who is recognised, and what is said where that fails.

use std::future::pending;
use std::net::Ipv4Addr;
use std::time::Duration;

use hosts::error::{Error, Kind};
use hosts::ssh::{Connections, Door, Limits, new_key};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::server::{Ring, Server, possible, program};

async fn attempt(connections: &Connections, door: &Door, ring: &Ring) -> Result<(), Error> {
    let report = connections
        .run(door, ring, &program("true"), &|_| {}, pending())
        .await;
    report.map(|_| ())
}

fn door(port: u16) -> Door {
    Door {
        host: Ipv4Addr::LOCALHOST.into(),
        port,
        user: "root".to_owned(),
        jump: None,
    }
}

#[tokio::test]
async fn a_host_that_refuses_is_told_apart_from_one_that_is_silent() {
    let ring = Ring::new();
    let refusing = door(crate::server::free_port());
    let error = attempt(&Connections::default(), &refusing, &ring)
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::Refused);
    assert!(error.what.contains(&refusing.to_string()), "{error}");

    // It is connected to by the kernel and says nothing.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let silent = door(listener.local_addr().unwrap().port());
    let impatient = Connections::new(Limits {
        connect: Duration::from_millis(300),
        ..Limits::default()
    });
    let error = attempt(&impatient, &silent, &ring).await.unwrap_err();
    assert_eq!(error.kind, Kind::Silent);
    assert!(error.what.contains(&silent.to_string()), "{error}");
    assert_eq!(ring.opened(), 0, "no secret for hosts that do not answer");
}

#[tokio::test]
async fn what_is_no_ssh_server_is_told() {
    let answers: [(&'static [u8], Kind); 4] = [
        (b"SSH-2.0-Half", Kind::Lost),
        (b"", Kind::Lost),
        (
            b"SSH-2.0-OpenSSH_9.2\r\n\0\0\0\x0cgarbagegarbage!",
            Kind::Garbage,
        ),
        (&[b'x'; 4096], Kind::Garbage),
    ];
    for (answer, kind) in answers {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(answer).await.unwrap();
            stream.shutdown().await.unwrap();
            // Until it is over: a reset would take the answer away again.
            let mut rest = Vec::new();
            drop(tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest).await);
        });
        let ring = Ring::new();
        let error = attempt(&Connections::default(), &door(port), &ring)
            .await
            .unwrap_err();
        let shown = String::from_utf8_lossy(answer);
        assert_eq!(error.kind, kind, "{shown:.40}: {error}");
        assert_eq!(ring.opened(), 0);
    }
}

#[tokio::test]
async fn a_key_that_the_host_does_not_know_is_refused() {
    if !possible("a_key_that_the_host_does_not_know_is_refused") {
        return;
    }
    let server = Server::start();
    let (other, _) = hosts::ssh::new_key("other").unwrap();
    let ring = Ring::of(other.expose_text().unwrap());
    let error = attempt(&Connections::default(), &server.door("root"), &ring)
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::WrongKey, "{error}");
    assert!(
        error.what.contains(&server.door("root").to_string()),
        "{error}"
    );
    assert!(error.what.contains("SHA256:"), "{error}");
    let nobody = server.door("nobody-of-that-name");
    let error = attempt(&Connections::default(), &nobody, &Ring::new()).await;
    assert_eq!(error.unwrap_err().kind, Kind::WrongKey);

    let strict = Server::with("MaxAuthTries 1");
    let error = attempt(&Connections::default(), &strict.door("root"), &ring).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind, Kind::WrongKey, "{error}");
}

#[tokio::test]
async fn a_key_that_is_none_or_has_a_passphrase_is_told() {
    if !possible("a_key_that_is_none_or_has_a_passphrase_is_told") {
        return;
    }
    let server = Server::start();
    let make = |passphrase: &str, format: &str, name: &str| {
        let made = std::process::Command::new("ssh-keygen")
            .args(["-q", "-t", "rsa", "-m", format, "-N", passphrase, "-f"])
            .arg(server.path(name))
            .status();
        assert!(made.unwrap().success());
        std::fs::read_to_string(server.path(name)).unwrap()
    };
    let texts = [
        make("hunter2", "RFC4716", "openssh"),
        make("hunter2", "PEM", "pem"),
        make("hunter2", "PKCS8", "pkcs8"),
        "this is no key".to_owned(),
    ];
    for (number, text) in texts.iter().enumerate() {
        let ring = Ring::of(text);
        let error = attempt(&Connections::default(), &server.door("root"), &ring)
            .await
            .unwrap_err();
        assert_eq!(error.kind, Kind::BadKey, "{number}: {error}");
        let why = if number < 3 {
            "passphrase"
        } else {
            "no private key"
        };
        assert!(error.what.contains(why), "{number}: {error}");
        assert!(
            error.what.contains(&server.door("root").to_string()),
            "{error}"
        );
        assert!(
            ring.pins.lock().unwrap().is_empty(),
            "pinned though it did not come in"
        );
    }
}

#[tokio::test]
async fn rsa_keys_in_old_and_new_formats_come_in() {
    if !possible("rsa_keys_in_old_and_new_formats_come_in") {
        return;
    }
    let server = Server::start();
    for format in ["RFC4716", "PEM", "PKCS8"] {
        let file = server.path(format);
        let made = std::process::Command::new("ssh-keygen")
            .args(["-q", "-t", "rsa", "-m", format, "-N", "", "-f"])
            .arg(&file)
            .status();
        assert!(made.unwrap().success());
        std::fs::copy(file.with_extension("pub"), server.path("authorized_keys")).unwrap();
        let ring = Ring::of(&std::fs::read_to_string(&file).unwrap());
        attempt(&Connections::default(), &server.door("root"), &ring)
            .await
            .unwrap();
        let secret = model::secret::Secret::from_text(ring.text);
        let public = hosts::ssh::public_half(&secret).unwrap();
        let line = std::fs::read_to_string(file.with_extension("pub")).unwrap();
        assert!(line.starts_with(public.trim()), "{public} of {line}");
    }
}

#[tokio::test]
async fn a_host_is_pinned_at_first_sight_and_refused_when_it_is_another() {
    if !possible("a_host_is_pinned_at_first_sight_and_refused_when_it_is_another") {
        return;
    }
    let mut server = Server::start();
    let (door, ring) = (server.door("root"), Ring::new());
    let before = server.fingerprint();
    attempt(&Connections::default(), &door, &ring)
        .await
        .unwrap();
    attempt(&Connections::default(), &door, &ring)
        .await
        .unwrap();
    let pins = ring.pins.lock().unwrap().clone();
    let line = std::fs::read_to_string(server.path("host_key.pub")).unwrap();
    assert_eq!(pins.len(), 1, "told once, then it is known");
    assert!(line.starts_with(&pins[0].1), "{pins:?}");
    assert_eq!(ring.opened(), 2);

    server.reinstall();
    let entered = server.entered();
    let error = attempt(&Connections::default(), &door, &ring)
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::ChangedHostKey);
    for part in [&before, &server.fingerprint(), &door.to_string()] {
        assert!(error.what.contains(part.as_str()), "{part} in {error}");
    }
    assert_eq!(ring.opened(), 2, "the key is not even opened");
    assert_eq!(server.entered(), entered);
}

#[tokio::test]
async fn the_pinned_kind_of_key_is_asked_for_where_a_host_has_several() {
    if !possible("the_pinned_kind_of_key_is_asked_for_where_a_host_has_several") {
        return;
    }
    let spare = tempfile::tempdir().unwrap();
    for kind in ["rsa", "ecdsa"] {
        let made = std::process::Command::new("ssh-keygen")
            .args(["-q", "-N", "", "-t", kind, "-f"])
            .arg(spare.path().join(kind))
            .status();
        assert!(made.unwrap().success());
    }
    let keys = spare.path().display();
    let server = Server::with(&format!("HostKey {keys}/rsa\nHostKey {keys}/ecdsa"));
    for kind in ["rsa", "ecdsa"] {
        let ring = Ring::new();
        let line = std::fs::read_to_string(spare.path().join(format!("{kind}.pub"))).unwrap();
        let pin = (server.door("root"), line);
        ring.pins.lock().unwrap().push(pin);
        attempt(&Connections::default(), &server.door("root"), &ring)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_host_behind_another_is_reached_and_both_are_recognised() {
    if !possible("a_host_behind_another_is_reached_and_both_are_recognised") {
        return;
    }
    let (outer, mut inner) = (Server::start(), Server::start());
    let mut door = inner.door("root");
    door.jump = Some(Box::new(outer.door("ada")));
    let ring = Ring::new();
    let connections = Connections::default();
    attempt(&connections, &door, &ring).await.unwrap();
    assert_eq!((outer.entered(), inner.entered()), (1, 1));
    assert_eq!(ring.pins.lock().unwrap().len(), 2, "both are pinned");
    let asked = ring.opened.lock().unwrap().clone();
    assert_eq!(asked, [outer.door("ada"), door.clone()], "each has its key");
    attempt(&connections, &door, &ring).await.unwrap();
    assert_eq!((outer.entered(), inner.entered()), (1, 1));

    inner.reinstall();
    let error = attempt(&Connections::default(), &door, &ring)
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::ChangedHostKey);
    assert!(error.what.contains(&inner.fingerprint()), "{error}");
    assert!(error.what.contains("through ada@"), "{error}");

    let mut nowhere = door.clone();
    nowhere.port = crate::server::free_port();
    let error = attempt(&connections, &nowhere, &ring).await.unwrap_err();
    assert_eq!(error.kind, Kind::Refused, "{error}");
}

#[tokio::test]
async fn a_host_in_front_that_fails_is_told_apart_from_the_one_behind() {
    if !possible("a_host_in_front_that_fails_is_told_apart_from_the_one_behind") {
        return;
    }
    let (mut outer, inner) = (Server::with("AllowTcpForwarding no"), Server::start());
    let mut door = inner.door("root");
    door.jump = Some(Box::new(outer.door("ada")));
    let ring = Ring::new();
    let error = attempt(&Connections::default(), &door, &ring)
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::NoPassage, "{error}");
    assert!(error.what.contains("the jump host says: "), "{error}");

    outer.reinstall();
    let error = attempt(&Connections::default(), &door, &ring)
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::ChangedHostKey);
    let blamed = format!("jump host: could not connect to {}: ", outer.door("ada"));
    assert!(error.what.contains(&blamed), "{error}");
    assert!(
        error.what.contains(&inner.door("root").to_string()),
        "{error}"
    );
}

#[tokio::test]
async fn another_key_of_the_host_in_front_closes_what_goes_through_it() {
    if !possible("another_key_of_the_host_in_front_closes_what_goes_through_it") {
        return;
    }
    let (outer, inner) = (Server::start(), Server::start());
    let mut door = inner.door("root");
    door.jump = Some(Box::new(outer.door("root")));
    let (ring, later) = (Ring::new(), Ring::new());
    let connections = Connections::default();
    attempt(&connections, &door, &ring).await.unwrap();
    // Who comes later by the same connection is told of both, too.
    attempt(&connections, &door, &later).await.unwrap();
    assert_eq!(later.pins.lock().unwrap().len(), 2);
    assert_eq!((outer.entered(), inner.entered()), (1, 1));
    let mut pins = later.pins.lock().unwrap().clone();
    for (of, line) in &mut pins {
        if *of == outer.door("root") {
            line.clone_from(&new_key("another").unwrap().1);
        }
    }
    *later.pins.lock().unwrap() = pins;
    let error = attempt(&connections, &door, &later).await.unwrap_err();
    assert_eq!(error.kind, Kind::ChangedHostKey, "{error}");
}
