//! Secrets, and the keys they are sealed with.

use super::{Client, Error, Page};
use crate::page::Listed;
use crate::secret::{KeysView, SecretRequest, SecretView};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder};

impl Client {
    /// The secrets of the project: their entries, never their values.
    pub async fn secrets(&self, page: &Page) -> Result<Listed<SecretView>, Error> {
        self.ask(self.get(&["secrets"]).query(&page.query())).await
    }

    /// One secret: its entries, never their values.
    pub async fn secret(&self, name: &str) -> Result<SecretView, Error> {
        self.ask(self.get(&["secrets", name])).await
    }

    /// Sets entries of a secret and removes those without a value; the others stay. With `force`,
    /// also values with which a manifest could not open its account any more, and entries that clusters
    /// need.
    pub async fn change_secret(
        &self,
        name: &str,
        request: &SecretRequest,
        force: bool,
    ) -> Result<SecretView, Error> {
        let mut patch = self.request(Method::PATCH, &["secrets", name]);
        if force {
            patch = patch.query(&[("force", true)]);
        }
        self.ask(with_body(patch, request)).await
    }

    /// Sets a secret; entries that are not named go.
    pub async fn put_secret(
        &self,
        name: &str,
        request: &SecretRequest,
    ) -> Result<SecretView, Error> {
        let put = self.request(Method::PUT, &["secrets", name]);
        self.ask(with_body(put, request)).await
    }

    /// Removes a secret with all its entries; with `force`, also where clusters need it.
    pub async fn delete_secret(&self, name: &str, force: bool) -> Result<(), Error> {
        let mut request = self.request(Method::DELETE, &["secrets", name]);
        if force {
            request = request.query(&[("force", true)]);
        }
        self.send(request).await.map(drop)
    }

    /// The data keys, and how far a rotation has come.
    pub async fn keys(&self) -> Result<KeysView, Error> {
        self.ask(self.whole(Method::GET, &["keys"])).await
    }

    /// Puts a new data key to use; the server then moves all values to it.
    pub async fn rotate_keys(&self) -> Result<KeysView, Error> {
        let request = self.whole(Method::POST, &["keys", "rotation"]);
        self.ask(request).await
    }
}

fn with_body(request: RequestBuilder, body: &SecretRequest) -> RequestBuilder {
    request
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(body.to_json().expose().to_vec())
}
