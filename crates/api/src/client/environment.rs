//! Environments: what they are, what is done to them, and what their scripts print.

use super::wire::{Heard, Wire};
use super::{Client, Error, Page, WORK_TIMEOUT};
use crate::environment::{
    ActionDetail, ActionView, CheckedView, CloneRequest, ConfigurationView, DefaultsView,
    DeliveryState, DeliveryView, EnvironmentAccepted, EnvironmentChangeRequest, EnvironmentRequest,
    EnvironmentSettings, EnvironmentSettingsView, EnvironmentStatus, EnvironmentView,
    ExtendRequest, ImportRequest, ImportView, KeysOfLevelView, OutputEnd, OutputLineView,
    OutputView, RedeployRequest, SettingLevel, StatusChangeView, TestRequest, TrialView,
};
use crate::page::Listed;
use crate::secret::Secret;
use crate::sse::Item;
use crate::task::{END, LINE};
use reqwest::header::{CONTENT_TYPE, HeaderValue, IF_MATCH};
use reqwest::{Method, RequestBuilder};

/// Which environments to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvironmentFilter {
    /// Only those that are so.
    pub status: Option<EnvironmentStatus>,
    /// Only those that rest or are about to, or only the others.
    pub archived: Option<bool>,
    /// Only those of this owner.
    pub owner: Option<String>,
    /// Only those with all of these labels, `name` or `name=value`.
    pub labels: Vec<String>,
    /// Only those with this in their name or owner.
    pub text: Option<String>,
    /// Those that changed last first, and not by name.
    pub newest: bool,
}

/// Which messages to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Only those that have come so far.
    pub state: Option<DeliveryState>,
    /// Only those to this target.
    pub target: Option<String>,
    /// Only those about this environment.
    pub environment: Option<String>,
}

/// What is done to an environment that is there, without anything more to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvironmentVerb {
    /// Have it rest.
    Archive,
    /// Bring it back.
    Restore,
    /// Remove it with all that it has stored.
    Cleanup,
    /// End what is being done to it.
    Cancel,
}

impl EnvironmentVerb {
    /// The last piece of its route.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Archive => "archive",
            Self::Restore => "restore",
            Self::Cleanup => "cleanup",
            Self::Cancel => "cancel",
        }
    }
}

impl Client {
    /// What the project says of its environments.
    pub async fn environment_settings(&self) -> Result<EnvironmentSettingsView, Error> {
        self.ask(self.get(&["environment-settings"])).await
    }

    /// Changes what the project says of its environments, all of it.
    pub async fn put_environment_settings(
        &self,
        settings: &EnvironmentSettings,
    ) -> Result<EnvironmentSettingsView, Error> {
        let request = self.request(Method::PUT, &["environment-settings"]);
        self.ask(request.json(settings)).await
    }

    /// Messages to those who are told what becomes of environments, newest first.
    pub async fn deliveries(
        &self,
        filter: &DeliveryFilter,
        page: &Page,
    ) -> Result<Listed<DeliveryView>, Error> {
        let DeliveryFilter {
            state,
            target,
            environment,
        } = filter;
        let mut query = page.query();
        query.extend(state.map(|state| ("state", state.as_str().to_owned())));
        query.extend(target.clone().map(|target| ("target", target)));
        query.extend(environment.clone().map(|name| ("environment", name)));
        let request = self.get(&["environment-deliveries"]);
        self.ask(request.query(&query)).await
    }

    /// One message.
    pub async fn delivery(&self, id: &str) -> Result<DeliveryView, Error> {
        self.ask(self.get(&["environment-deliveries", id])).await
    }

    /// Has a message that has not arrived be sent now.
    pub async fn retry_delivery(&self, id: &str) -> Result<DeliveryView, Error> {
        let segments = ["environment-deliveries", id, "retry"];
        self.ask(self.request(Method::POST, &segments)).await
    }

    /// Sends a message to a target that tells of nothing.
    pub async fn test_delivery(&self, target: &str) -> Result<DeliveryView, Error> {
        let request = self.request(Method::POST, &["environment-deliveries"]);
        let target = target.to_owned();
        self.ask(request.json(&TestRequest { target })).await
    }

    /// What would be configured if nobody edited anything, as an environment is deployed or as
    /// any would be.
    pub async fn environment_defaults(
        &self,
        level: SettingLevel,
        environment: Option<&str>,
    ) -> Result<DefaultsView, Error> {
        let mut query = vec![("level", level.as_str())];
        query.extend(environment.map(|name| ("environment", name)));
        self.ask(self.working("environment-defaults").query(&query))
            .await
    }

    /// Settings that may be edited.
    pub async fn environment_keys(
        &self,
        level: SettingLevel,
        environment: Option<&str>,
    ) -> Result<KeysOfLevelView, Error> {
        let mut query = vec![("level", level.as_str())];
        query.extend(environment.map(|name| ("environment", name)));
        self.ask(self.working("environment-keys").query(&query))
            .await
    }

    /// The environments.
    pub async fn environments(
        &self,
        filter: &EnvironmentFilter,
        page: &Page,
    ) -> Result<Listed<EnvironmentView>, Error> {
        let EnvironmentFilter {
            status,
            archived,
            owner,
            labels,
            text,
            newest,
        } = filter;
        let mut query = page.query();
        query.extend(status.map(|status| ("status", status.to_string())));
        query.extend(archived.map(|archived| ("archived", archived.to_string())));
        query.extend(owner.clone().map(|owner| ("owner", owner)));
        if !labels.is_empty() {
            query.push(("label", labels.join(",")));
        }
        query.extend(text.clone().map(|text| ("text", text)));
        query.extend(newest.then(|| ("sort", "changed".to_owned())));
        self.ask(self.get(&["environments"]).query(&query)).await
    }

    /// One environment.
    pub async fn environment(&self, name: &str) -> Result<EnvironmentView, Error> {
        self.ask(self.get(&["environments", name])).await
    }

    /// Creates an environment.
    pub async fn create_environment(
        &self,
        request: &EnvironmentRequest,
    ) -> Result<EnvironmentAccepted, Error> {
        let post = self.request(Method::POST, &["environments"]);
        self.ask(said(post, &request.to_json())).await
    }

    /// What would come of creating an environment.
    pub async fn try_environment(&self, request: &EnvironmentRequest) -> Result<TrialView, Error> {
        let post = self.request(Method::POST, &["environments"]);
        self.ask(said(tried(post), &request.to_json())).await
    }

    /// Changes an environment; with `generation`, only if it still has that.
    pub async fn change_environment(
        &self,
        name: &str,
        change: &EnvironmentChangeRequest,
        generation: Option<u64>,
    ) -> Result<EnvironmentAccepted, Error> {
        let patch = self.request(Method::PATCH, &["environments", name]);
        self.ask(said(matching(patch, generation), &change.to_json()))
            .await
    }

    /// What would come of a change.
    pub async fn try_environment_change(
        &self,
        name: &str,
        change: &EnvironmentChangeRequest,
    ) -> Result<TrialView, Error> {
        let patch = self.request(Method::PATCH, &["environments", name]);
        self.ask(said(tried(patch), &change.to_json())).await
    }

    /// Puts all that is said in place of what there is.
    pub async fn put_environment(
        &self,
        name: &str,
        request: &EnvironmentRequest,
        generation: Option<u64>,
    ) -> Result<EnvironmentAccepted, Error> {
        let put = self.request(Method::PUT, &["environments", name]);
        self.ask(said(matching(put, generation), &request.to_json()))
            .await
    }

    /// What would come of putting that in place of what there is.
    pub async fn try_put_environment(
        &self,
        name: &str,
        request: &EnvironmentRequest,
    ) -> Result<TrialView, Error> {
        let put = self.request(Method::PUT, &["environments", name]);
        self.ask(said(tried(put), &request.to_json())).await
    }

    /// Takes environments over from elsewhere; with `dry`, only tells what would become of them.
    pub async fn import_environments(
        &self,
        request: &ImportRequest,
        dry: bool,
    ) -> Result<ImportView, Error> {
        let post = self.request(Method::POST, &["environment-import"]);
        let post = if dry { tried(post) } else { post };
        self.ask(post.timeout(WORK_TIMEOUT).json(request)).await
    }

    /// Forgets an environment and touches nothing of it.
    pub async fn delete_environment(
        &self,
        name: &str,
        force: bool,
    ) -> Result<EnvironmentAccepted, Error> {
        let request = self.request(Method::DELETE, &["environments", name]);
        self.ask(forced(request, force)).await
    }

    /// Has something done to an environment.
    pub async fn act_on_environment(
        &self,
        name: &str,
        verb: EnvironmentVerb,
        force: bool,
    ) -> Result<EnvironmentAccepted, Error> {
        let request = self.request(Method::POST, &["environments", name, verb.as_str()]);
        self.ask(forced(request.timeout(WORK_TIMEOUT), force)).await
    }

    /// Has the configuration of an earlier action count again.
    pub async fn redeploy_environment(
        &self,
        name: &str,
        again: &RedeployRequest,
    ) -> Result<EnvironmentAccepted, Error> {
        let request = self.request(Method::POST, &["environments", name, "redeploy"]);
        self.ask(request.timeout(WORK_TIMEOUT).json(again)).await
    }

    /// Creates another environment with the same edits.
    pub async fn clone_environment(
        &self,
        name: &str,
        copy: &str,
    ) -> Result<EnvironmentAccepted, Error> {
        let request = self.request(Method::POST, &["environments", name, "clone"]);
        let name = copy.to_owned();
        let request = request.timeout(WORK_TIMEOUT);
        self.ask(request.json(&CloneRequest { name })).await
    }

    /// Says how long an environment may be up, from now on.
    pub async fn extend_environment(
        &self,
        name: &str,
        seconds: Option<u32>,
    ) -> Result<EnvironmentAccepted, Error> {
        let request = self.request(Method::POST, &["environments", name, "extend"]);
        self.ask(request.json(&ExtendRequest { seconds })).await
    }

    /// Looks at an environment now.
    pub async fn look_at_environment(&self, name: &str) -> Result<CheckedView, Error> {
        let request = self.request(Method::POST, &["environments", name, "look"]);
        self.ask(request.timeout(WORK_TIMEOUT)).await
    }

    /// The configuration of an environment as it counts in the end.
    pub async fn environment_configuration(&self, name: &str) -> Result<ConfigurationView, Error> {
        let request = self.get(&["environments", name, "configuration"]);
        self.ask(request.timeout(WORK_TIMEOUT)).await
    }

    /// What was done to an environment, newest first.
    pub async fn environment_actions(
        &self,
        name: &str,
        page: &Page,
    ) -> Result<Listed<ActionView>, Error> {
        let request = self.get(&["environments", name, "actions"]);
        self.ask(request.query(&page.query())).await
    }

    /// One action, with all that it was given.
    pub async fn environment_action(&self, name: &str, id: &str) -> Result<ActionDetail, Error> {
        self.ask(self.get(&["environments", name, "actions", id]))
            .await
    }

    /// What the script of an action printed after the line `after`.
    pub async fn action_output(
        &self,
        (name, id): (&str, &str),
        after: u64,
        limit: u32,
    ) -> Result<OutputView, Error> {
        let query = [("after", after), ("limit", limit.into())];
        let request = self.get(&["environments", name, "actions", id, "log"]);
        self.ask(request.query(&query)).await
    }

    /// The same, and what it prints from then on, until the action has ended.
    pub fn follow_action(&self, (name, id): (&str, &str), after: u64) -> ActionOutput {
        let path = ["environments", name, "actions", id, "log"];
        let after = (after > 0).then_some(after);
        ActionOutput(Wire::new(self.clone(), &path, after))
    }

    /// How an environment became what it is, newest first.
    pub async fn environment_changes(
        &self,
        name: &str,
        page: &Page,
    ) -> Result<Listed<StatusChangeView>, Error> {
        let request = self.get(&["environments", name, "changes"]);
        self.ask(request.query(&page.query())).await
    }

    /// A question that scripts answer.
    fn working(&self, route: &str) -> RequestBuilder {
        self.get(&[route]).timeout(WORK_TIMEOUT)
    }
}

fn said(request: RequestBuilder, body: &Secret) -> RequestBuilder {
    request
        .timeout(WORK_TIMEOUT)
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(body.expose().to_vec())
}

fn tried(request: RequestBuilder) -> RequestBuilder {
    request.query(&[("dryRun", true)])
}

fn forced(request: RequestBuilder, force: bool) -> RequestBuilder {
    if force {
        request.query(&[("force", true)])
    } else {
        request
    }
}

fn matching(request: RequestBuilder, generation: Option<u64>) -> RequestBuilder {
    match generation {
        Some(generation) => request.header(IF_MATCH, generation.to_string()),
        None => request,
    }
}

/// What followed output has to say.
#[derive(Debug)]
pub enum OutputSignal {
    /// The stream begins, or goes on after it was lost.
    Open,
    /// A line.
    Line(OutputLineView),
    /// The action has ended, and this was all.
    End(OutputEnd),
    /// Something that this version cannot read.
    Unknown,
    /// The connection is gone; the next call waits and connects again.
    Lost(Error),
}

/// What the script of one action prints, followed until the action has ended.
///
/// Dropping a call of [`ActionOutput::next`] before it ends loses nothing.
pub struct ActionOutput(Wire);

impl ActionOutput {
    /// Waits for the next signal; after [`OutputSignal::End`] there is nothing to wait for.
    ///
    /// Fails when the stream could not even begin, and when the server refuses it: another
    /// try would end the same way.
    pub async fn next(&mut self) -> Result<OutputSignal, Error> {
        Ok(match self.0.next().await? {
            Heard::Open => OutputSignal::Open,
            Heard::Item(Item::Message { event, data, .. }) => read(event.as_deref(), &data),
            Heard::Item(Item::TooLong) => OutputSignal::Unknown,
            Heard::Lost(error) => OutputSignal::Lost(error),
        })
    }
}

fn read(event: Option<&str>, data: &str) -> OutputSignal {
    let read = match event {
        Some(LINE) => serde_json::from_str(data).map(OutputSignal::Line),
        Some(END) => serde_json::from_str(data).map(OutputSignal::End),
        Some(_) | None => return OutputSignal::Unknown,
    };
    read.unwrap_or(OutputSignal::Unknown)
}
