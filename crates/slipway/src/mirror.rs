//! `slipway mirror`: directories of what hosts need, for places without a network.
//!
//! No server is asked: a mirror is made on a machine that reaches the sources, carried over, and
//! used there as a directory, or served by `slipway mirror serve` or any web server.

mod addons;
mod kubernetes;
mod serve;
mod show;

use crate::failure::Failure;
use crate::roles;
use api::Exit;
use hosts::artifacts::mirror::{self, Wish};
use hosts::artifacts::{NotASource, Patience, Source, all_wanted, packages};
use hosts::recipe::package_names;
use show::{Told, Watch};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make and check mirrors: directories of what hosts need, for places without a network
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Group {
    #[command(flatten)]
    Once(Verb),
    Serve(serve::Serve),
}

/// What ends by itself
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Create(Box<Create>),
    Packages(Packages),
    Index(Index),
    Verify(Verify),
    List(List),
}

/// Fetch artifacts into a directory, with an index that vouches for them
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway mirror create --to /media/disk/mirror --from http://mirror.example/slipway
  slipway mirror create --to mirror --from /srv/mirror envoy/1.40.0/linux-amd64/envoy
  slipway mirror create --to mirror --from /srv/mirror --from http://mirror.example deb/
  slipway mirror create --to mirror --kubernetes v1.34.4 --images archives
  slipway mirror create --to mirror --addon flannel --addon longhorn=v1.10.0

Sources are asked in the order in which they stand. What is there already and is good is not
fetched again: to go on after an interruption, give the same command once more. The directory can
be copied, or served by any web server.")]
pub(crate) struct Create {
    /// The directory of the mirror; it is made, or added to
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Where to fetch from: a directory, or an http:// address; may be repeated
    #[arg(long, value_name = "PLACE", required_unless_present_any = ["kubernetes", "addon"], value_parser = source)]
    from: Vec<Source>,
    #[command(flatten)]
    kubernetes: kubernetes::Kubernetes,
    #[command(flatten)]
    addons: addons::Addons,
    /// What to fetch; with a slash at its end, all that the sources list below it [default:
    /// everything that this version of slipway brings to hosts, unless --kubernetes or --addon is
    /// given]
    #[arg(value_name = "NAME")]
    names: Vec<Wish>,
}

/// Collect the packages that hosts need, with all that these need, for the system of this machine
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway mirror packages --to /media/disk/mirror
  slipway serve --mirror /media/disk/mirror

apt downloads them from the package sources of this machine and checks their signatures; nothing
is installed, and root is not needed. They are for hosts of the same distribution, release and
architecture, below deb/DISTRIBUTION-RELEASE/ARCHITECTURE: for hosts of several kinds, run it on a
machine of each kind, into the same mirror. Such hosts then get their packages from the mirror and
do not ask their own sources. To go on after an interruption, or to renew them, give the same
command once more.")]
pub(crate) struct Packages {
    /// The directory of the mirror; it is made, or added to
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

/// Make a mirror of a directory of files: read them all, and write its index anew
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  slipway mirror index /srv/mirror

Each file is an artifact, called by its path from there. Hidden files are left out.")]
pub(crate) struct Index {
    /// The directory with the files
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Read all files of a mirror, and say which are not as its index promises
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway mirror verify /media/disk/mirror")]
pub(crate) struct Verify {
    /// The directory of the mirror
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// List what a mirror holds, or what this version of slipway brings to hosts
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway mirror list
  slipway mirror list /media/disk/mirror
  slipway mirror list http://mirror.example/slipway -o json")]
pub(crate) struct List {
    /// The mirror: a directory, or an http:// address [default: none; what hosts are brought]
    #[arg(value_name = "PLACE", value_parser = source)]
    from: Option<Source>,
}

/// Reads a source from the command line.
fn source(text: &str) -> Result<Source, NotASource> {
    text.parse()
}

/// Runs a verb.
pub(crate) async fn run(verb: Group, global: &cli::Global) -> anyhow::Result<ExitCode> {
    match verb {
        Group::Once(verb) => Box::pin(once(verb, global)).await,
        Group::Serve(arguments) => serve::run(arguments).await,
    }
}

/// Runs a verb until it ends, or until somebody interrupts it.
async fn once(verb: Verb, global: &cli::Global) -> anyhow::Result<ExitCode> {
    let watch = Watch::new();
    let ended = tokio::select! {
        biased;
        stopped = roles::told_to_stop() => stopped.map(|()| None)?,
        // Dropped when it is interrupted: what has come stays where the next one finds it.
        ended = act(verb, &watch) => Some(ended),
    };
    watch.clear();
    let Some(ended) = ended else {
        let again = "interrupted; give the same command again to go on where it ended";
        drop(writeln!(std::io::stderr().lock(), "{again}"));
        return Ok(ExitCode::from(Exit::Interrupted.code()));
    };
    let (told, failure) = ended.map_err(failure)?;
    let exit = failure.as_ref().map_or(Exit::Done, |_| Exit::Failed);
    let shown = cli::show(global, &told, &told.picture(), exit);
    match failure {
        Some(failure) => Err(failure.into()),
        None => Ok(shown),
    }
}

/// Does what was asked; answers what to show, and what did not work.
async fn act(verb: Verb, watch: &Watch) -> Result<(Told, Option<Failure>), hosts::error::Error> {
    let tell = |progress: hosts::artifacts::Progress<'_>| watch.see(progress);
    match verb {
        Verb::Create(create) => {
            let to = create.to;
            let objects = create.addons.lent(&tell).await?;
            let (mut from, mut wishes, lent) = if create.kubernetes.is_wished() {
                let wish = create.kubernetes.wish(create.from, create.names, &tell);
                wish.await?
            } else if objects.is_some() {
                (create.from, create.names, None)
            } else {
                (create.from, wished(create.names), None)
            };
            if let Some(objects) = &objects {
                from.insert(0, objects.source());
                wishes.extend_from_slice(objects.wishes());
            }
            let made = mirror::create(&to, &from, &wishes, Patience::default(), &tell).await?;
            drop((lent, objects));
            let told = Told::made(&to, &made);
            let first = made.failed.into_iter().next().map(|(_, error)| error);
            Ok((told, first.map(failure)))
        }
        Verb::Packages(Packages { to }) => {
            let made = packages::collect(&to, &package_names(), &tell).await?;
            Ok((Told::made(&to, &made), None))
        }
        Verb::Index(Index { directory }) => {
            let found = mirror::index(&directory, &tell).await?;
            let told = Told::found(&directory, &found);
            Ok((told, wrong(&found)))
        }
        Verb::Verify(Verify { directory }) => {
            let found = mirror::verify(&directory, &tell).await?;
            let told = Told::found(&directory, &found);
            Ok((told, wrong(&found)))
        }
        Verb::List(List { from: Some(from) }) => {
            let index = mirror::list(&from, Patience::default()).await?;
            Ok((Told::listed(&from, &index), None))
        }
        Verb::List(List { from: None }) => Ok((Told::wanted(&all_wanted()), None)),
    }
}

/// What to fetch: what was named, or all that hosts are brought.
fn wished(names: Vec<Wish>) -> Vec<Wish> {
    if names.is_empty() {
        all_wanted().into_iter().map(Wish::Named).collect()
    } else {
        names
    }
}

/// The failure that a mirror with wrong files is.
fn wrong(found: &mirror::Found) -> Option<Failure> {
    let (name, why) = found.wrong.first()?;
    let more = match found.wrong.len() {
        1 => String::new(),
        count => format!(", and {} more are wrong", count - 1),
    };
    let kind = hosts::error::Kind::WrongChecksum;
    let what = format!("{name} cannot be used: {why}{more}");
    Some(failure(hosts::error::Error::new(kind, what)))
}

/// An error as the program tells it.
fn failure(error: hosts::error::Error) -> Failure {
    Failure {
        what: error.what,
        code: error.kind.code(),
        hint: error.kind.hint().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hosts::artifacts::{Artifact, Name};

    #[test]
    fn without_names_everything_that_hosts_are_brought_is_fetched() {
        let all = wished(Vec::new());
        assert_eq!(all.len(), hosts::artifacts::pins::PINS.len());
        let name: Name = "a/b".parse().unwrap();
        let named = Wish::Named(Artifact::named(name));
        assert_eq!(wished(vec![named.clone()]), [named]);
    }
}
