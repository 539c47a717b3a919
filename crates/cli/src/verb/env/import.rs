//! `slipway env import`: environments of another system, taken over as they are.
//!
//! How that system is read is somebody else's matter ([`Elsewhere`]); here people see what would be
//! taken, say yes, and see how far it is.

use crate::context::{self, Context};
use crate::error::Error;
use crate::table::{Table, count, plain};
use crate::verb::backup;
use crate::view::ago;
use api::environment::{IMPORT_MAX, KeyLevels, ValueLevels};
use api::secret::Secret;
use api::{
    EnvironmentStatus, Exit, ImportEnvironment, ImportOutcome, ImportRequest, ImportedView, Time,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `slipway env import`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway env import --octopod postgresql://octopod@db.example.org/octopod --dry-run
  slipway env import --octopod postgresql://octopod@localhost:5433/octopod --password-file octopod.pass
  slipway env import --octopod postgresql://octopod@localhost:5433/octopod --project shop --yes

The old database is only read. What would be taken over is shown first: environments with their
status, edits, links, dates and log, and what cannot be taken and why. No script is run: they are there
already, and are looked at from then on. Once more changes nothing, and what broke off goes on. Stop
Octopod before, so that nobody looks after the same environments twice.

The password is read from --password-file, PGPASSWORD or ~/.pgpass, or asked for.")]
pub struct Import {
    /// The PostgreSQL of an Octopod: postgresql://USER@HOST:PORT/DATABASE
    #[arg(long, value_name = "URL")]
    pub octopod: String,

    /// A file with the password for it
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,

    /// Show what would be taken over, and take nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

/// Where environments are taken over from.
pub trait Elsewhere {
    /// Opens it, with a password where one was asked for, and tells all that there is.
    fn open(
        &mut self,
        password: Option<&Secret>,
    ) -> impl Future<Output = Result<Offer, Unread>> + Send;

    /// The next piece of an environment that is wanted, with some of its log; nothing after the
    /// last. Pieces of one environment follow each other.
    fn next(
        &mut self,
        wanted: &BTreeSet<String>,
    ) -> impl Future<Output = Result<Option<ImportEnvironment>, Unread>> + Send;

    /// What could not be taken of the pieces so far.
    fn left(&mut self) -> Vec<Left>;
}

/// Why it could not be read.
#[derive(Debug)]
pub struct Unread {
    /// What was attempted, and why it failed.
    pub what: String,
    /// The stable code.
    pub code: &'static str,
    /// What to do.
    pub hint: String,
    /// Whether a password may help.
    pub denied: bool,
}

impl From<Unread> for Error {
    fn from(unread: Unread) -> Self {
        let Unread {
            what,
            code,
            hint,
            denied: _,
        } = unread;
        Self::Elsewhere { what, code, hint }
    }
}

/// All that there is to be taken over.
#[derive(Debug, Default)]
pub struct Offer {
    /// Where, as it may be shown.
    pub from: String,
    /// The environments, without their logs.
    pub environments: Vec<ImportEnvironment>,
    /// How many entries the log of each has, by name.
    pub entries: BTreeMap<String, usize>,
    /// What cannot be taken.
    pub left: Vec<Left>,
}

/// Something that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// What is, or was, taken over, for programs.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    from: String,
    dry_run: bool,
    environments: Vec<ImportedView>,
    left: Vec<Left>,
}

/// Bytes of a request: the server reads no more than a mebibyte.
const BYTES_MAX: usize = 900 * 1024;

/// Rows of a plan that people read; programs get all of them.
const SHOWN_MAX: usize = 40;

/// Prints while environments are taken over.
const TAKING: &str = "{bar:30} {pos}/{len} environments  {elapsed_precise}";

/// How often the clock beside the bar moves.
const TICK: Duration = Duration::from_millis(250);

pub(crate) async fn run(
    arguments: Import,
    mut elsewhere: impl Elsewhere,
    context: &mut Context<'_>,
) -> Result<Exit, Error> {
    let offer = open(&mut elsewhere, context).await?;
    if offer.environments.is_empty() {
        let left = told(&offer.left);
        context.out().complain(&left);
        return Err(Error::Elsewhere {
            what: format!("there is nothing to take over from {}", offer.from),
            code: "IMPORT-003",
            hint:
                "is it the right database? `SELECT name, status FROM deployments` shows what it has"
                    .to_owned(),
        });
    }
    let client = context.client()?;
    let settings = client.environment_settings().await?.settings;
    let judged = judged(&client, &offer).await?;
    let retention = settings
        .retention_seconds
        .map(|seconds| Duration::from_secs(seconds.into()));
    let plan = planned(&offer, &judged, retention, Time::now());
    if arguments.dry_run {
        let report = Report {
            from: offer.from,
            dry_run: true,
            environments: judged,
            left: offer.left,
        };
        context.show(&report, |_| plan)?;
        return Ok(Exit::Done);
    }
    context.out().complain(&plan);
    let wanted = wanted(&judged);
    if !arguments.yes && !wanted.is_empty() && !sure(wanted.len(), context)? {
        return Ok(Exit::Failed);
    }
    let bar = bar(wanted.len(), context.out().live());
    let taken = tokio::select! {
        biased;
        () = backup::interrupted() => None,
        taken = take(&client, &mut elsewhere, &wanted, &bar) => Some(taken),
    };
    bar.finish_and_clear();
    let Some(taken) = taken else {
        let goes_on = "interrupted; what was taken over stays, and the same again goes on";
        context.out().say(goes_on);
        return Ok(Exit::Interrupted);
    };
    let taken = taken?.into_iter();
    let others = judged.into_iter();
    let others = others.filter(|view| !wanted.contains(&view.name));
    let report = Report {
        from: offer.from,
        dry_run: false,
        environments: taken.chain(others).collect(),
        left: offer.left.into_iter().chain(elsewhere.left()).collect(),
    };
    context.show(&report, |_| done(&report))?;
    Ok(Exit::Done)
}

/// What would become of each, in the words of the server, with how much log it has.
async fn judged(client: &api::Client, offer: &Offer) -> Result<Vec<ImportedView>, Error> {
    let mut judged = Vec::with_capacity(offer.environments.len());
    for piece in offer.environments.chunks(IMPORT_MAX) {
        // What they are configured with plays no part, and might be too much for one request.
        let bare = |one: &ImportEnvironment| ImportEnvironment {
            set: ValueLevels::default(),
            remove: KeyLevels::default(),
            links: Vec::new(),
            actions: Vec::new(),
            ..one.clone()
        };
        let environments = piece.iter().map(bare).collect();
        let request = ImportRequest { environments };
        let answer = client.import_environments(&request, true).await?;
        judged.extend(answer.environments);
    }
    let taken = judged.iter_mut();
    for view in taken.filter(|view| view.outcome == ImportOutcome::Taken) {
        let entries = offer.entries.get(&view.name).copied().unwrap_or(0);
        view.actions = u32::try_from(entries).unwrap_or(u32::MAX);
    }
    Ok(judged)
}

/// Those that come, and those of which more of the log may come.
fn wanted(judged: &[ImportedView]) -> BTreeSet<String> {
    let comes =
        |view: &&ImportedView| matches!(view.outcome, ImportOutcome::Taken | ImportOutcome::Known);
    let judged = judged.iter().filter(comes);
    judged.map(|view| view.name.clone()).collect()
}

/// Opens it; somebody who is there is asked for a password where that may help.
async fn open(elsewhere: &mut impl Elsewhere, context: &mut Context<'_>) -> Result<Offer, Error> {
    let denied = match elsewhere.open(None).await {
        Ok(offer) => return Ok(offer),
        Err(unread) if unread.denied => unread,
        Err(unread) => return Err(unread.into()),
    };
    let Some(answer) = context.out().ask_unseen("password of the database: ") else {
        return Err(denied.into());
    };
    let password = Secret::from_text(answer?);
    Ok(elsewhere.open(Some(&password)).await?)
}

fn sure(many: usize, context: &mut Context<'_>) -> Result<bool, Error> {
    let question = format!("take over {}?", count(many, "environment"));
    match context.out().ask(&question) {
        Some(true) => Ok(true),
        Some(false) => {
            context.out().say("nothing was taken over");
            Ok(false)
        }
        None => Err(Error::Usage {
            what: "taking over needs a yes, and nobody is here to give it".to_owned(),
            hint: "say it with --yes, or look only with --dry-run".to_owned(),
        }),
    }
}

/// Hands over all that is wanted, in requests as large as the server takes.
async fn take(
    client: &api::Client,
    elsewhere: &mut impl Elsewhere,
    wanted: &BTreeSet<String>,
    bar: &ProgressBar,
) -> Result<Vec<ImportedView>, Error> {
    let mut became: BTreeMap<String, ImportedView> = BTreeMap::new();
    let mut request = ImportRequest::default();
    let mut bytes = 0;
    loop {
        let piece = elsewhere.next(wanted).await?;
        let size = match &piece {
            Some(piece) => context::json(piece)?.len(),
            None => 0,
        };
        let full = request.environments.len() >= IMPORT_MAX || bytes + size > BYTES_MAX;
        if !request.environments.is_empty() && (full || piece.is_none()) {
            let answer = client.import_environments(&request, false).await?;
            for view in answer.environments {
                let known = became.entry(view.name.clone());
                let actions = view.actions;
                known
                    .and_modify(|before| before.actions += actions)
                    .or_insert(view);
            }
            bar.set_position(u64::try_from(became.len()).unwrap_or(0));
            request.environments.clear();
            bytes = 0;
        }
        match piece {
            Some(piece) => request.environments.push(piece),
            None => return Ok(became.into_values().collect()),
        }
        bytes += size;
    }
}

/// What would be taken over, for people.
fn planned(
    offer: &Offer,
    judged: &[ImportedView],
    retention: Option<Duration>,
    now: Time,
) -> String {
    let mut table = Table::new([
        "NAME", "STATUS", "EDITS", "REMOVED", "LOG", "ARCHIVED", "BECOMES",
    ]);
    let rows = offer.environments.iter().zip(judged);
    for (one, view) in rows.clone().take(SHOWN_MAX) {
        let (set, removed) = edits(one);
        let rests = one.status == EnvironmentStatus::Archived;
        let archived = one.archived_at.filter(|_| rests).map(|at| ago(at, now));
        table.row([
            plain(&one.name),
            one.status.to_string(),
            set.to_string(),
            removed.to_string(),
            offer
                .entries
                .get(&one.name)
                .copied()
                .unwrap_or(0)
                .to_string(),
            archived.unwrap_or_else(|| "-".to_owned()),
            view.outcome.as_str().to_owned(),
        ]);
    }
    let mut text = format!("from {}\n\n{}", plain(&offer.from), table.render());
    if judged.len() > SHOWN_MAX {
        let more = judged.len() - SHOWN_MAX;
        text.push_str(&format!(
            "… and {more} more; `--dry-run -o json` lists all\n"
        ));
    }
    text.push('\n');
    text.push_str(&summed(offer, judged));
    let overdue = rows.filter(|(one, view)| {
        let rested = one.archived_at.map(|at| at.age(now));
        view.outcome == ImportOutcome::Taken
            && one.status == EnvironmentStatus::Archived
            && rested
                .zip(retention)
                .is_some_and(|(rested, most)| rested > most)
    });
    let overdue = overdue.count();
    if overdue > 0 {
        let most = retention.map(api::time::brief).unwrap_or_default();
        text.push_str(&format!(
            "attention: {} archived for longer than the {most} of this project and will be cleaned up soon: `slipway env settings set --retention` gives them time\n",
            if overdue == 1 { "1 is".to_owned() } else { format!("{overdue} are") }
        ));
    }
    text.push_str(&told(&offer.left));
    text
}

/// How many there are of what, in sentences.
fn summed(offer: &Offer, judged: &[ImportedView]) -> String {
    let mut text = String::new();
    let mut statuses: BTreeMap<EnvironmentStatus, usize> = BTreeMap::new();
    let (mut set, mut removed, mut entries) = (0, 0, 0);
    let mut others: BTreeMap<String, usize> = BTreeMap::new();
    for (one, view) in offer.environments.iter().zip(judged) {
        if view.outcome == ImportOutcome::Taken {
            *statuses.entry(one.status).or_default() += 1;
            let (more, less) = edits(one);
            set += more;
            removed += less;
            entries += offer.entries.get(&one.name).copied().unwrap_or(0);
        } else {
            let because = view.because.clone().unwrap_or_default();
            *others.entry(because).or_default() += 1;
        }
    }
    let many: usize = statuses.values().sum();
    let how: Vec<_> = statuses
        .iter()
        .map(|(status, many)| format!("{many} {status}"))
        .collect();
    let colon = if how.is_empty() { "" } else { ": " };
    text.push_str(&format!(
        "{} to take over{colon}{}\n",
        count(many, "environment"),
        how.join(", ")
    ));
    if many > 0 {
        text.push_str(&format!(
            "{} and {removed} removed, {} of their logs; no script is run\n",
            count(set, "edit"),
            if entries == 1 {
                "1 entry".to_owned()
            } else {
                format!("{entries} entries")
            }
        ));
    }
    for (because, many) in others {
        text.push_str(&format!(
            "{} skipped: {}\n",
            count(many, "environment"),
            plain(&because)
        ));
    }
    text
}

/// How many settings have a value, and how many are left out.
fn edits(one: &ImportEnvironment) -> (usize, usize) {
    let set = one.set.application.len() + one.set.deployment.len();
    let removed = one.remove.application.len() + one.remove.deployment.len();
    (set, removed)
}

/// What cannot be taken, for people.
fn told(left: &[Left]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let mut text = "cannot be taken:\n".to_owned();
    for Left { what, why } in left.iter().take(SHOWN_MAX) {
        text.push_str(&format!("  {}: {}\n", plain(what), plain(why)));
    }
    if left.len() > SHOWN_MAX {
        let more = left.len() - SHOWN_MAX;
        text.push_str(&format!("  … and {more} more; `-o json` lists all\n"));
    }
    text
}

/// What was taken over, for people.
fn done(report: &Report) -> String {
    let of = |outcome| {
        let views = report.environments.iter();
        views.filter(|view| view.outcome == outcome).count()
    };
    let (taken, known) = (of(ImportOutcome::Taken), of(ImportOutcome::Known));
    let entries: u32 = report.environments.iter().map(|view| view.actions).sum();
    let entries = if entries == 1 {
        "1 entry".to_owned()
    } else {
        format!("{entries} entries")
    };
    let mut text = format!(
        "{} taken over, with {entries} of logs\n",
        count(taken, "environment")
    );
    if known > 0 {
        text.push_str(&format!("{known} had been taken over before\n"));
    }
    let skipped = report.environments.len() - taken - known;
    if skipped > 0 {
        text.push_str(&format!("{skipped} skipped\n"));
    }
    text.push_str(&told(&report.left));
    text
}

/// A bar on a terminal; nothing elsewhere.
fn bar(many: usize, live: bool) -> ProgressBar {
    let style = ProgressStyle::with_template(TAKING);
    let bar = ProgressBar::new(u64::try_from(many).unwrap_or(0))
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    if live {
        bar.enable_steady_tick(TICK);
    } else {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar
}
