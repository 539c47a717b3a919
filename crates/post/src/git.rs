//! Tells git services how the environment of a commit is: as a status of that commit.

use super::web::{Post as Request, Reply};
use super::{Post, line, opened, refused};
use driver::Context;
use driver::deliver::{Carried, Parcel};
use http::StatusCode;
use model::environment::delivery::Answer;
use model::environment::git::report::{Reported, Verdict};
use model::environment::git::{Report, Service, Source};
use model::environment::notify::Address;
use serde_json::json;

/// What the status is called: a commit has one of each name.
const CONTEXT: &str = "slipway";

/// What GitLab says of a status that the commit has already.
const HAS_IT: &str = "Cannot transition status";

impl Post {
    /// Carries a message to the git service of the source that it names.
    pub async fn report(&self, cx: &Context, parcel: &Parcel) -> Carried {
        let Ok(reported) = serde_json::from_str::<Reported>(&parcel.document) else {
            return Carried::never("what it says cannot be read by this program");
        };
        let sources = parcel.settings.iter();
        let mut sources = sources.flat_map(|settings| &settings.sources);
        let source = sources.find(|source| source.name.as_str() == parcel.target);
        let told = source.and_then(|source| Some((source, source.report.as_ref()?)));
        let Some((source, report)) = told else {
            return Carried::never("the project has no such source any more, or tells it nothing");
        };
        let token = match opened(cx, &report.token).await {
            Ok(token) => token,
            Err(carried) => return carried,
        };
        let Ok(text) = std::str::from_utf8(line(&token)) else {
            return refused(format!("secret {} is no token", report.token));
        };
        let Ok(url) = address(source, report, &reported).parse::<Address>() else {
            return refused(format!("{} is no address of an API", report.api));
        };
        let request = Request {
            url: &url,
            headers: vec![
                ("accept", "application/json".to_owned()),
                authorization(source.service, text),
            ],
            body: body(source, parcel, &reported),
        };
        let reply = self.web.post(request).await;
        if let Reply::Answered { status, said, .. } = &reply
            && *status == StatusCode::BAD_REQUEST
            && said.contains(HAS_IT)
        {
            return Carried {
                answer: Answer::Taken,
                said: said.clone(),
            };
        }
        reply.carried(&[line(&token)])
    }
}

fn address(source: &Source, report: &Report, reported: &Reported) -> String {
    let Reported {
        repository, sha, ..
    } = reported;
    match source.service {
        Service::Github | Service::Gitea => {
            format!("{}/repos/{repository}/statuses/{sha}", report.api)
        }
        Service::Gitlab => {
            let path = repository.as_str().replace('/', "%2F");
            format!("{}/projects/{path}/statuses/{sha}", report.api)
        }
    }
}

fn authorization(service: Service, token: &str) -> (&'static str, String) {
    match service {
        Service::Github => ("authorization", format!("Bearer {token}")),
        Service::Gitea => ("authorization", format!("token {token}")),
        Service::Gitlab => ("private-token", token.to_owned()),
    }
}

fn body(source: &Source, parcel: &Parcel, reported: &Reported) -> String {
    // A commit may have an environment of each source, in each project.
    let context = format!("{CONTEXT}/{}/{}", parcel.project, source.name);
    let state = match (reported.verdict, source.service) {
        (Verdict::Pending, _) => "pending",
        (Verdict::Success, _) => "success",
        (Verdict::Failure, Service::Gitlab) => "failed",
        (Verdict::Failure, Service::Github | Service::Gitea) => "failure",
    };
    let mut body = json!({ "state": state, "description": reported.description });
    let name = match source.service {
        Service::Github | Service::Gitea => "context",
        Service::Gitlab => "name",
    };
    body[name] = json!(context);
    if let Some(url) = &reported.url {
        body["target_url"] = json!(url);
    }
    body.to_string()
}
