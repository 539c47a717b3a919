//! Images that were pushed to a host as archives, and become the container runtime's.
//!
//! A host remembers of each archive its SHA-256 and the references that it brought. It is imported
//! again when it is another one, or when one of its images is gone; pinned images are spared when
//! the kubelet makes room.

use crate::program::{Program, quoted};
use crate::recipe::item::Item;
use crate::recipe::render;
use model::version::Version;
use std::time::Duration;

/// Below which everything of Kubernetes lies that was pushed to a host; as long as it is there the
/// host has to be rid of Kubernetes before it is given back.
pub(crate) const STAGED: &str = "/var/lib/slipway/kubernetes";

/// How long a host may take to say which images it has.
const LOOK_MAX: Duration = Duration::from_mins(2);

/// How long it may take to import one.
const IMPORT_MAX: Duration = Duration::from_mins(15);

/// Where the programs of a version are pushed to.
pub fn staged(version: Version) -> String {
    format!("{STAGED}/{version}")
}

/// An image archive of a version of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Archive<'a> {
    /// Of what: a version of Kubernetes, or of an add-on.
    pub of: &'a str,
    /// What it is called.
    pub name: &'a str,
    /// What is in it.
    pub sha256: &'a str,
}

impl Archive<'_> {
    /// Where it is pushed to, if it is to be imported.
    pub fn path(&self) -> String {
        format!("{}.tar", self.memory())
    }

    /// Where the host remembers it.
    fn memory(&self) -> String {
        format!("{STAGED}/{}/images/{}", self.of, self.name)
    }

    /// Holds, in a shell of its own, when all it brought is there.
    fn there(&self) -> String {
        format!(
            "m={}\n{{ read -r sum refs <\"$m\" && [ \"$sum\" = {} ] && [ -n \"$refs\" ]; }} || exit 1\n\
             have=$sw_line$(timeout 60 ctr -n k8s.io images ls -q)$sw_line\n\
             for one in $refs; do case $have in *\"$sw_line$one$sw_line\"*) ;; *) exit 1 ;; esac; done\n",
            quoted(&self.memory()),
            quoted(self.sha256),
        )
    }

    fn item(&self) -> Item {
        let (memory, sha256) = (quoted(&self.memory()), quoted(self.sha256));
        Item::Command {
            name: format!("image {} of {}", self.name, self.of),
            unless: self.there(),
            run: format!("m={memory}\nsum={sha256}\n{IMPORT}"),
        }
    }
}

/// The names of its images stand in the archive. It goes before it is remembered: who dies in
/// between pushes it once more, and leaves nothing.
const IMPORT: &str = r#"text=$(tar -xOf "$m.tar" --no-anchored index.json manifest.json 2>/dev/null | tr -d '\n')
refs=$({
    printf '%s' "$text" | grep -oE '"(io\.containerd\.image\.name|org\.opencontainers\.image\.ref\.name)"[[:space:]]*:[[:space:]]*"[^"]*"'
    printf '%s' "$text" | grep -oE '"RepoTags"[[:space:]]*:[[:space:]]*\[[^]]*\]' | grep -oE '"[^"]*"'
} | sed -E 's/.*"([^"]*)"$/\1/' | grep / | sort -u)
[ -n "$refs" ] || sw_fail HOST-010 "the archive $m.tar names no image"
timeout 600 ctr -n k8s.io images import "$m.tar" || exit 1
have=$sw_line$(timeout 60 ctr -n k8s.io images ls -q)$sw_line
for one in $refs; do
    case $have in
    *"$sw_line$one$sw_line"*) ;;
    *) sw_fail HOST-010 "the archive $m.tar did not bring $one" ;;
    esac
    timeout 60 ctr -n k8s.io images label "$one" io.cri-containerd.pinned=pinned >/dev/null || exit 1
    sum="$sum $one"
done
rm -f "$m.tar" || exit 1
sw_keep "$m" "$sum""#;

/// A program that tells which of these archives have yet to be imported, as facts `missing`; it
/// changes nothing.
pub fn unimported(archives: &[Archive<'_>]) -> Program {
    let look = |archive: &Archive<'_>| Item::When {
        condition: format!("! (\n{}\n)", archive.there()),
        items: vec![Item::Told {
            key: "missing".to_owned(),
            print: format!("echo {}", quoted(archive.name)),
        }],
    };
    let looks: Vec<Item> = archives.iter().map(look).collect();
    render(&looks, "look for images", LOOK_MAX)
}

/// A program that imports an archive which was pushed to its place.
pub fn import(archive: &Archive<'_>) -> Program {
    render(&[archive.item()], "import", IMPORT_MAX)
}
