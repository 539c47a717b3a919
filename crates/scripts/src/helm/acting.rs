//! Prepares what changes a release: what `act.sh` is told, and the files that it is given.

use std::path::{Path, PathBuf};
use std::time::Duration;

use driver::Context;
use driver::deploy::{Acted, Subject, Work};
use model::environment::status::Deed;
use model::secret::Secret;

use super::cluster::{Way, leading};
use super::deployer::{Helm, VALUES, chart_of, text};
use super::error::{Error, Kind};
use super::given::given;
use crate::bench::{Prepare, patience};
use crate::runner::Prepared;
use crate::secrets::Opened;

/// What is told to `act.sh`.
pub(super) const fn verb(deed: Deed) -> Option<&'static str> {
    match deed {
        Deed::Create | Deed::Update => Some("deploy"),
        Deed::Archive => Some("archive"),
        Deed::Restore => Some("unarchive"),
        Deed::Cleanup => Some("cleanup"),
        Deed::Delete => None,
    }
}

/// A verb of `act.sh`, and who has it done.
pub(super) struct Acting<'a> {
    pub(super) of: &'a Helm,
    pub(super) verb: &'static str,
}

impl Acting<'_> {
    async fn prepared(&self, cx: &Context, work: &Work) -> Result<Prepared, driver::Error> {
        let Helm { bench, finder, .. } = self.of;
        let subject = &work.subject;
        let settings = &subject.settings;
        let mut variables = self.of.variables();
        let helm = finder.helm(&variables).await?;
        let kubectl = finder.kubectl()?;
        let chart = chart_of(settings)?;
        let secrets = bench.secrets(work.action);
        let mut opened = Opened::none();
        let mut more = Vec::new();
        if self.verb == "deploy" {
            let (values, words) = self.values(cx, subject, &secrets).await?;
            (opened, more) = (values, words);
        }
        match Way::find(cx, subject, chart).await? {
            Way::File(path) => variables = leading(variables, &path),
            Way::Sealed(content, _) => opened = opened.with_way(content),
        }
        let seconds = work.deadline.since(cx.now()).as_secs().max(1);
        let script = self.of.own.join("act.sh");
        let mut arguments = vec![
            text(&script)?,
            self.verb.to_owned(),
            text(&helm.path)?,
            text(&kubectl)?,
            settings.place.namespace.to_string(),
            subject.name.to_string(),
            seconds.to_string(),
        ];
        arguments.extend(more);
        Ok(Prepared {
            program: PathBuf::from("/bin/sh"),
            arguments,
            variables,
            opened,
            patience: Duration::ZERO,
            grace: bench.grace,
            links: None,
        })
    }

    /// The values of a release in a file, and what `helm upgrade` is told besides.
    async fn values(
        &self,
        cx: &Context,
        subject: &Subject,
        secrets: &Path,
    ) -> Result<(Opened, Vec<String>), driver::Error> {
        let (facts, chart, helm) = self.of.facts(cx, &subject.settings).await?;
        let opened = Opened::texts_of(cx, subject, false).await?;
        let given = given(subject, chart_of(&subject.settings)?, &opened, &facts);
        let values = facts.values(&given.texts).map_err(|why| {
            let what = format!("environment {}: {why}", subject.name);
            Error::new(Kind::Contradiction, what)
        })?;
        let opened = opened.with_file(VALUES, Secret::from_text(values.to_string()));
        let mut words = vec![
            chart.path,
            "--values".to_owned(),
            text(&secrets.join(VALUES))?,
        ];
        if helm.major >= 4 {
            // What was scaled by hand, or by us, is the chart's again.
            words.extend(["--server-side=true", "--force-conflicts"].map(str::to_owned));
        }
        Ok((opened, words))
    }
}

impl Prepare for Acting<'_> {
    async fn prepare(&self, cx: &Context, work: &Work) -> Result<Prepared, Acted> {
        let prepared = self.prepared(cx, work).await.map_err(Acted::Unbegun)?;
        let patience = patience(cx, work)?;
        Ok(Prepared {
            patience,
            ..prepared
        })
    }
}
