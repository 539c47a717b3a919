//! `slipway mirror create --kubernetes`: a mirror with what a version of Kubernetes is made of.

use hosts::artifacts::kubernetes::{PROGRAMS, UPSTREAM, program};
use hosts::artifacts::mirror::{Lent, Wish};
use hosts::artifacts::{Artifact, NotASource, Platform, Source, Tell};
use hosts::error::{Error, Kind};
use model::version::Version;
use std::path::PathBuf;

/// Which versions of Kubernetes, for whom, and where they come from
#[derive(Debug, clap::Args)]
pub(crate) struct Kubernetes {
    /// A version of Kubernetes whose programs to fetch, such as v1.34.4; may be repeated. What no
    /// source lists comes from where its makers publish it, which takes curl on this machine
    #[arg(long = "kubernetes", id = "kubernetes", value_name = "VERSION")]
    versions: Vec<Version>,
    /// What its hosts are: amd64 or arm64; may be repeated [default: as this machine]
    #[arg(long, value_name = "ARCHITECTURE", requires = "kubernetes", value_parser = platform)]
    architecture: Vec<Platform>,
    /// A directory with the image archives of one version and architecture: etcd.tar and so on
    #[arg(long, value_name = "DIR", requires = "kubernetes")]
    images: Option<PathBuf>,
    /// Where its makers publish it, or a copy of that
    #[arg(long, value_name = "ADDRESS", requires = "kubernetes", default_value = UPSTREAM, value_parser = upstream)]
    upstream: Source,
}

/// Reads an architecture from the command line.
fn platform(text: &str) -> Result<Platform, String> {
    let known = [Platform::Amd64, Platform::Arm64];
    let platform = known.into_iter().find(|one| one.architecture() == text);
    platform.ok_or_else(|| format!("{text:?} is neither amd64 nor arm64"))
}

/// Reads where Kubernetes is published from the command line.
fn upstream(text: &str) -> Result<Source, NotASource> {
    Source::upstream_at(text)
}

/// Sources, wishes, and what must live as long as they are used.
type Wished = (Vec<Source>, Vec<Wish>, Option<Lent>);

impl Kubernetes {
    /// Whether there is anything to fetch.
    pub(super) const fn is_wished(&self) -> bool {
        !self.versions.is_empty()
    }

    /// What to fetch, and from where, besides what else was named.
    pub(super) async fn wish(
        self,
        mut from: Vec<Source>,
        names: Vec<Wish>,
        tell: Tell<'_>,
    ) -> Result<Wished, Error> {
        let platforms = self.platforms()?;
        let mut wishes = names;
        for version in &self.versions {
            for platform in &platforms {
                let names = PROGRAMS.map(|name| program(*version, *platform, name));
                let named = names.into_iter().flatten().map(Artifact::named);
                wishes.extend(named.map(Wish::Named));
            }
        }
        let mut lent = None;
        if let Some(images) = &self.images {
            let ([version], [platform]) = (self.versions.as_slice(), platforms.as_slice()) else {
                let what = "image archives are of one version and one architecture: \
                            give the command once for each";
                return Err(Error::new(Kind::NoArtifact, what));
            };
            let images = Lent::images(images, *version, *platform, tell).await?;
            from.insert(0, images.source());
            wishes.extend_from_slice(images.wishes());
            lent = Some(images);
        }
        from.push(self.upstream);
        Ok((from, wishes, lent))
    }

    fn platforms(&self) -> Result<Vec<Platform>, Error> {
        if !self.architecture.is_empty() {
            return Ok(self.architecture.clone());
        }
        let here = std::env::consts::ARCH;
        let platform = Platform::of_machine(here).ok_or_else(|| {
            let what = format!("there is no Kubernetes for {here}: name an --architecture");
            Error::new(Kind::NoArtifact, what)
        })?;
        Ok(vec![platform])
    }
}
