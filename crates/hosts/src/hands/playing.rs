//! Playbooks of manifests: which a host has yet to see, and playing them.

use super::entry::Entry;
use super::{Hosts, TAKE_MAX, stopped};
use crate::error::{Error, Kind};
use crate::playbook;
use crate::recipe::{self, Looked};
use driver::Context;
use model::host::{Playbook, Recipe};
use model::task::Task;

impl Hosts {
    /// The playbooks that are to be played on a host; an error where nobody allowed that.
    pub(super) fn due<'a>(
        &self,
        cx: &Context,
        task: &Task,
        recipe: &'a Recipe,
        looked: &Looked,
    ) -> Result<Vec<&'a Playbook>, Error> {
        let due = playbook::due(&recipe.playbooks, &looked.facts);
        for played in recipe.playbooks.iter().filter(|one| !due.contains(one)) {
            cx.log(&format!("{}: unchanged, it was played before", played.name));
        }
        if !due.is_empty() && !self.inner.playbooks {
            let what = format!("{} has playbooks to play", task.machine.name);
            return Err(Error::new(Kind::PlaybooksOff, what));
        }
        Ok(due)
    }

    /// Plays playbooks on a host, one after the other; it remembers each that went well.
    pub(super) async fn play(
        &self,
        cx: &Context,
        task: &Task,
        entry: &Entry<'_>,
        due: &[&Playbook],
    ) -> Result<(), Error> {
        let turn = tokio::select! {
            biased;
            () = cx.cancelled() => return Err(stopped()),
            turn = self.inner.plays.acquire() => turn,
        };
        let opened = entry.opened(&entry.door).await?;
        let front = match &entry.door.jump {
            Some(jump) => Some(entry.opened(jump).await?),
            None => None,
        };
        let scene = playbook::Scene {
            host: opened,
            front,
            machine: &task.machine,
            cluster: &task.cluster_name,
            path: &self.path,
        };
        let log = |line: &str| cx.log(line);
        for playbook in due {
            let name = &playbook.name;
            cx.log(&format!("playing {name}"));
            let playing = playbook::play(&scene, playbook, &log, cx.cancelled());
            match Box::pin(playing).await? {
                Some(recap) => cx.log(&format!(
                    "{name}: {} changed, {} unchanged",
                    recap.changed, recap.unchanged
                )),
                None => cx.log(&format!("{name}: Ansible counted nothing on this host")),
            }
            let item = [playbook::remembered(playbook)];
            let program = recipe::render(&item, name.as_str(), TAKE_MAX);
            self.told(cx, entry, name.as_str(), &program).await?;
        }
        drop(turn);
        Ok(())
    }
}
