//! Looks, and touches nothing.

use super::seen::{
    Database, Entry, Is, Key, KeyPlace, Opens, Port, Seen, Server, Space, TOOLS, Token, Tool,
    Trouble,
};
use crate::failure::Failure;
use crate::place::Place;
use crate::roles::Options;
use api::client::{ClusterFilter, Health, Page};
use api::{Client, ClusterState};
use driver::Clock;
use model::sealed::Wrapped;
use rustix::fs::Access;
use rustix::process::Resource;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use vault::{KeyConfig, KeySource};

/// What a server says of something stored that it cannot read: it is damaged, or a newer program wrote it.
const UNREADABLE: [&str; 2] = ["STORE-006", "STORE-007"];

/// Looks at everything.
pub(super) async fn look(
    options: &Options,
    listen: SocketAddr,
    global: &cli::Global,
) -> anyhow::Result<Seen> {
    let data_dir = global.data_dir()?;
    let place = Place::of(&options.database, &data_dir)?;
    // Without a token less can be asked, and that is no reason to ask nothing.
    let client = global
        .client()
        .or_else(|_| Client::new(&global.server, None, global.project()))?;
    let token = token(&data_dir.join(server::auth::TOKEN_FILE));
    let database = database(&place, &token);
    let config = options.keys(&data_dir);
    Ok(Seen {
        user: rustix::process::geteuid().as_raw(),
        lease: engine::Settings::default().lease,
        connections: store::connections(),
        now: Clock::System.now(),
        directory: entry(&data_dir),
        barred: barred(&data_dir),
        space: space(&data_dir),
        token,
        key: key(&config, &database, &client).await,
        database,
        listen,
        port: port(listen).await,
        url: client.server().to_owned(),
        server: server(&client).await,
        unread: unread(global, &client).await,
        files_max: rustix::process::getrlimit(Resource::Nofile).current,
        tools: TOOLS.map(|tool| (tool, found(&tool))).to_vec(),
    })
}

fn entry(path: &Path) -> Entry {
    let is = match std::fs::metadata(path) {
        Ok(found) => Is::There {
            directory: found.is_dir(),
            owner: found.uid(),
            mode: found.permissions().mode() & 0o777,
            writable: rustix::fs::access(path, Access::WRITE_OK).is_ok(),
        },
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Is::Missing
        }
        Err(error) => Is::Hidden(error.to_string()),
    };
    Entry {
        path: path.to_owned(),
        is,
    }
}

/// Why a directory that is not there cannot be made.
fn barred(directory: &Path) -> Option<String> {
    let directory = std::path::absolute(directory).ok()?;
    if directory.exists() {
        return None;
    }
    if directory.is_symlink() {
        return Some("it is a link to nothing".to_owned());
    }
    let parent = directory.ancestors().find(|path| path.exists())?;
    let shown = parent.display();
    if !parent.is_dir() {
        return Some(format!("{shown} is no directory"));
    }
    if let Err(error) = rustix::fs::access(parent, Access::WRITE_OK | Access::EXEC_OK) {
        return Some(format!("nothing can be made in {shown}: {error}"));
    }
    // What the kernel shows as files, such as /proc, has no room for others, whatever the modes.
    let system = rustix::fs::statvfs(parent).ok()?;
    (system.f_blocks == 0).then(|| format!("the file system of {shown} keeps no files"))
}

/// The administrator's token, judged as a server that starts would.
fn token(path: &Path) -> Token {
    let file = entry(path);
    let path = path.to_owned();
    let useless = match std::fs::read_to_string(&path) {
        Ok(text) if server::auth::well_formed(text.trim()) => None,
        Ok(_) => Some(server::auth::Error::Form { path }),
        Err(_) if file.is == Is::Missing => None,
        Err(cause) => Some(server::auth::Error::Read { path, cause }),
    };
    let useless = useless.map(|error| {
        let code = error.code();
        let hint = error.hint().to_owned();
        let what = anyhow::Error::new(error);
        Trouble {
            what: format!("{what:#} ({code})"),
            hint,
        }
    });
    Token { file, useless }
}

/// The room where a directory is, or will be.
fn space(directory: &Path) -> Option<Space> {
    let directory = std::path::absolute(directory).ok()?;
    let there = directory.ancestors().find(|path| path.exists())?;
    let system = rustix::fs::statvfs(there).ok()?;
    // Some file systems do not count files, and say that there can be none.
    let uncounted = system.f_files == 0;
    Some(Space {
        free: system.f_bavail.saturating_mul(system.f_frsize),
        files_free: if uncounted { u64::MAX } else { system.f_favail },
    })
}

fn database(place: &Place, token: &Token) -> Database {
    let looked = match place {
        Place::Directory(_) => place.look().map(|looked| match looked {
            Some(looked) => Database::File(looked),
            None if token.file.is == Is::Missing => Database::None,
            None => Database::Lost,
        }),
        Place::Server(..) => place
            .look_at()
            .map(|looked| Database::Server(Box::new(looked), Clock::System.now())),
    };
    looked.unwrap_or_else(|error| {
        let held = matches!(
            error.downcast_ref::<store::Error>(),
            Some(store::Error::Locked { .. })
        );
        if held {
            Database::Held
        } else {
            Database::Unusable(trouble(&error))
        }
    })
}

/// An error as it would be told if it ended the program.
fn trouble(error: &anyhow::Error) -> Trouble {
    let mut causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    causes.dedup();
    let what = causes.join(": ");
    match error.downcast_ref::<Failure>() {
        Some(failure) => Trouble {
            what: format!("{what} ({})", failure.code),
            hint: failure.hint.clone(),
        },
        None => Trouble {
            what,
            hint: "look at the server's log".to_owned(),
        },
    }
}

async fn key(config: &KeyConfig, database: &Database, client: &Client) -> Key {
    let place = match &config.current {
        KeySource::File(path) => KeyPlace::File(entry(path)),
        KeySource::Command(words) => KeyPlace::Command(words.join(" ")),
        KeySource::Memory => KeyPlace::Command("memory".to_owned()),
    };
    let opens = match database {
        Database::None => Opens::Nothing,
        Database::Lost | Database::Unusable(_) => Opens::Unknown,
        Database::Held => asked(client).await,
        Database::File(looked) => tried(config, &place, &looked.keys).await,
        Database::Server(looked, _) => tried(config, &place, &looked.database.keys).await,
    };
    Key { place, opens }
}

/// What the server says of its keys.
async fn asked(client: &Client) -> Opens {
    match client.keys().await {
        Ok(view) => match view.closed {
            Some(closed) => Opens::No(Trouble {
                what: format!("{} ({})", closed.detail, closed.code),
                hint: closed.hint,
            }),
            None if view.keys.is_empty() => Opens::Nothing,
            None => Opens::Yes,
        },
        Err(_) => Opens::Unknown,
    }
}

/// Whether the master key opens the data key that is in use.
async fn tried(config: &KeyConfig, place: &KeyPlace, keys: &[Wrapped]) -> Opens {
    let Some(in_use) = keys.first() else {
        return Opens::Nothing;
    };
    if let KeyPlace::File(Entry {
        is: Is::There { mode, .. },
        ..
    }) = place
        && mode & 0o077 != 0
    {
        // Reading it would close it to others, and looking changes nothing.
        return Opens::Unknown;
    }
    let tried = match config.sealer() {
        Ok(sealer) => sealer.admit(in_use).await,
        Err(error) => Err(error),
    };
    match tried {
        Ok(()) => Opens::Yes,
        Err(error) => Opens::No(Trouble {
            what: format!("{error} ({})", error.code()),
            hint: error.hint().into_owned(),
        }),
    }
}

async fn port(listen: SocketAddr) -> Port {
    match TcpListener::bind(listen) {
        Ok(_) => Port::Free,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let url = format!("http://{}", reachable(listen));
            let client = Client::new(&url, None, "default");
            match client {
                Ok(client) if client.health().await.is_ok() => Port::Ours,
                Ok(_) | Err(_) => Port::Taken,
            }
        }
        Err(error) => Port::Refused(error.to_string()),
    }
}

/// Where somebody who listens everywhere can be reached.
pub(super) fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, listen.port())
}

async fn server(client: &Client) -> Server {
    let Health { date } = match client.health().await {
        Ok(health) => health,
        Err(
            error @ (api::client::Error::Foreign { .. }
            | api::client::Error::Problem(_)
            | api::client::Error::Answer { .. }
            | api::client::Error::TooLong { .. }),
        ) => return Server::Foreign(error.to_string()),
        Err(
            api::client::Error::Address { .. }
            | api::client::Error::Token
            | api::client::Error::Unreachable { .. }
            | api::client::Error::Timeout { .. }
            | api::client::Error::Broken { .. }
            | api::client::Error::Ended { .. },
        ) => return Server::Silent,
    };
    let ours = Clock::System.now();
    let unready = client.ready().await.err().map(|error| Trouble {
        what: format!("{error} ({})", error.code()),
        hint: error.hint().unwrap_or_default(),
    });
    Server::Alive {
        clocks: date.map(|theirs| (theirs.timestamp(), ours)),
        unready,
    }
}

/// Clusters of which the server says that it cannot read what is stored. Those are told as errors, so nobody
/// else is asked for.
async fn unread(global: &cli::Global, client: &Client) -> Vec<Trouble> {
    let page = Page::default();
    let projects = match client.projects(&page).await {
        Ok(listed) => listed.items.into_iter().map(|of| of.name).collect(),
        Err(_) => vec![client.project().to_owned()],
    };
    let filter = ClusterFilter {
        manifest: None,
        state: Some(ClusterState::Error),
    };
    let mut unread = Vec::new();
    for project in projects {
        let mut global = global.clone();
        global.project = Some(project.clone());
        let Ok(client) = global.client() else {
            continue;
        };
        let Ok(listed) = client.clusters(&filter, &page).await else {
            continue;
        };
        for head in listed.items {
            let name = head.summary.name;
            let asked = client.cluster(&name).await;
            if let Err(error) = asked
                && UNREADABLE.contains(&error.code())
            {
                unread.push(Trouble {
                    what: format!(
                        "nothing is done to {name} of project {project}: {error} ({})",
                        error.code()
                    ),
                    hint: format!(
                        "`slipway --project {project} cluster recover {name}` sets that aside; nothing else of it is lost"
                    ),
                });
            }
        }
    }
    unread
}

/// Where a tool is, under any of its names.
fn found(tool: &Tool) -> Option<PathBuf> {
    let directories = std::env::var_os("PATH")?;
    let directories: Vec<PathBuf> = std::env::split_paths(&directories).collect();
    let runs = |path: &PathBuf| {
        let found = std::fs::metadata(path);
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let candidates = tool.names.iter().flat_map(|name| {
        let directories = directories.iter();
        directories.map(move |directory| directory.join(name))
    });
    candidates.into_iter().find(runs)
}
