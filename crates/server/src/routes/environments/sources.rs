//! Reads which repositories have environments for their requests.

use api::environment::{GitService, GitSource, ValueLevels};
use model::environment::config::{Edit, Edits, Key, Level, Value};
use model::environment::git::{Beginning, Lent, Report, Rules, Source};
use model::environment::settings::Settings;
use model::name::Name;
use std::collections::BTreeSet;
use std::time::Duration;

use super::settings::secret as secret_of;
use crate::app::App;
use crate::environments::{self, About};
use crate::extract;
use crate::problem::Problem;

/// The longest address of an API.
const URL_LEN_MAX: usize = 1_024;

/// The most patterns, labels or authors of one source.
const RULES_MAX: usize = 100;

/// The longest label or author.
const WORD_LEN_MAX: usize = 255;

/// Sources that can be followed.
pub(super) fn checked(sources: Vec<GitSource>) -> Result<Vec<Source>, Problem> {
    if sources.len() > Source::COUNT_MAX {
        let detail = format!(
            "found {}, allowed: at most {}",
            sources.len(),
            Source::COUNT_MAX
        );
        return Err(Problem::parameter("sources", detail));
    }
    let mut names = BTreeSet::new();
    let mut checked = Vec::with_capacity(sources.len());
    for (at, given) in sources.into_iter().enumerate() {
        let source = source(&format!("sources[{at}]"), given)?;
        if !names.insert(source.name.clone()) {
            let detail = format!("found `{}` twice, allowed: once", source.name);
            return Err(Problem::parameter(&format!("sources[{at}].name"), detail));
        }
        checked.push(source);
    }
    Ok(checked)
}

/// Refuses sources that lend secrets where nobody can hand them over.
pub(super) fn handed_over(settings: &Settings) -> Result<(), Problem> {
    let lends = |source: &Source| !source.beginning.secrets.is_empty();
    match settings.sources.iter().position(lends) {
        Some(at) if !settings.takes_secrets() => Err(Problem::parameter(
            &format!("sources[{at}].secrets"),
            "found secrets, and secretDelivery does not say how scripts are given such",
        )),
        Some(_) | None => Ok(()),
    }
}

/// What is missing of the secrets that sources name.
pub(super) async fn unset(
    app: &App,
    project: &Name,
    settings: &Settings,
) -> Result<Vec<String>, Problem> {
    let mut unset = Vec::new();
    for source in &settings.sources {
        let Source { name, secret, .. } = source;
        let lent = source.beginning.secrets.iter().map(|lent| &lent.secret);
        let token = source.report.iter().map(|report| &report.token);
        let named = [(secret, "nobody can speak as its service")].into_iter();
        let named = named.chain(token.map(|token| (token, "its service is told nothing")));
        let named = named.chain(lent.map(|lent| (lent, "its requests have no environments")));
        for (secret, then) in named {
            if !super::settings::is_set(app, project, secret).await? {
                let told = format!("source {name}: its secret {secret} is not set, so {then}");
                unset.push(told);
            }
        }
    }
    Ok(unset)
}

fn source(place: &str, given: GitSource) -> Result<Source, Problem> {
    let GitSource {
        name,
        service,
        repository,
        secret,
        api,
        token,
        branches,
        labels,
        authors,
        forks,
        environment,
        tag,
        set,
        secrets,
        environment_labels,
        expires_in_seconds,
    } = given;
    let of = |field: &str| format!("{place}.{field}");
    let template = |field: &str, error| Problem::parameter(&of(field), error);
    bounded(&of("branches"), &branches)?;
    let branches = branches.into_iter().map(TryInto::try_into);
    let branches = branches
        .collect::<Result<_, _>>()
        .map_err(|error| Problem::parameter(&of("branches"), error))?;
    let rules = Rules {
        branches,
        labels: words(&of("labels"), labels)?,
        authors: words(&of("authors"), authors)?,
        forks: forks.unwrap_or_default().into(),
    };
    let about = environments::about(About {
        labels: environment_labels,
        ..About::default()
    })?;
    let edits = edits(&of("set"), set)?;
    let beginning = Beginning {
        secrets: lent(&of("secrets"), secrets, &edits)?,
        edits,
        labels: about.labels,
        expires: expires(&of("expiresInSeconds"), expires_in_seconds)?,
    };
    Ok(Source {
        name: extract::name(&of("name"), &name)?,
        service: service.into(),
        repository: repository
            .try_into()
            .map_err(|error| Problem::parameter(&of("repository"), error))?,
        secret: secret_of(&of("secret"), &secret)?,
        report: report(place, service, api.as_deref(), token)?,
        rules,
        environment: environment
            .map(TryInto::try_into)
            .transpose()
            .map_err(|error| template("environment", error))?
            .unwrap_or_default(),
        tag: tag
            .map(TryInto::try_into)
            .transpose()
            .map_err(|error| template("tag", error))?
            .unwrap_or_default(),
        beginning,
    })
}

/// Where the service is told how environments are, where anything opens that.
fn report(
    place: &str,
    service: GitService,
    api: Option<&str>,
    token: Option<String>,
) -> Result<Option<Report>, Problem> {
    let Some(token) = token else {
        if api.is_none() {
            return Ok(None);
        }
        let detail = "found nothing, and something must open the API";
        return Err(Problem::parameter(&format!("{place}.token"), detail));
    };
    let usual = match service {
        GitService::Github => Some("https://api.github.com"),
        GitService::Gitlab => Some("https://gitlab.com/api/v4"),
        GitService::Gitea => None,
    };
    let given = api.or(usual).unwrap_or_default();
    let api = given.trim_end_matches('/');
    let rest = api
        .strip_prefix("https://")
        .or(api.strip_prefix("http://"))
        .unwrap_or_default();
    let odd = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '@' | '?' | '#');
    if rest.is_empty() || rest.starts_with('/') || api.len() > URL_LEN_MAX || api.contains(odd) {
        let detail = "allowed: where the API begins, like https://git.example.org/api/v1";
        return Err(Problem::parameter(&format!("{place}.api"), detail));
    }
    Ok(Some(Report {
        api: api.to_owned(),
        token: secret_of(&format!("{place}.token"), &token)?,
    }))
}

fn bounded<T>(place: &str, list: &[T]) -> Result<(), Problem> {
    if list.len() <= RULES_MAX {
        return Ok(());
    }
    let detail = format!("found {}, allowed: at most {RULES_MAX}", list.len());
    Err(Problem::parameter(place, detail))
}

/// Names that a service can tell.
fn words(place: &str, words: Vec<String>) -> Result<Vec<String>, Problem> {
    bounded(place, &words)?;
    let fits = |word: &String| {
        (1..=WORD_LEN_MAX).contains(&word.len()) && !word.chars().any(char::is_control)
    };
    if words.iter().all(fits) {
        return Ok(words);
    }
    let detail = format!("allowed: 1 to {WORD_LEN_MAX} characters of plain text each");
    Err(Problem::parameter(place, detail))
}

fn levels(levels: ValueLevels) -> impl Iterator<Item = (Level, String, String)> {
    let ValueLevels {
        application,
        deployment,
    } = levels;
    let of = |level| move |(key, value)| (level, key, value);
    let application = application.into_iter().map(of(Level::Application));
    application.chain(deployment.into_iter().map(of(Level::Deployment)))
}

fn key(place: &str, text: &str) -> Result<Key, Problem> {
    text.parse()
        .map_err(|error: model::environment::config::KeyError| Problem::parameter(place, error))
}

fn edits(place: &str, given: ValueLevels) -> Result<Edits, Problem> {
    let mut edits = Edits::default();
    for (level, name, value) in levels(given) {
        let value = Value::try_from(value).map_err(|error| Problem::parameter(place, error))?;
        let key = key(place, &name)?;
        edits.of_mut(level).insert(key, Edit::Set(value));
    }
    Ok(edits)
}

fn lent(place: &str, given: ValueLevels, edits: &Edits) -> Result<Vec<Lent>, Problem> {
    let mut lent = Vec::new();
    for (level, name, secret) in levels(given) {
        let key = key(place, &name)?;
        if edits.of(level).contains_key(&key) {
            let detail = format!("found `{key}`, which is in `set`, too; allowed: one of them");
            return Err(Problem::parameter(place, detail));
        }
        lent.push(Lent {
            level,
            key,
            secret: secret_of(place, &secret)?,
        });
    }
    Ok(lent)
}

fn expires(place: &str, seconds: Option<u32>) -> Result<Option<Duration>, Problem> {
    match seconds {
        Some(0) => Err(Problem::parameter(place, "found 0, allowed: 1 or more")),
        Some(seconds) => Ok(Some(Duration::from_secs(seconds.into()))),
        None => Ok(None),
    }
}
