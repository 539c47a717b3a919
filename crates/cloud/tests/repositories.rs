//! Repositories as they are: made with git on a disk, and behind a web server that lets not everybody in.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud::Repositories;
use driver::{Clock, Context, Error, Keeping, Log, NoSecrets, Open, Opening, Target, Unopened};
use model::cluster::{Machine, Origin, Role};
use model::hardware::Hardware;
use model::id::{self, ClusterId, MachineId};
use model::name::Name;
use model::observed::Fact;
use model::provider::Provider;
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
use model::templates::Templates;
use model::time::Timestamp;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const ORIGIN: id::Origin<'_> = id::Origin {
    parent: "a",
    name: "b",
    ordinal: 1,
    incarnation: 0,
};

struct Unread;

impl Log for Unread {
    fn line(&self, _: Timestamp, _: &str) {}
}

/// Secrets with one token.
struct Token(&'static str);

impl Open for Token {
    fn open<'a>(&'a self, secret: &'a SecretRef) -> Opening<'a> {
        let token = secret.key.as_ref().map(EntryName::as_str) == Some("token");
        let opened = if token {
            Ok(Secret::from_text(self.0.to_owned()))
        } else {
            Err(Unopened::Stuck(Error {
                attempted: format!("{secret} is not set"),
                hint: String::new(),
            }))
        };
        Box::pin(std::future::ready(opened))
    }

    fn kept<'a>(&'a self, _: &'a Owner, _: &'a EntryName) -> Keeping<'a> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

fn context(secrets: Arc<dyn Open>) -> (Context, CancellationToken) {
    let cancel = CancellationToken::new();
    let cx = Context::new(Clock::System, Arc::new(Unread), secrets, cancel.clone(), 0);
    (cx, cancel)
}

/// A machine that is made from a tag or a branch.
fn target(repository: &str, commit: &str, secret: Option<&str>) -> Target {
    let name: Name = "edge-muscle-01".parse().unwrap();
    let templates = Templates::Repository {
        repository: repository.to_owned(),
        commit: commit.to_owned(),
        path: None,
        secret: secret.map(|name| name.parse().unwrap()),
        pinned: None,
    };
    let machine = Machine {
        id: MachineId::derive(ORIGIN),
        name: name.clone(),
        pool: "muscle".parse().unwrap(),
        role: Role::Compute,
        ordinal: 1,
        incarnation: 0,
        address: Ipv4Addr::new(10, 8, 0, 1),
        balancer: None,
        origin: Origin::Made {
            provider: "cloud".parse().unwrap(),
            via: Provider::named("hetzner").unwrap(),
            region: "north".to_owned(),
            zone: None,
            server_type: "small".to_owned(),
            image: "debian-12".to_owned(),
            hardware: Hardware {
                templates: Some(templates),
                ..Hardware::default()
            },
            secret: None,
        },
    };
    Target {
        cluster: ClusterId::derive(ORIGIN),
        machines: vec![machine.clone(), machine],
        whole: true,
    }
}

/// What one look tells.
async fn told(repositories: &Repositories, cx: &Context, target: &Target) -> String {
    let seen = repositories.look(cx, target).await;
    let told = seen.iter().map(|seen| {
        if let Fact::Commit(_, fact) = &seen.fact {
            fact.commit.to_string()
        } else if let Fact::Unresolved(_, fact) = &seen.fact {
            let lasts = if fact.lasting { "lasting" } else { "passing" };
            format!("{lasts}: {}", fact.because)
        } else {
            format!("{:?}", seen.fact)
        }
    });
    told.collect::<Vec<_>>().join("\n")
}

/// A repository with a branch, a tag, and a tag that has a message of its own.
struct Repository {
    directory: tempfile::TempDir,
    first: String,
    second: String,
}

fn git(at: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "ann")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "ann@example.org")))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Repository {
    fn made() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let work = directory.path().join("work");
        std::fs::create_dir(&work).unwrap();
        git(&work, &["init", "--quiet", "--initial-branch=main"]);
        git(&work, &["commit", "--quiet", "--allow-empty", "-m", "one"]);
        let first = git(&work, &["rev-parse", "HEAD"]);
        git(&work, &["tag", "plain"]);
        git(&work, &["tag", "-a", "told", "-m", "with a message"]);
        git(&work, &["branch", "both"]);
        git(&work, &["commit", "--quiet", "--allow-empty", "-m", "two"]);
        let second = git(&work, &["rev-parse", "HEAD"]);
        git(&work, &["tag", "both"]);
        git(&work, &["branch", "release/2"]);
        git(
            directory.path(),
            &["clone", "--quiet", "--mirror", "work", "m"],
        );
        git(&directory.path().join("m"), &["update-server-info"]);
        Self {
            directory,
            first,
            second,
        }
    }

    fn on_disk(&self) -> Repositories {
        Repositories::at(format!("file://{}/", self.directory.path().display()))
    }
}

#[tokio::test]
async fn a_tag_leads_to_what_it_is_about_and_comes_before_a_branch() {
    let repository = Repository::made();
    let repositories = repository.on_disk();
    let (cx, _cancel) = context(Arc::new(NoSecrets));
    for (name, commit) in [
        ("main", &repository.second),
        ("release/2", &repository.second),
        ("plain", &repository.first),
        ("told", &repository.first),
        ("both", &repository.second),
    ] {
        let found = told(&repositories, &cx, &target("m", name, None)).await;
        assert_eq!(found, *commit, "{name}");
    }
    // A hash is nothing to look up.
    let hash = target("m", &repository.first, None);
    assert_eq!(told(&repositories, &cx, &hash).await, "");
}

#[tokio::test]
async fn what_is_not_there_is_told_with_who_must_act() {
    let repository = Repository::made();
    let repositories = repository.on_disk();
    let (cx, _cancel) = context(Arc::new(NoSecrets));
    let missing = told(&repositories, &cx, &target("m", "mian", None)).await;
    assert!(
        missing.starts_with("lasting: m has neither a tag nor a branch mian (CLOUD-003); "),
        "{missing}"
    );
    let absent = told(&repositories, &cx, &target("n", "main", None)).await;
    assert!(absent.starts_with("lasting: could not ask n: "), "{absent}");
    assert!(absent.contains("(CLOUD-001)"), "{absent}");
    // A port that nobody listens on.
    let nobody = Repositories::at("http://127.0.0.1:1/");
    let silent = told(&nobody, &cx, &target("m", "main", None)).await;
    assert!(silent.starts_with("passing: could not ask m: "), "{silent}");
    assert!(silent.contains("(CLOUD-004)"), "{silent}");
}

/// A web server that shows files to whoever says the word; answers where, and how often it was asked.
async fn served(
    serving: &mut JoinSet<()>,
    root: PathBuf,
    word: Option<&'static str>,
) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    serving.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                match stream.read(&mut byte).await {
                    Ok(1) => head.push(byte[0]),
                    Ok(_) | Err(_) => break,
                }
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split_whitespace().nth(1).unwrap_or("/");
            let path = path.split('?').next().unwrap_or_default();
            let pass = word.map(|word| format!("Authorization: Basic {}", STANDARD.encode(word)));
            let allowed = pass.is_none_or(|pass| head.contains(&pass));
            let file = std::fs::read(root.join(path.trim_start_matches('/')));
            let (status, body) = match file {
                _ if !allowed => ("401 Unauthorized", Vec::new()),
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nWWW-Authenticate: Basic realm=\"m\"\r\nContent-Type: text/plain\r\n\
                 Content-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            drop(stream.write_all(head.as_bytes()).await);
            drop(stream.write_all(&body).await);
            drop(stream.shutdown().await);
        }
    });
    (base, asked)
}

#[tokio::test]
async fn a_repository_that_lets_not_everybody_in_is_opened_with_its_secret() {
    let repository = Repository::made();
    let root = repository.directory.path().to_owned();
    let mut serving = JoinSet::new();
    let (base, asked) = served(&mut serving, root, Some("x-access-token:s3cr3t")).await;
    let closed = target("m", "main", None);
    let (cx, _cancel) = context(Arc::new(NoSecrets));
    let without = told(&Repositories::at(&base), &cx, &closed).await;
    assert!(
        without.contains("(CLOUD-001)") && without.contains("secretRef"),
        "{without}"
    );
    let opened = target("m", "main", Some("git"));
    let unset = told(&Repositories::at(&base), &cx, &opened).await;
    assert!(
        unset.starts_with("lasting: could not open secret git/token"),
        "{unset}"
    );
    let (cx, _cancel) = context(Arc::new(Token("wrong")));
    let refused = told(&Repositories::at(&base), &cx, &opened).await;
    assert!(
        refused.contains("(CLOUD-002)") && !refused.contains("wrong"),
        "{refused}"
    );
    let (cx, _cancel) = context(Arc::new(Token("s3cr3t\n")));
    let repositories = Repositories::at(&base);
    assert_eq!(told(&repositories, &cx, &opened).await, repository.second);
    // An answer is believed for a while.
    let before = asked.load(Ordering::SeqCst);
    assert_eq!(told(&repositories, &cx, &opened).await, repository.second);
    assert_eq!(asked.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn who_is_called_off_waits_for_nobody_and_tells_nothing() {
    // It takes calls and never says a word.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let repositories = Repositories::at(base);
    let (cx, cancel) = context(Arc::new(NoSecrets));
    let target = target("m", "main", None);
    let called_off = async {
        let _held = listener.accept().await.unwrap();
        cancel.cancel();
        std::future::pending::<()>().await;
    };
    let looked = async {
        tokio::select! {
            told = told(&repositories, &cx, &target) => told,
            () = called_off => unreachable!("it never ends"),
        }
    };
    let looked = tokio::time::timeout(Duration::from_secs(15), looked).await;
    assert_eq!(looked.expect("must end soon"), "");
}
