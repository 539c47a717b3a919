//! Kubernetes is brought to a host before it is put to use: programs and images of one version.
//!
//! Each is fetched once for all hosts, from the first mirror that lists it. Programs that no mirror
//! lists come from where their makers publish them; such images are left to the container runtime.

use super::entry::Entry;
use super::{Hosts, tell};
use crate::artifacts::kubernetes::{CONTROL_IMAGES, IMAGES, PROGRAMS, image, program};
use crate::artifacts::{Artifact, Handle, Name, Platform, Source, quiet};
use crate::error::{Error, Kind};
use crate::recipe::item::Item;
use crate::recipe::{self, Archive, Kubernetes};
use driver::Context;
use model::cluster::Machine;
use model::id::ClusterId;
use model::version::Version;
use std::time::Duration;

/// How long a host may take to say what it is.
const LOOK_MAX: Duration = Duration::from_mins(1);

/// What a machine is to be brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Everything, also the images of the control plane.
    Control,
    /// What every node has.
    Worker,
}

impl Stage {
    /// The images that such a machine needs.
    fn images(self) -> impl Iterator<Item = &'static str> {
        let control: &[&str] = match self {
            Self::Control => &CONTROL_IMAGES,
            Self::Worker => &[],
        };
        control.iter().chain(&IMAGES).copied()
    }
}

/// What lies on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// Where its programs come from when they are put into place.
    pub programs: Kubernetes,
    /// The images that no mirror has: the container runtime pulls them when they are needed.
    pub left: Vec<&'static str>,
}

impl Hosts {
    /// Brings the programs and images of a version to a machine, and puts none to use. What is
    /// there already is not sent again.
    pub async fn stage(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        version: Version,
        what: Stage,
    ) -> Result<Staged, Error> {
        let entry = self.entry(cx, cluster, machine).await?;
        let platform = self.platform(cx, &entry).await?;
        let programs = self.stage_programs(cx, &entry, (version, platform)).await?;
        let left = self
            .stage_images(cx, &entry, (version, platform), what)
            .await?;
        Ok(Staged { programs, left })
    }

    /// Brings the images of a version that every node runs to a machine, where a mirror has any.
    pub async fn stage_worker_images(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        version: Version,
    ) -> Result<(), Error> {
        let entry = self.entry(cx, cluster, machine).await?;
        let platform = self.platform(cx, &entry).await?;
        let of = (version, platform);
        self.stage_images(cx, &entry, of, Stage::Worker).await?;
        Ok(())
    }

    /// What the programs of a host must be made for.
    pub(super) async fn platform(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
    ) -> Result<Platform, Error> {
        let machine = Item::Told {
            key: "machine".to_owned(),
            print: "uname -m".to_owned(),
        };
        let told = recipe::render(&[machine], "platform", LOOK_MAX);
        let told = self.run(cx, entry, &told).await?;
        let machine = told.fact("machine").unwrap_or_default();
        Platform::of_machine(machine).ok_or_else(|| {
            let what = format!(
                "{} is a {machine:?}, for which there is no Kubernetes",
                entry.door
            );
            Error::new(Kind::NoArtifact, what)
        })
    }

    async fn stage_programs(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        (version, platform): (Version, Platform),
    ) -> Result<Kubernetes, Error> {
        let directory = recipe::staged(version);
        let mut sources = self.inner.sources.clone();
        if !sources.iter().any(|one| matches!(one, Source::Upstream(_))) {
            sources.extend(Source::upstream());
        }
        let mut programs = Vec::new();
        for name in PROGRAMS {
            let named = program(version, platform, name).ok_or_else(|| nameless(name))?;
            let artifact = Artifact::named(named);
            let cache = self.cache().await?;
            let fetching = cache.fetch(&sources, &artifact, &quiet);
            let handle = Self::unless_told(cx, fetching).await?;
            let path = format!("{directory}/{name}");
            self.delivered(cx, entry, (&handle, &path, 0o755)).await?;
            programs.push((name.to_owned(), handle.sha256().to_string(), handle.size()));
        }
        Ok(Kubernetes::Programs {
            directory,
            programs,
        })
    }

    /// Answers the images that are left to the container runtime.
    async fn stage_images(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        (version, platform): (Version, Platform),
        what: Stage,
    ) -> Result<Vec<&'static str>, Error> {
        let (mut left, mut fetched) = (Vec::new(), Vec::new());
        for name in what.images() {
            let named = image(version, platform, name).ok_or_else(|| nameless(name))?;
            let cache = self.cache().await?;
            let fetching = cache.fetch_listed(&self.inner.sources, named, &quiet);
            match Self::unless_told(cx, fetching).await? {
                Some(handle) => fetched.push((name.to_owned(), handle)),
                None => left.push(name),
            }
        }
        if !left.is_empty() {
            let left = left.join(" ");
            cx.log(&format!(
                "images: no mirror has {left}: containerd pulls them"
            ));
        }
        let of = version.to_string();
        self.import_images(cx, entry, &of, &fetched).await?;
        Ok(left)
    }

    /// Brings to a machine every image archive that a mirror has below the name for its platform.
    /// `of` says what they belong to: the host remembers them by it.
    pub async fn stage_archives(
        &self,
        cx: &Context,
        (cluster, machine): (ClusterId, &Machine),
        of: &str,
        below: impl Fn(Platform) -> Option<Name>,
    ) -> Result<(), Error> {
        let entry = self.entry(cx, cluster, machine).await?;
        let platform = self.platform(cx, &entry).await?;
        let below = below(platform).ok_or_else(|| nameless(of))?;
        self.stage_below(cx, &entry, of, &below).await
    }

    /// The same on a host that was entered.
    pub(super) async fn stage_below(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        of: &str,
        below: &Name,
    ) -> Result<(), Error> {
        let cache = self.cache().await?;
        let listing = cache.listed_below(&self.inner.sources, below);
        let mut fetched = Vec::new();
        for named in Self::unless_told(cx, listing).await? {
            let file = named.parts().next_back().unwrap_or_default();
            let Some(image) = file.strip_suffix(".tar").map(str::to_owned) else {
                continue;
            };
            let fetching = cache.fetch_listed(&self.inner.sources, named, &quiet);
            let handle = Self::unless_told(cx, fetching).await?;
            fetched.extend(handle.map(|handle| (image, handle)));
        }
        self.import_images(cx, entry, of, &fetched).await
    }

    /// Has image archives become the container runtime's; those that are are not sent again.
    async fn import_images(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        of: &str,
        fetched: &[(String, Handle)],
    ) -> Result<(), Error> {
        if fetched.is_empty() {
            return Ok(());
        }
        let sums: Vec<String> = fetched
            .iter()
            .map(|(_, handle)| handle.sha256().to_string())
            .collect();
        let archives: Vec<Archive<'_>> = fetched
            .iter()
            .zip(&sums)
            .map(|((name, _), sha256)| Archive { of, name, sha256 })
            .collect();
        let told = self.run(cx, entry, &recipe::unimported(&archives)).await?;
        recipe::done(&told)?;
        for (archive, (_, handle)) in archives.iter().zip(fetched) {
            if told.facts("missing").any(|name| name == archive.name) {
                let path = archive.path();
                self.delivered(cx, entry, (handle, &path, 0o600)).await?;
                let title = format!("image {}", archive.name);
                self.told(cx, entry, &title, &recipe::import(archive))
                    .await?;
            } else {
                cx.log(&format!("image {}: 0 changed, 1 unchanged", archive.name));
            }
        }
        Ok(())
    }

    /// Has an artifact lie on a host, and says so in the log.
    async fn delivered(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        (handle, path, mode): (&Handle, &str, u32),
    ) -> Result<(), Error> {
        let report = self.bring(cx, entry, handle, path, mode).await?;
        if report.changed() > 0 {
            cx.log(&format!("brought {path}, {} bytes", handle.size()));
        }
        tell(cx, "stage", &report);
        Ok(())
    }
}

fn nameless(what: &str) -> Error {
    Error::new(
        Kind::NoArtifact,
        format!("{what} can have no name in a mirror"),
    )
}
