//! `slipway audit`: what was done, by whom, and whether the record is as it was written.

use super::get::list;
use crate::context::Context;
use crate::error::Error;
use crate::view;
use api::audit::Verifier;
use api::client::{Client, Page};
use api::page::LIMIT_MAX;
use api::{Exit, Listed, Verification};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// More than any entry has; a longer line is something else.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Verbs about the audit chain.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// List what was done, newest first
    List(ListArguments),
    /// Walk along the chain and name the first entry that is not as it was written
    Verify(Verify),
    /// Write the chain as lines of JSON, oldest first
    Export(Export),
}

/// Arguments of `slipway audit list`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  slipway audit list --limit 20\n  slipway audit list --project lab -o json"
)]
pub struct ListArguments {
    /// So many entries at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Arguments of `slipway audit verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway audit verify
  slipway audit export --to audit.jsonl && slipway audit verify --file audit.jsonl

Without --file the server verifies its own chain. With it no server is asked: the digests are
computed here. Keep the last digest elsewhere: it shows whether the whole chain was written anew.")]
pub struct Verify {
    /// An export; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Arguments of `slipway audit export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway audit export --to audit.jsonl
  slipway audit export | jq -r .actor | sort | uniq -c

With --project only the entries of that project are written: no chain, and not to be verified.")]
pub struct Export {
    /// The file [default: standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub(crate) async fn run(verb: Verb, context: &mut Context<'_>) -> Result<Exit, Error> {
    match verb {
        Verb::List(ListArguments { limit }) => {
            let project = context.global().project.clone();
            let client = context.client()?;
            let listed = newest(&client, project.as_deref(), limit).await?;
            list(&listed, "entries", view::audit, context)?;
        }
        Verb::Verify(Verify { file }) => {
            if context.global().project.is_some() {
                context.out().say(
                    "--project changes nothing here: the whole chain is verified, of all projects",
                );
            }
            let (found, part) = match &file {
                Some(file) => verify(file)?,
                None => (context.client()?.verify_audit().await?, false),
            };
            tell(found, part, context)?;
        }
        Verb::Export(Export { to }) => export(to.as_deref(), context).await?,
    }
    Ok(Exit::Done)
}

/// The newest entries, page by page, as many as were asked for.
async fn newest(
    client: &Client,
    project: Option<&str>,
    limit: u32,
) -> Result<Listed<api::AuditView>, Error> {
    let mut left = limit;
    let mut page = Page::default();
    let mut items = Vec::new();
    while left > 0 {
        page.limit = Some(left.min(LIMIT_MAX));
        let listed = client.audit(project, &page).await?;
        left = left.saturating_sub(u32::try_from(listed.items.len()).unwrap_or(left));
        let stands_still = listed.items.is_empty();
        items.extend(listed.items);
        if listed.next.is_none() || stands_still {
            break;
        }
        page.cursor = listed.next;
    }
    Ok(Listed { items, next: None })
}

/// Shows what was found; a chain that is broken is a failure that names the entry.
fn tell(found: Verification, part: bool, context: &mut Context<'_>) -> Result<(), Error> {
    context.show(&found, |_| {
        let Verification {
            intact,
            entries,
            head,
            broken: _,
        } = &found;
        match entries {
            0 if *intact => "there are no entries\n".to_owned(),
            0 => "no entry is as it was written\n".to_owned(),
            1 => format!("1 entry is as it was written, with the digest {head}\n"),
            _ => format!("{entries} entries are as they were written, up to the digest {head}\n"),
        }
    })?;
    match found.broken {
        None => Ok(()),
        Some(broken) => Err(Error::Broken {
            seq: broken.seq,
            reason: broken.reason,
            part,
        }),
    }
}

/// Verifies an export, without a server; answers also whether all of it that was read is about
/// one project.
fn verify(file: &Path) -> Result<(Verification, bool), Error> {
    let unreadable = |cause: io::Error| {
        let file = file.to_owned();
        if cause.kind() == io::ErrorKind::NotFound {
            Error::NoFile { file }
        } else if cause.kind() == io::ErrorKind::IsADirectory {
            Error::Directory { file }
        } else {
            Error::Unreadable { file, cause }
        }
    };
    let walked = if file == Path::new("-") {
        walk(io::stdin().lock())
    } else {
        File::open(file).and_then(|opened| walk(BufReader::new(opened)))
    };
    let (found, part) = walked.map_err(unreadable)?;
    if found.intact && found.entries == 0 {
        return Err(Error::NoEntries {
            file: file.to_owned(),
        });
    }
    Ok((found, part))
}

/// Walks along the lines; an export may be larger than the memory.
fn walk(mut lines: impl BufRead) -> io::Result<(Verification, bool)> {
    let mut verifier = Verifier::default();
    let mut projects = BTreeSet::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = lines
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)?;
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        // What is not text is no entry either, and is told as such.
        let text = String::from_utf8_lossy(&line);
        let entry = serde_json::from_str::<api::AuditView>(&text);
        projects.extend(entry.map(|entry| entry.project));
        if read == 0 || !verifier.line(&text) {
            // The first entries of a whole chain are about the installation.
            let part = projects.len() == 1 && !projects.contains(&None);
            return Ok((verifier.end(), part));
        }
    }
}

/// Writes the chain as it comes; a file gets its name when it is whole.
async fn export(to: Option<&Path>, context: &mut Context<'_>) -> Result<(), Error> {
    let project = context.global().project.clone();
    let client = context.client()?;
    let mut file = to.map(beside).transpose()?;
    let mut export = client.export_audit(project.as_deref()).await?;
    let mut entries = 0;
    while let Some(piece) = export.next().await? {
        entries += piece.split(|byte| *byte == b'\n').count() - 1;
        match &mut file {
            Some((file, to)) => file.write_all(&piece).map_err(unwritten(to))?,
            None => context.out().bytes(&piece)?,
        }
    }
    let Some((file, to)) = file else {
        return Ok(());
    };
    file.as_file().sync_all().map_err(unwritten(to))?;
    let kept = file.persist(to).map_err(|unkept| unkept.error);
    kept.map(drop).map_err(unwritten(to))?;
    let entries = crate::table::count(entries, "line");
    context
        .out()
        .say(&format!("wrote {entries} to {}", to.display()));
    Ok(())
}

/// A file beside the one that shall be written: nobody takes half an export for a whole one.
pub(super) fn beside(to: &Path) -> Result<(NamedTempFile, &Path), Error> {
    let directory = match to.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    if to.is_dir() {
        return Err(Error::Directory {
            file: to.to_owned(),
        });
    }
    let made = NamedTempFile::new_in(directory).map_err(unwritten(to))?;
    Ok((made, to))
}

pub(super) fn unwritten(to: &Path) -> impl Fn(io::Error) -> Error {
    |cause| Error::Unwritten {
        file: to.to_owned(),
        cause,
    }
}
