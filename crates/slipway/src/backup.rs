//! `slipway backup`: one group for people. `create` asks a server; the others need none.

use crate::failure::failed;
use crate::migrate::told;
use crate::place::{Database, Place};
use api::Exit;
use driver::Clock;
use model::cluster::{Machine, Origin};
use model::provider::Provider;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::{DumpError, Dumped, Store};
use vault::KeyFile;

/// Save the whole installation in a file, and bring it back
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Group {
    Create(cli::BackupCreate),
    Restore(Restore),
    Verify(Verify),
    /// List, take and put back snapshots of the etcd of a cluster
    #[command(
        subcommand,
        after_help = "Examples:\n  slipway backup etcd create edge --wait\n  slipway backup etcd list edge"
    )]
    Etcd(cli::BackupEtcd),
}

/// Put a backup into an empty data directory or database
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway backup restore --from slipway.backup --data-dir /var/lib/slipway
  slipway backup restore --from slipway.backup --database postgres://slipway@db/slipway

No server may run there meanwhile. All of the backup is restored, or nothing. It does not matter
which of the two kinds of database it was taken from.")]
pub(crate) struct Restore {
    /// The file that `slipway backup create` has written
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Look whether it would work, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    database: Database,
}

/// Look whether a backup is whole and as it was written
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway backup verify --from slipway.backup")]
pub(crate) struct Verify {
    /// The file that `slipway backup create` has written
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
}

/// What was found, or done.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    file: String,
    rows: u64,
    taken_at: api::Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_to: Option<String>,
}

impl Told {
    fn of(file: &Path, dumped: &Dumped) -> Self {
        Self {
            file: file.display().to_string(),
            rows: dumped.rows,
            taken_at: dumped.at.into(),
            restored_to: None,
        }
    }
}

/// Reads a backup to its end.
pub(crate) fn verify(arguments: &Verify, global: &cli::Global) -> anyhow::Result<ExitCode> {
    let dumped = verified(&arguments.from)?;
    let told = Told::of(&arguments.from, &dumped);
    let picture = format!(
        "{} is whole: {} rows, taken at {}\n",
        told.file, told.rows, told.taken_at
    );
    Ok(cli::show(global, &told, &picture, Exit::Done))
}

fn verified(file: &Path) -> anyhow::Result<Dumped> {
    Dumped::verified(file).map_err(|error| told(format!("cannot use {}", file.display()), error))
}

/// Restores a backup, and says what is left to do.
pub(crate) async fn restore(arguments: Restore, global: &cli::Global) -> anyhow::Result<ExitCode> {
    let from = &arguments.from;
    let data_dir = global.data_dir()?;
    let place = Place::of(&arguments.database, &data_dir)?;
    // Before anything is made: a backup that cannot be used leaves no trace.
    let dumped = verified(from)?;
    let mut told = Told::of(from, &dumped);
    if arguments.dry_run {
        unused(&place)?;
        let picture = format!(
            "{} is whole and can be restored to {place}: {} rows, taken at {}\n",
            told.file, told.rows, told.taken_at
        );
        return Ok(cli::show(global, &told, &picture, Exit::Done));
    }
    let apart = load(from, &place).await?;
    told.restored_to = Some(place.to_string());
    let picture = format!(
        "{} rows, taken at {}, are restored to {place}\n{}",
        told.rows,
        told.taken_at,
        next(&place, &data_dir, &apart)
    );
    Ok(cli::show(global, &told, &picture, Exit::Done))
}

/// Refuses a place that is in use, without touching it.
fn unused(place: &Place) -> anyhow::Result<()> {
    if place.look()?.is_some_and(|looked| looked.used) {
        let what = format!("cannot restore to {place}");
        return Err(told(what, DumpError::Occupied));
    }
    Ok(())
}

/// What a restored installation needs and no backup holds.
struct Apart {
    /// The key: something is sealed.
    key: bool,
    /// The simulated world: some machines are in it.
    world: bool,
}

/// Loads the backup; answers what is needed besides.
async fn load(from: &Path, place: &Place) -> anyhow::Result<Apart> {
    let store = place.open_or_create()?;
    let restored = store.restore(from, Clock::System.now()).await;
    restored.map_err(|error| told(format!("cannot restore to {place}"), error))?;
    apart(&store).await.map_err(|error| {
        let (code, hint) = (error.code(), error.hint());
        failed(format!("cannot read {place}"), code, hint, error)
    })
}

async fn apart(store: &Store) -> Result<Apart, store::Error> {
    let key = !store.seal_keys().await?.is_empty();
    for cluster in store.live_clusters().await? {
        let view = store.cluster_view(cluster.id).await?;
        if view.is_some_and(|view| view.desired.all().any(is_simulated)) {
            return Ok(Apart { key, world: true });
        }
    }
    Ok(Apart { key, world: false })
}

fn is_simulated(machine: &Machine) -> bool {
    match &machine.origin {
        Origin::Made { via, .. } => match via {
            // Kubernetes on hosts of a sandbox is simulated.
            Provider::Simulated | Provider::Sandbox => true,
            Provider::Cloud(_) => false,
        },
        Origin::Given { .. } => false,
    }
}

/// What is left to do, in order.
fn next(place: &Place, data_dir: &Path, apart: &Apart) -> String {
    let key = data_dir.join(KeyFile::NAME);
    let key = format!(
        "copy the key file of the old installation to {}: nothing else opens what is sealed",
        key.display()
    );
    let world = format!(
        "copy the simulated world of the old installation, once it is at rest, to {}, or name its \
         file with --world: machines of simulated providers are nowhere else",
        data_dir.join(crate::roles::WORLD_FILE).display()
    );
    let serve = match place {
        Place::Directory(directory) => {
            format!("slipway serve --data-dir {}", directory.display())
        }
        Place::Server(..) => format!("slipway serve --database {place}"),
    };
    let steps = [
        apart.key.then_some(key),
        Some(
            "make sure that no server of the old installation runs any more, and that what it had \
             begun has ended"
                .to_owned(),
        ),
        apart.world.then_some(world),
        Some(format!("start a server: {serve}")),
    ];
    let steps = steps.into_iter().flatten().enumerate();
    let steps: String = steps
        .map(|(at, step)| format!("  {}. {step}\n", at + 1))
        .collect();
    format!(
        "{steps}The server looks at every cluster before it goes on with it. Tokens are good as \
         before, and admin.token is made anew.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn what_is_left_to_do_is_said_in_order() {
        let data_dir = Path::new("/var/lib/slipway");
        let directory = Place::Directory(data_dir.to_owned());
        let server = Place::Server("postgres://ann:s3cret@db/slipway".to_owned(), None);
        let needs = |needed| Apart {
            key: needed,
            world: needed,
        };
        let (all, nothing) = (needs(true), needs(false));
        let text = format!(
            "{}--\n{}",
            next(&directory, data_dir, &all),
            next(&server, data_dir, &nothing)
        );
        expect![[r#"
              1. copy the key file of the old installation to /var/lib/slipway/slipway.key: nothing else opens what is sealed
              2. make sure that no server of the old installation runs any more, and that what it had begun has ended
              3. copy the simulated world of the old installation, once it is at rest, to /var/lib/slipway/world.jsonl, or name its file with --world: machines of simulated providers are nowhere else
              4. start a server: slipway serve --data-dir /var/lib/slipway
            The server looks at every cluster before it goes on with it. Tokens are good as before, and admin.token is made anew.
            --
              1. make sure that no server of the old installation runs any more, and that what it had begun has ended
              2. start a server: slipway serve --database postgres://ann@db:5432/slipway
            The server looks at every cluster before it goes on with it. Tokens are good as before, and admin.token is made anew.
        "#]]
        .assert_eq(&text);
    }
}
