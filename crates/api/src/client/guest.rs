//! People who enter a machine themselves.

use super::{CONNECT_TIMEOUT, Client, Error};
use crate::guest::{GuestRequest, GuestView, PROTOCOL};
use reqwest::header::{CONNECTION, UPGRADE};
use reqwest::{Method, StatusCode};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

/// How long a server may take until a relay leads to the machine.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(30);

impl Client {
    /// Has a key let into a machine for some minutes.
    pub async fn let_in(&self, machine: &str, guest: &GuestRequest) -> Result<GuestView, Error> {
        let request = self.request(Method::POST, &["machines", machine, "guests"]);
        self.ask(request.json(guest)).await
    }

    /// Bytes both ways to the SSH server of a machine, until one side ends them.
    pub async fn relay(
        &self,
        machine: &str,
    ) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + use<>, Error> {
        let request = self
            .endless(Method::POST, &["machines", machine, "relay"])
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, PROTOCOL);
        let ended = |_| Error::Ended {
            server: self.server().to_owned(),
        };
        let asked = timeout(BEGIN_TIMEOUT, self.send(request)).await;
        let answer = asked.map_err(ended)??;
        // Whoever answers otherwise does not know what was asked for.
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(Error::Foreign {
                server: self.server().to_owned(),
                status: answer.status().as_u16(),
            });
        }
        let switched = timeout(CONNECT_TIMEOUT, answer.upgrade()).await;
        switched
            .map_err(ended)?
            .map_err(|cause| self.transport(cause))
    }
}
