//! Whose a host is: what it keeps of that, and what it means for us.
//!
//! A host that is taken into use is told the machine that it is, and a mark of the cluster: the
//! fingerprint of the cluster's own key, which no other installation has. Names are the same in
//! many places; this is not.

use super::entry::unopened;
use super::{Hosts, SSH_KEY, entry_name};
use crate::error::{Error, Kind};
use crate::recipe::Looked;
use crate::recipe::item::Item;
use crate::ssh;
use driver::Context;
use model::host::Fingerprint;
use model::sealed::Owner;
use model::task::Task;

/// Says on a host whose it is; gone when it is given back.
pub(super) const FILE: &str = "/etc/slipway/machine";

/// Whose a host is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whose {
    /// Nobody has said.
    Nobodys,
    /// It is this machine.
    Ours,
    /// It is another machine of this cluster, which was given up: an address has one machine.
    Former,
    /// Somebody else's, as they said.
    Foreign(String),
}

/// What we call ourselves on a host.
pub(super) struct Claim {
    id: String,
    mark: Option<Fingerprint>,
}

impl Claim {
    /// What tells a host whose it is.
    pub(super) fn item(&self) -> Item {
        let mark = self.mark.as_ref().map(|mark| format!(" {mark}"));
        let text = format!("{}{}\n", self.id, mark.unwrap_or_default());
        Item::file(FILE, text)
    }

    /// Whose a host is, by what it says.
    pub(super) fn whose(&self, said: Option<&str>) -> Whose {
        let Some(said) = said else {
            return Whose::Nobodys;
        };
        let mut words = said.split_whitespace();
        let (id, mark) = (words.next(), words.next());
        let same = id == Some(self.id.as_str());
        let marked = match (mark, &self.mark) {
            (Some(theirs), Some(ours)) => Some(theirs == ours.as_str()),
            (Some(_), None) | (None, _) => None,
        };
        match (marked, same) {
            (Some(true) | None, true) => Whose::Ours,
            (Some(true), false) => Whose::Former,
            (Some(false), _) | (None, false) => Whose::Foreign(said.to_owned()),
        }
    }

    /// The same, where a host of somebody else's is not touched.
    pub(super) fn not_foreign(&self, looked: &Looked, at: &ssh::Door) -> Result<(), Error> {
        match self.whose(looked.owner()) {
            Whose::Nobodys | Whose::Ours | Whose::Former => Ok(()),
            Whose::Foreign(owner) => {
                let what = format!("{at} belongs to {owner}, as {FILE} says there");
                Err(Error::new(Kind::Foreign, what))
            }
        }
    }
}

impl Hosts {
    /// What the machine of a task calls itself.
    pub(super) async fn claim(&self, cx: &Context, task: &Task) -> Result<Claim, Error> {
        let owner = Owner::Cluster(task.cluster);
        let kept = cx.kept(&owner, &entry_name(SSH_KEY)?).await;
        let public = match kept.map_err(unopened)? {
            Some(key) => Some(ssh::public_half(&key)?),
            None => None,
        };
        Ok(Claim {
            id: task.machine.id.to_string(),
            mark: public.map(|public| Fingerprint::of_text(&public)),
        })
    }
}

impl Looked {
    /// Whose the host says it is.
    pub(super) fn owner(&self) -> Option<&str> {
        let owner = self.facts.get("owner").map(String::as_str);
        owner.filter(|owner| !owner.is_empty())
    }

    /// The machine that the host says it is.
    pub(super) fn machine(&self) -> Option<&str> {
        self.owner()?.split_whitespace().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_alone_do_not_make_a_host_ours() {
        let claim = |id: &str, key: Option<&str>| Claim {
            id: id.to_owned(),
            mark: key.map(Fingerprint::of_text),
        };
        let (ours, mark) = (claim("m-1", Some("a")), Fingerprint::of_text("a"));
        assert_eq!(ours.item(), Item::file(FILE, format!("m-1 {mark}\n")));
        assert_eq!(ours.whose(None), Whose::Nobodys);
        assert_eq!(ours.whose(Some(&format!("m-1 {mark}"))), Whose::Ours);
        assert_eq!(ours.whose(Some(&format!("m-0 {mark}"))), Whose::Former);
        let theirs = format!("m-1 {}", Fingerprint::of_text("b"));
        assert_eq!(ours.whose(Some(&theirs)), Whose::Foreign(theirs.clone()));
        // As it was written before there were marks.
        assert_eq!(ours.whose(Some("m-1")), Whose::Ours);
        assert_eq!(ours.whose(Some("m-2")), Whose::Foreign("m-2".to_owned()));
    }
}
