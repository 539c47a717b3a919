//! The whole installation as one file.

use super::{Client, Error};
use reqwest::{Method, Response};
use std::time::Duration;
use tokio::time::timeout;

/// How long the server may take to write the backup on its side, before it begins to send.
const BEGIN_MAX: Duration = Duration::from_hours(1);

/// The longest silence of a backup that is on its way.
const SILENCE_MAX: Duration = Duration::from_mins(1);

impl Client {
    /// Has the server write a backup, and begins to read it.
    pub async fn backup(&self) -> Result<Backup, Error> {
        let request = self.everywhere(Method::GET, &["backup"]);
        let begun = timeout(BEGIN_MAX, self.send(request)).await;
        let answer = begun.map_err(|_| ended(self))??;
        Ok(Backup {
            client: self.clone(),
            answer,
        })
    }
}

fn ended(client: &Client) -> Error {
    Error::Ended {
        server: client.server().to_owned(),
    }
}

/// A backup on its way, however long it is.
#[derive(Debug)]
pub struct Backup {
    client: Client,
    answer: Response,
}

impl Backup {
    /// How long it will be.
    pub fn bytes(&self) -> Option<u64> {
        self.answer.content_length()
    }

    /// The next bytes; none at the end. One that was cut off is an error.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match timeout(SILENCE_MAX, self.answer.chunk()).await {
            Ok(Ok(piece)) => Ok(piece.map(|piece| piece.to_vec())),
            Ok(Err(cause)) => Err(self.client.transport(cause)),
            Err(_) => Err(ended(&self.client)),
        }
    }
}
