//! `slipway env settings source`: a repository whose requests have environments.

use super::settings::show;
use crate::context::Context;
use crate::error::Error;
use crate::verb::apply::lifetime;
use api::Exit;
use api::environment::{GitForks, GitService, GitSource, ValueLevels};
use std::collections::BTreeMap;
use std::time::Duration;

/// Arguments of `slipway env settings source`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway secret set git hook=@hook.txt token=@token.txt
  slipway env settings source shop --service github --repository acme/shop --secret git/hook
  slipway env settings source shop --branch 'feature/*' --label preview --token git/token
  slipway env settings source shop --environment 'pr-{number}' --tag '{short}' --expires 7d
  slipway env settings source shop --remove

Have the service call POST /api/v1/projects/PROJECT/git/NAME about its pull or merge requests, as JSON,
with the same secret. Words in braces are branch, number, sha, short and source. What is not named
stays; `none` empties a list. Settings that --lend names are given secrets; those of forks never are.")]
pub struct Source {
    /// What the source is called; a part of the address that its service calls
    #[arg(value_name = "NAME", value_parser = api::argument::name)]
    name: String,

    /// Who tells of requests
    #[arg(long, value_name = "WORD", value_parser = ["github", "gitlab", "gitea"])]
    service: Option<String>,

    /// Of which repository, as owner/name
    #[arg(long, value_name = "PATH")]
    repository: Option<String>,

    /// What proves that it is them: the secret of the webhook, in a secret of the project
    #[arg(long, value_name = "NAME/ENTRY")]
    secret: Option<String>,

    /// Where the API of the service begins; that of github.com or gitlab.com as usual
    #[arg(long, value_name = "URL")]
    api: Option<String>,

    /// What opens its API, to tell it how environments are, in a secret of the project; or `none`
    #[arg(long, value_name = "NAME/ENTRY")]
    token: Option<String>,

    /// Only requests whose branch fits this, like `feature/*`; may be given several times
    #[arg(long = "branch", value_name = "PATTERN")]
    branches: Vec<String>,

    /// Only requests with this label; may be given several times
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,

    /// Only requests that this person opened; may be given several times
    #[arg(long = "author", value_name = "PERSON")]
    authors: Vec<String>,

    /// What becomes of requests from forks; they are ignored as usual
    #[arg(long, value_name = "WORD", value_parser = ["ignore", "without-secrets"])]
    forks: Option<String>,

    /// What environments are called; `{branch}` as usual
    #[arg(long, value_name = "TEMPLATE")]
    environment: Option<String>,

    /// Which tag they are given; `{sha}` as usual
    #[arg(long, value_name = "TEMPLATE")]
    tag: Option<String>,

    /// What the application is given at first
    #[arg(short = 'e', long = "set-app-config", value_name = "KEY=VALUE", value_parser = api::argument::setting)]
    set_app: Vec<(String, String)>,

    /// How it is deployed at first
    #[arg(long = "set-deployment-config", value_name = "KEY=VALUE", value_parser = api::argument::setting)]
    set_deployment: Vec<(String, String)>,

    /// Which secret of the project the application is given at first
    #[arg(long = "lend", value_name = "KEY=NAME/ENTRY", value_parser = api::argument::setting)]
    lend_app: Vec<(String, String)>,

    /// Which secret of the project its deployment is given at first
    #[arg(long = "lend-deployment", value_name = "KEY=NAME/ENTRY", value_parser = api::argument::setting)]
    lend_deployment: Vec<(String, String)>,

    /// What environments are found by
    #[arg(long = "environment-label", value_name = "NAME=VALUE", value_parser = api::argument::setting)]
    environment_labels: Vec<(String, String)>,

    /// How long each may be up
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<Duration>,

    /// Forget the source; its environments stay
    #[arg(long)]
    remove: bool,
}

pub(super) async fn run(source: Source, context: &mut Context<'_>) -> Result<Exit, Error> {
    let client = context.client()?;
    let mut settings = client.environment_settings().await?.settings;
    let at = settings
        .sources
        .iter()
        .position(|known| known.name == source.name);
    match (at, source.remove) {
        (Some(at), true) => drop(settings.sources.remove(at)),
        (None, true) => {
            return Err(Error::Usage {
                what: format!("the project has no source {}", source.name),
                hint: "see them with `slipway env settings show`".to_owned(),
            });
        }
        (Some(at), false) => {
            if let Some(known) = settings.sources.get_mut(at) {
                source.over(known);
            }
        }
        (None, false) => {
            let mut new = source.least()?;
            source.over(&mut new);
            settings.sources.push(new);
        }
    }
    let view = client.put_environment_settings(&settings).await?;
    show(&view, context)?;
    Ok(Exit::Done)
}

impl Source {
    /// The least that a source has.
    fn least(&self) -> Result<GitSource, Error> {
        let needed = |given: &Option<String>, option: &str| {
            given.clone().ok_or_else(|| Error::Usage {
                what: format!(
                    "there is no source {} yet, and {option} is not given",
                    self.name
                ),
                hint: "the first time, name --service, --repository and --secret".to_owned(),
            })
        };
        Ok(GitSource {
            name: self.name.clone(),
            service: service(&needed(&self.service, "--service")?),
            repository: needed(&self.repository, "--repository")?,
            secret: needed(&self.secret, "--secret")?,
            api: None,
            token: None,
            branches: Vec::new(),
            labels: Vec::new(),
            authors: Vec::new(),
            forks: None,
            environment: None,
            tag: None,
            set: ValueLevels::default(),
            secrets: ValueLevels::default(),
            environment_labels: BTreeMap::new(),
            expires_in_seconds: None,
        })
    }

    /// Puts what was named in place of what there is.
    fn over(self, known: &mut GitSource) {
        if let Some(word) = &self.service {
            known.service = service(word);
        }
        put(&mut known.repository, self.repository);
        put(&mut known.secret, self.secret);
        known.api = self.api.or(known.api.take());
        if let Some(token) = self.token {
            known.token = (token != "none").then_some(token);
            known.api = known.api.take().filter(|_| known.token.is_some());
        }
        list(&mut known.branches, self.branches);
        list(&mut known.labels, self.labels);
        list(&mut known.authors, self.authors);
        if let Some(word) = self.forks {
            known.forks = Some(match word.as_str() {
                "without-secrets" => GitForks::WithoutSecrets,
                _ => GitForks::Ignore,
            });
        }
        known.environment = self.environment.or(known.environment.take());
        known.tag = self.tag.or(known.tag.take());
        known.set.application.extend(self.set_app);
        known.set.deployment.extend(self.set_deployment);
        known.secrets.application.extend(self.lend_app);
        known.secrets.deployment.extend(self.lend_deployment);
        known.environment_labels.extend(self.environment_labels);
        let expires = self
            .expires
            .map(|time| u32::try_from(time.as_secs()).unwrap_or(u32::MAX));
        known.expires_in_seconds = expires.or(known.expires_in_seconds);
    }
}

fn service(word: &str) -> GitService {
    match word {
        "gitlab" => GitService::Gitlab,
        "gitea" => GitService::Gitea,
        _ => GitService::Github,
    }
}

fn put(place: &mut String, given: Option<String>) {
    if let Some(given) = given {
        *place = given;
    }
}

fn list(place: &mut Vec<String>, given: Vec<String>) {
    if !given.is_empty() {
        *place = given;
        place.retain(|one| one != "none");
    }
}
