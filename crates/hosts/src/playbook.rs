//! Playbooks of the user's: `ansible-playbook` runs on this machine, against one host.
//!
//! Ansible sees nothing but what is made for it here: an inventory of one host, the host key that
//! was pinned, a configuration and a home of its own. The private key, and that of a jump host, is
//! given to an `ssh-agent` that lives as long as the run; it is never on a disk, in an argument or
//! in an environment.
//! Whatever Ansible started ends with the run, however that ends (see `keeper.sh`).

mod keeper;
mod said;
mod texts;

use crate::error::{Error, Kind};
use crate::recipe::item::Item;
use crate::ssh::{self, Door, Log};
use keeper::{Keeper, Order};
use model::cluster::Machine;
use model::host::Playbook;
use model::name::Name;
use model::secret::Secret;
pub(crate) use said::Recap;
use said::Said;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one playbook may take on one host.
const LIMIT: Duration = Duration::from_mins(30);

/// How many runs there are at once: each is an interpreter of its own, with all its libraries.
pub(crate) const AT_ONCE: usize = 8;

/// Where a host remembers what was played on it, one file for each playbook.
const PLAYED: &str = "/etc/slipway/playbooks";

/// What a look tells of what was played: `playbook.NAME` and a fingerprint.
pub(crate) const LOOK: &str = "for sw_one in /etc/slipway/playbooks/*; do
[ -f \"$sw_one\" ] || continue
sw_read \"$sw_one\"
sw_fact \"playbook.${sw_one##*/}\" \"$sw_read\"
done";

/// What the facts about playbooks begin with.
const FACT: &str = "playbook.";

/// What the machine must have on which playbooks are run.
const TOOLS: [&str; 6] = [
    "ansible-playbook",
    "ssh-agent",
    "ssh-add",
    "ssh",
    "setsid",
    "grep",
];

/// The playbooks that were not played on a host as they are now, by what it told of itself.
pub(crate) fn due<'a>(
    playbooks: &'a [Playbook],
    facts: &BTreeMap<String, String>,
) -> Vec<&'a Playbook> {
    let played = |playbook: &&Playbook| {
        let told = facts.get(&format!("{FACT}{}", playbook.name));
        told.is_some_and(|told| told == playbook.fingerprint().as_str())
    };
    playbooks.iter().filter(|one| !played(one)).collect()
}

/// What a host remembers of playbooks that nobody wants any more: it is to forget them, so that
/// one that comes back is played again.
pub(crate) fn forgotten(playbooks: &[Playbook], facts: &BTreeMap<String, String>) -> Vec<Item> {
    let names = facts.keys().filter_map(|key| key.strip_prefix(FACT));
    let names = names.filter_map(|name| name.parse::<Name>().ok());
    let gone = names.filter(|name| !playbooks.iter().any(|playbook| playbook.name == *name));
    gone.map(|name| Item::absent(format!("{PLAYED}/{name}")))
        .collect()
}

/// What a host is told when a playbook was played on it.
pub(crate) fn remembered(playbook: &Playbook) -> Item {
    let text = format!("{}\n", playbook.fingerprint());
    Item::file(format!("{PLAYED}/{}", playbook.name), text)
}

/// One of the hosts on the way, and what opens it.
pub(crate) struct Opened<'a> {
    pub(crate) door: &'a Door,
    /// The pinned key, as a line of OpenSSH's.
    pub(crate) host_key: String,
    pub(crate) key: Secret,
}

/// The host on which a playbook is played, and how it is entered.
pub(crate) struct Scene<'a> {
    pub(crate) host: Opened<'a>,
    /// The host in front of it.
    pub(crate) front: Option<Opened<'a>>,
    pub(crate) machine: &'a Machine,
    pub(crate) cluster: &'a Name,
    /// Where programs of this machine are searched.
    pub(crate) path: &'a OsStr,
}

/// Plays a playbook on one host; what Ansible says goes to the log as it comes.
///
/// It ends with an error when a play fails or takes too long, and soon after `cancel` completes.
/// Then, and also when it is dropped, nothing that it started is left running on this machine.
pub(crate) async fn play(
    scene: &Scene<'_>,
    playbook: &Playbook,
    log: Log<'_>,
    cancel: impl Future<Output = ()>,
) -> Result<Option<Recap>, Error> {
    let tools = TOOLS.map(|tool| find(tool, scene.path));
    for (tool, found) in TOOLS.iter().zip(&tools) {
        if found.is_none() {
            let what = format!(
                "could not play {}: the program {tool} is missing on the machine that runs Slipway",
                playbook.name
            );
            return Err(Error::new(Kind::MissingTool, what));
        }
    }
    let broken = |error: std::io::Error| {
        let what = format!("could not begin to play {}: {error}", playbook.name);
        Error::new(Kind::Failed, what)
    };
    let place = place().map_err(broken)?;
    let dir = texts::Dir(place.path());
    let keys = keys(scene)?;
    write(dir, scene, playbook).map_err(broken)?;
    for (key, file) in keys.iter().zip([dir.public(), dir.front_public()]) {
        std::fs::write(file, format!("{}\n", key.public)).map_err(broken)?;
    }
    let program = tools.into_iter().flatten().next().unwrap_or_default();
    let mut words = vec![program.into_os_string(), OsString::from("--inventory")];
    words.extend([dir.inventory(), dir.playbook()].map(PathBuf::into_os_string));
    let order = Order {
        dir,
        path: scene.path,
        words: &words,
    };
    let said = Said::new(scene.machine.name.as_str());
    let telling = |line: &str| {
        said.hear(line);
        log(line);
    };
    let title = format!("playing {} on {}", playbook.name, scene.host.door);
    let run = async {
        let mut keeper = Keeper::start(&order).map_err(broken)?;
        let ended = tokio::select! {
            biased;
            () = cancel => None,
            () = tokio::time::sleep(LIMIT) => Some(Err(hung(&title))),
            ended = keeper.drive(&order, &keys, LIMIT, &telling) => Some(ended),
        };
        if let Some(Ok(status)) = ended {
            return Ok(status);
        }
        let gone = keeper.end().await;
        if !gone {
            log("something that it started does not end");
        }
        ended.unwrap_or_else(|| Err(Error::new(Kind::Lost, format!("{title} was called off"))))
    };
    let status = run.await?;
    said.judge(&title, status)
}

/// A private key for the agent. By its public half the agent is asked for the one that belongs to
/// a host: it would offer the others, too.
struct Pair {
    private: Secret,
    public: String,
}

/// The keys of the host and of the one in front of it.
fn keys(scene: &Scene<'_>) -> Result<Vec<Pair>, Error> {
    let opened = std::iter::once(&scene.host).chain(&scene.front);
    let pair = |opened: &Opened<'_>| {
        Ok(Pair {
            private: ssh::openssh(&opened.key)?,
            public: ssh::public_half(&opened.key)?,
        })
    };
    opened.map(pair).collect()
}

fn hung(title: &str) -> Error {
    let minutes = LIMIT.as_secs() / 60;
    Error::new(
        Kind::Hung,
        format!("{title} took longer than {minutes} min"),
    )
}

/// A program of this machine.
fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    let runs = |at: &PathBuf| {
        let file = std::fs::metadata(at);
        file.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let mut all = std::env::split_paths(path).map(|directory| directory.join(program));
    all.find(runs)
}

/// A directory that nobody else may enter. Sockets are made in it, whose paths must be short, and
/// it is named in settings, where not every letter may stand.
fn place() -> std::io::Result<tempfile::TempDir> {
    const LEN_MAX: usize = 40;
    let plain = |text: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
        text.starts_with('/') && text.len() <= LEN_MAX && text.bytes().all(letter)
    };
    let usual = std::env::temp_dir();
    let usual = usual.to_str().filter(|text| plain(text)).map(Path::new);
    tempfile::Builder::new()
        .prefix("slipway-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(usual.unwrap_or(Path::new("/tmp")))
}

fn write(dir: texts::Dir<'_>, scene: &Scene<'_>, playbook: &Playbook) -> std::io::Result<()> {
    std::fs::create_dir(dir.scratch())?;
    std::fs::write(dir.known_hosts(), texts::known_hosts(scene))?;
    std::fs::write(dir.inventory(), texts::inventory(scene))?;
    std::fs::write(dir.settings(), texts::settings(dir, scene.host.door))?;
    std::fs::write(dir.ssh(), texts::ssh(dir, scene))?;
    std::fs::write(dir.playbook(), &playbook.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn playbook(name: &str, text: &str) -> Playbook {
        Playbook {
            name: name.parse().unwrap(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn what_was_played_as_it_is_now_is_not_due() {
        let (old, new) = (playbook("a", "- {}"), playbook("a", "- {hosts: all}"));
        let facts = BTreeMap::from([
            ("playbook.a".to_owned(), old.fingerprint().to_string()),
            ("playbook.gone".to_owned(), "x".to_owned()),
            ("playbook.../x".to_owned(), "x".to_owned()),
            ("owner".to_owned(), "x".to_owned()),
        ]);
        let (now, later) = ([old.clone()], [new.clone(), playbook("b", "- {}")]);
        assert_eq!(due(&now, &facts), Vec::<&Playbook>::new());
        assert_eq!(due(&later, &facts), later.iter().collect::<Vec<_>>());
        assert_eq!(
            forgotten(&now, &facts),
            [Item::absent("/etc/slipway/playbooks/gone")]
        );
    }

    #[test]
    fn a_program_is_one_that_may_be_run() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ansible-playbook"), "").unwrap();
        assert_eq!(find("ansible-playbook", dir.path().as_os_str()), None);
        assert!(find("sh", OsStr::new("/nowhere:/bin")).is_some());
    }
}
