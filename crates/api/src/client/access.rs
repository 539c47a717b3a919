//! Projects, tokens and audit: what belongs to no single project.

use super::{Client, Error, Page};
use crate::audit::{AuditView, Verification};
use crate::page::Listed;
use crate::project::{ProjectRequest, ProjectView};
use crate::token::{TokenMade, TokenRequest, TokenView};
use reqwest::header::IF_NONE_MATCH;
use reqwest::{Method, Response};
use std::time::Duration;
use tokio::time::timeout;

/// The longest silence of an export that is alive: the server reads pieces of a second.
const SILENCE_MAX: Duration = Duration::from_mins(1);

impl Client {
    /// The projects that the token may see.
    pub async fn projects(&self, page: &Page) -> Result<Listed<ProjectView>, Error> {
        let request = self.whole(Method::GET, &["projects"]);
        self.ask(request.query(&page.query())).await
    }

    /// One project.
    pub async fn one_project(&self, name: &str) -> Result<ProjectView, Error> {
        self.ask(self.whole(Method::GET, &["projects", name])).await
    }

    /// Makes a project; refused when there is one of that name.
    pub async fn create_project(
        &self,
        name: &str,
        project: &ProjectRequest,
    ) -> Result<ProjectView, Error> {
        let request = self.whole(Method::PUT, &["projects", name]).json(project);
        self.ask(request.header(IF_NONE_MATCH, "*")).await
    }

    /// Makes a project or changes its limits.
    pub async fn put_project(
        &self,
        name: &str,
        project: &ProjectRequest,
    ) -> Result<ProjectView, Error> {
        self.ask(self.whole(Method::PUT, &["projects", name]).json(project))
            .await
    }

    /// Removes a project that has nothing left.
    pub async fn delete_project(&self, name: &str) -> Result<(), Error> {
        let request = self.whole(Method::DELETE, &["projects", name]);
        self.send(request).await.map(drop)
    }

    /// The tokens, of one project or of all that the token may see.
    pub async fn tokens(
        &self,
        project: Option<&str>,
        page: &Page,
    ) -> Result<Listed<TokenView>, Error> {
        let mut query = page.query();
        query.extend(project.map(|project| ("project", project.to_owned())));
        self.ask(self.whole(Method::GET, &["tokens"]).query(&query))
            .await
    }

    /// Makes a token; the answer is the only one that has it.
    pub async fn create_token(&self, token: &TokenRequest) -> Result<TokenMade, Error> {
        self.ask(self.whole(Method::POST, &["tokens"]).json(token))
            .await
    }

    /// Ends a token for good.
    pub async fn revoke_token(&self, id: &str) -> Result<TokenView, Error> {
        self.ask(self.whole(Method::DELETE, &["tokens", id])).await
    }

    /// Entries of the audit chain, newest first, of one project or of all.
    pub async fn audit(
        &self,
        project: Option<&str>,
        page: &Page,
    ) -> Result<Listed<AuditView>, Error> {
        let mut query = page.query();
        query.extend(project.map(|project| ("project", project.to_owned())));
        self.ask(self.whole(Method::GET, &["audit"]).query(&query))
            .await
    }

    /// Has the server walk along its chain.
    pub async fn verify_audit(&self) -> Result<Verification, Error> {
        let request = self.whole(Method::GET, &["audit", "verification"]);
        self.ask(request.timeout(super::WORK_TIMEOUT)).await
    }

    /// The audit chain, oldest first, as it is read from the server.
    pub async fn export_audit(&self, project: Option<&str>) -> Result<Export, Error> {
        let query = project.map(|project| ("project", project));
        let request = self.everywhere(Method::GET, &["audit", "export"]);
        let begun = timeout(SILENCE_MAX, self.send(request.query(query.as_slice())));
        let answer = begun.await.map_err(|_| self.ended())?;
        Ok(Export {
            client: self.clone(),
            answer: answer?,
        })
    }

    fn ended(&self) -> Error {
        Error::Ended {
            server: self.server().to_owned(),
        }
    }
}

/// An export on its way, however long it is.
#[derive(Debug)]
pub struct Export {
    client: Client,
    answer: Response,
}

impl Export {
    /// The next bytes; none when the export is complete. One that was cut off is an error.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match timeout(SILENCE_MAX, self.answer.chunk()).await {
            Ok(Ok(piece)) => Ok(piece.map(|piece| piece.to_vec())),
            Ok(Err(cause)) => Err(self.client.transport(cause)),
            Err(_) => Err(self.client.ended()),
        }
    }
}
