//! The way back to a snapshot: all members of etcd are stopped, made anew from it, and started.
//!
//! Every step is taken on all members before the next one begins, because two halves of etcd that
//! know different things must never answer at the same time. Hosts remember how far they are.

use super::saving::WAY_MAX;
use super::{Done, Kube, Trouble, patiently};
use crate::error as api;
use crate::kubeadm::{self, Back};
use crate::snapshot::seal::Sealer;
use crate::snapshot::shelf::unnamed;
use crate::snapshot::{Error, Kind};
use driver::Context;
use futures_util::future::join_all;
use hosts::program::Report;
use hosts::ssh::{Content, Push};
use model::cluster::{Machine, Role};
use model::host::Fingerprint;
use model::observed::Fact;
use model::snapshot::{RestoredFact, Restoring};
use model::task::Task;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// A snapshot in clear, in a file that has no name: when we end, it is gone.
struct Plain {
    file: File,
    sha256: String,
}

impl Plain {
    /// Where the file can be opened again, by ourselves alone.
    fn path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.file.as_raw_fd().to_string())
    }
}

impl Kube {
    /// Puts a snapshot back on all members of etcd.
    pub(super) async fn restore(
        &self,
        cx: &Context,
        task: &Task,
        restoring: &Restoring,
    ) -> Result<Done, Trouble> {
        let members: Vec<_> = restoring.members().collect();
        let looked = self.step(cx, task, restoring, &members, Back::Look).await?;
        let open: Vec<_> = looked.into_iter().filter(|(_, done)| !done).collect();
        let open: Vec<&Machine> = open.into_iter().map(|(member, _)| member).collect();
        if open.is_empty() {
            cx.log(&format!(
                "snapshot {} was put back already",
                restoring.snapshot
            ));
        } else {
            let plain = self.unsealed(cx, task, restoring).await?;
            cx.log(&format!("snapshot {} is whole", restoring.snapshot));
            let bringing = open
                .iter()
                .map(|member| self.brought(cx, task, member, &plain));
            for brought in join_all(bringing).await {
                brought?;
            }
            for step in [Back::Stop, Back::Load, Back::Start] {
                self.step(cx, task, restoring, &open, step).await?;
            }
        }
        self.healthy(cx, task, &members).await?;
        self.kubelets(cx, task, restoring).await?;
        self.step(cx, task, restoring, &members, Back::Clean)
            .await?;
        let restored = Fact::Restored(RestoredFact {
            snapshot: restoring.snapshot.clone(),
            wish: restoring.wish,
        });
        Ok((vec![(cx.now(), restored)], Vec::new()))
    }

    /// Opens a snapshot into a file that has no name.
    async fn unsealed(
        &self,
        cx: &Context,
        task: &Task,
        restoring: &Restoring,
    ) -> Result<Plain, Trouble> {
        let shelf = self.shelf(cx, &restoring.from, task.cluster).await?;
        let kept = shelf.find(&restoring.snapshot).await?;
        let (key, _) = self.snapshot_key(cx, task.cluster).await?;
        let sealer = Sealer::new(&key.value, task.cluster)?;
        let sealed = shelf.open(&kept).await?;
        let plain = unnamed(&self.shelves).map_err(unwritable)?;
        let into = tokio::fs::File::from_std(plain.try_clone().map_err(unwritable)?);
        sealer.open(sealed, into).await?;
        let digested = tokio::task::spawn_blocking(move || digested(plain)).await;
        let digested = digested.map_err(|error| unwritable(std::io::Error::other(error)))?;
        let (file, sha256) = digested.map_err(unwritable)?;
        let plain = Plain { file, sha256 };
        let wanted = restoring.snapshot.as_str().rsplit('-').next();
        if !wanted.is_some_and(|wanted| plain.sha256.starts_with(wanted)) {
            let what = format!("snapshot {} holds something else", restoring.snapshot);
            return Err(Error::new(Kind::Damaged, what).into());
        }
        Ok(plain)
    }

    async fn brought(
        &self,
        cx: &Context,
        task: &Task,
        member: &Machine,
        plain: &Plain,
    ) -> Result<(), Trouble> {
        let (path, to) = (plain.path(), kubeadm::restored_file());
        let push = Push {
            content: Content::File(&path),
            path: &to,
            mode: 0o600,
            sha256: &plain.sha256,
            limit: WAY_MAX,
        };
        self.hosts.push(cx, task.cluster, member, push).await?;
        Ok(())
    }

    /// Takes one step on some members, all at once; answers of each whether it was through before.
    async fn step<'a>(
        &self,
        cx: &Context,
        task: &Task,
        restoring: &Restoring,
        members: &[&'a Machine],
        step: Back,
    ) -> Result<Vec<(&'a Machine, bool)>, Trouble> {
        let all: Vec<_> = restoring.members().collect();
        // With other members it is begun anew: who was loaded knows only those of then.
        let names: Vec<_> = all.iter().map(|member| member.name.as_str()).collect();
        let names = Fingerprint::of_text(&names.join(","));
        let wish = format!("{}-{names}", restoring.wish);
        let steps = members.iter().map(|member| {
            let program = kubeadm::restore(step, (&wish, restoring.lift()), member, &all);
            async move {
                let report = self.visit(cx, task.cluster, member, &program).await?;
                let through = told(step, member, &report)?;
                Ok::<_, Trouble>((*member, through))
            }
        });
        join_all(steps).await.into_iter().collect()
    }

    /// Waits until every member of etcd and every API answers.
    async fn healthy(
        &self,
        cx: &Context,
        task: &Task,
        members: &[&Machine],
    ) -> Result<(), Trouble> {
        let kubeconfig = self.kept(cx, task.cluster).await?;
        for member in members {
            self.answers(cx, task.cluster, member, &kubeconfig).await?;
        }
        let Some(first) = members.first() else {
            return Ok(());
        };
        let (asked, program) = (*first, &kubeadm::members(None));
        let look = || async {
            let report = self.hosts.visit(cx, task.cluster, asked, program);
            let report = report.await.map_err(|error| {
                let what = format!("could not ask etcd on {}: {error}", asked.name);
                api::Error::new(api::Kind::NotReady, what)
            })?;
            let seen = kubeadm::told_members(&report).unwrap_or_default();
            let healthy = |name: &str| seen.iter().any(|seen| seen.healthy && seen.name == name);
            let well = members
                .iter()
                .filter(|member| healthy(member.name.as_str()));
            let well = well.count();
            Ok(if well == members.len() {
                Ok(())
            } else {
                Err(format!("{well} of {} members are healthy", members.len()))
            })
        };
        patiently(cx, "etcd", look).await
    }

    /// Nodes that know a later time look at the API anew.
    async fn kubelets(
        &self,
        cx: &Context,
        task: &Task,
        restoring: &Restoring,
    ) -> Result<(), Trouble> {
        let program = kubeadm::restart_kubelet(&restoring.wish.to_string());
        let workers = restoring.nodes.iter();
        let workers = workers.filter(|node| node.role == Role::Compute);
        let visits = workers.map(|node| self.visit(cx, task.cluster, node, &program));
        for report in join_all(visits).await {
            report?;
        }
        Ok(())
    }
}

/// How a step ended on a member; whether that was through all steps already.
fn told(step: Back, member: &Machine, report: &Report) -> Result<bool, Error> {
    let last = report.tail.last().map_or("nothing more", String::as_str);
    let told = report.fact("restore").unwrap_or("unknown");
    let kind = match told {
        "done" => return Ok(true),
        "open" => return Ok(false),
        word if word == step.as_str() => return Ok(false),
        "no-room" => Kind::NoRoom,
        "damaged" => Kind::Damaged,
        _ => Kind::Unrestored,
    };
    let (name, step) = (&member.name, step.as_str());
    let what = format!("could not {step} etcd on {name} ({told}): {last}");
    Err(Error::new(kind, what))
}

/// The SHA-256 of a file from its beginning.
fn digested(mut file: File) -> std::io::Result<(File, String)> {
    file.rewind()?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; 256 * 1024];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            read => hash.update(&piece[..read]),
        }
    }
    let digest = hash.finalize();
    let digits = digest.iter().map(|byte| format!("{byte:02x}"));
    Ok((file, digits.collect()))
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
fn unwritable(error: std::io::Error) -> Error {
    let what = format!("could not open the snapshot into a file: {error}");
    Error::new(Kind::Unwritable, what)
}
