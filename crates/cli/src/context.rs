//! What a verb works with: the options, the server, and where to write.

use crate::error::Error;
use crate::global::{Format, Global};
use crate::out::Out;
use api::{Client, Time};
use serde::Serialize;

/// What a verb works with.
pub(crate) struct Context<'a> {
    global: &'a Global,
    out: &'a mut Out,
    has_token: bool,
}

impl<'a> Context<'a> {
    pub(crate) const fn new(global: &'a Global, out: &'a mut Out) -> Self {
        Self {
            global,
            out,
            has_token: false,
        }
    }

    pub(crate) const fn global(&self) -> &Global {
        self.global
    }

    pub(crate) const fn out(&mut self) -> &mut Out {
        self.out
    }

    /// Whether a token was found for the server.
    pub(crate) const fn has_token(&self) -> bool {
        self.has_token
    }

    /// Prepares to speak to the server.
    pub(crate) fn client(&mut self) -> Result<Client, Error> {
        let client = self.global.client()?;
        self.has_token = client.has_token();
        Ok(client)
    }

    /// Shows an answer: the wire object to programs, the picture to people.
    pub(crate) fn show<T: Serialize>(
        &mut self,
        wire: &T,
        picture: impl FnOnce(Time) -> String,
    ) -> Result<(), Error> {
        let text = match self.global.output() {
            Format::Table => picture(Time::now()),
            Format::Json => json(wire)?,
            Format::Yaml => yaml(wire)?,
        };
        Ok(self.out.data(&text)?)
    }
}

pub(crate) fn json<T: Serialize>(wire: &T) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(wire).map_err(std::io::Error::other)?;
    text.push('\n');
    Ok(text)
}

pub(crate) fn yaml<T: Serialize>(wire: &T) -> Result<String, Error> {
    Ok(serde_saphyr::to_string(wire).map_err(std::io::Error::other)?)
}
