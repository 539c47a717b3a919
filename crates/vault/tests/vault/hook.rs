//! Key commands: small shell scripts that do it right, and each way to do it wrong.

use crate::{FINGERPRINTS, KEYS, master, place, sealer};
use model::secret::Secret;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use vault::{Error, Hook, Master, Sealer};

/// A key service of its own kind. Its answer is long enough to be broken into lines.
pub(crate) const HONEST: &str = r#"
salt=0123456789012345678901234567890123456789
turn() { tr 'A-Za-z' 'N-ZA-Mn-za-m'; }
case "$1" in
    wrap) { printf %s "$salt:"; turn; } | base64 ;;
    unwrap) base64 -d | sed "s/^$salt://" | turn ;;
    *) exit 9 ;;
esac
"#;

/// The words of a command that runs a script; the verb becomes `$1`.
pub(crate) fn words(script: &str) -> Vec<String> {
    ["sh", "-c", script, "hook"].map(str::to_owned).to_vec()
}

/// With more time than any machine needs, however busy it is.
fn command(script: &str) -> Master {
    let hook = Hook::new(words(script)).unwrap();
    Master::Command(hook.within(Duration::from_mins(5)))
}

async fn refused(script: &str) -> Error {
    let sealer = Sealer::new(command(script), Vec::new());
    sealer.draw().await.unwrap_err()
}

#[tokio::test]
async fn a_command_wraps_and_unwraps() {
    let first = Sealer::new(command(HONEST), Vec::new());
    let wrapped = first.draw().await.unwrap();
    assert_eq!(wrapped.by, "command");
    assert_eq!(first.rewrap(&wrapped).await.unwrap(), None);
    let value = Secret::from_text("hunter2".to_owned());
    let sealed = first.seal(wrapped.id, &value, &place("token")).unwrap();

    let second = Sealer::new(command(HONEST), Vec::new());
    second.admit(&wrapped).await.unwrap();
    let opened = second.open(&sealed, &place("token")).unwrap();
    assert_eq!(opened.expose(), value.expose());
}

#[tokio::test]
async fn an_installation_moves_from_a_file_to_a_command_and_back() {
    let wrapped = sealer(&KEYS[..1]).draw().await.unwrap();
    let alone = Sealer::new(command(HONEST), Vec::new());
    let error = alone.admit(&wrapped).await.unwrap_err();
    assert_eq!(error.code(), "SEAL-004");
    assert!(error.to_string().contains(FINGERPRINTS[0]), "{error}");

    let away = Sealer::new(command(HONEST), vec![master(&KEYS[..1])]);
    let moved = away.rewrap(&wrapped).await.unwrap().unwrap();
    alone.admit(&moved).await.unwrap();
    let error = sealer(&KEYS[..1]).admit(&moved).await.unwrap_err();
    assert_eq!(error.code(), "SEAL-004");

    let back = Sealer::new(master(&KEYS[1..]), vec![command(HONEST)]);
    let back = back.rewrap(&moved).await.unwrap().unwrap();
    assert_eq!((back.id, back.by.as_str()), (wrapped.id, FINGERPRINTS[1]));
}

#[tokio::test]
async fn a_command_that_fails_is_quoted() {
    let error = refused("cat >/dev/null; echo first >&2; echo 'access denied' >&2; exit 3").await;
    assert_eq!(error.code(), "SEAL-006");
    assert_eq!(
        error.to_string(),
        "the key command `sh … wrap` failed (exit status: 3): access denied"
    );
    // One that reads nothing at all, and one that complains at length.
    assert_eq!(refused("exit 1").await.code(), "SEAL-006");
    let error = refused("yes complaint | head -c 1000000 >&2; echo last >&2; exit 1").await;
    assert!(error.to_string().ends_with(": last"), "{error}");
}

#[tokio::test]
async fn a_command_that_prints_its_input_is_not_quoted() {
    for script in [
        "read -r key; echo \"cannot wrap $key\" >&2; exit 1",
        "set -x; read -r key; test \"$key\" = x",
    ] {
        let error = refused(script).await;
        assert!(error.to_string().contains("withheld"), "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_is_of_no_use_is_refused() {
    for (script, why) in [
        (
            "echo 'I am fine!'",
            "`sh … wrap` gave an answer that is not base64",
        ),
        ("cat >/dev/null", "`sh … wrap` gave an answer that is empty"),
        (
            "yes AAAA",
            "`sh … wrap` gave an answer that is longer than 64 KiB",
        ),
        (
            "cat",
            "`sh … wrap` gave an answer that contains the data key as it is",
        ),
        (
            "echo AAAA",
            "`sh … unwrap` gave an answer that is not the data key that was wrapped",
        ),
    ] {
        let error = refused(script).await;
        assert_eq!(error.code(), "SEAL-006");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let hook = Hook::new(["/no/such/program".to_owned()]).unwrap();
    let sealer = Sealer::new(Master::Command(hook), Vec::new());
    let error = sealer.draw().await.unwrap_err();
    assert_eq!(error.code(), "SEAL-006");
    assert!(error.to_string().contains("/no/such/program"), "{error}");
}

#[tokio::test]
async fn a_command_that_hangs_is_given_up() {
    for script in ["while :; do sleep 1; done", "exec >&- 2>&-; exec sleep 600"] {
        let hook = Hook::new(words(script))
            .unwrap()
            .within(Duration::from_millis(50));
        let sealer = Sealer::new(Master::Command(hook), Vec::new());
        let error = sealer.draw().await.unwrap_err();
        assert_eq!(error.code(), "SEAL-007");
    }
}

/// Both the shell and what it started hold the pipe open, so its end proves that both ended.
#[tokio::test]
async fn nothing_survives_a_call_that_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("alive");
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let mut alive = pipe::OpenOptions::new().open_receiver(&path).unwrap();
    let sealer = Sealer::new(command(&stubborn(&path)), Vec::new());
    let mut ready = [0; 6];
    tokio::select! {
        drawn = sealer.draw() => panic!("ended by itself: {drawn:?}"),
        read = alive.read_exact(&mut ready) => { read.unwrap(); }
    }
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_mins(1), alive.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the command, or its child, is still there");
}

fn stubborn(alive: &Path) -> String {
    format!(
        "exec 3>'{}'; sleep 600 & echo ready >&3; wait",
        alive.display()
    )
}
