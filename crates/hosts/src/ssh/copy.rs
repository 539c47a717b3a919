//! Files for hosts: written beside, compared, and put in place.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use russh::ChannelWriteHalf;
use russh::client::Msg;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use zeroize::Zeroizing;

use super::run::Order;
use super::{Connections, Door, Keys, Log};
use crate::error::{Error, Kind};
use crate::program::{Program, Report, quoted};

/// How much is read and sent at a time.
const CHUNK: usize = 256 * 1024;

/// What to write.
#[derive(Clone, Copy)]
pub enum Content<'a> {
    /// A file of this machine.
    File(&'a Path),
    /// These bytes, which may be secret.
    Bytes(&'a [u8]),
}

/// A file that a host shall have.
#[derive(Clone, Copy)]
pub struct Push<'a> {
    /// What is in it.
    pub content: Content<'a>,
    /// Where it goes, an absolute path; directories are made.
    pub path: &'a str,
    /// Who may read, write and execute it: a mode such as `0o644`. It belongs to root.
    pub mode: u32,
    /// What the content must be: hexadecimal digits, small.
    pub sha256: &'a str,
    /// How long it may take.
    pub limit: Duration,
}

/// What a program is given to read.
pub(super) struct Feed<'a>(Content<'a>);

/// Looks first; takes the content only when it is needed. The name of what is written beside is
/// always the same, so that a later attempt replaces what an attempt that died left there.
const PROGRAM: &str = r#"
failed() { rm -f "$new"; echo "::slipway failed $1 $2"; exit 1; }
sum() { sha256sum <"$1" | cut -c1-64; }
new=$path.slipway-new
if [ -f "$path" ] && [ ! -L "$path" ] && [ "$(sum "$path")" = "$sha256" ]; then
  if [ "$(stat -c %a:%u:%g "$path")" = "$mode:0:0" ]; then
    echo "::slipway unchanged $path"
    exit 0
  fi
  chown 0:0 "$path" && chmod "$mode" "$path" || exit 1
  echo "::slipway changed $path"
  exit 0
fi
[ ! -d "$path" ] || failed HOST-010 "$path is a directory"
mkdir -p "${path%/*}/" || exit 1
rm -f "$new"
umask 077
: >"$new" || exit 1
echo '::slipway ready'
if ! cat >"$new"; then
  rm -f "$new"
  exit 1
fi
[ "$(sum "$new")" = "$sha256" ] || failed HOST-019 "$path did not arrive as it was sent"
chown 0:0 "$new" && chmod "$mode" "$new" && sync "$new" || failed HOST-019 "$path could not be written"
mv -f "$new" "$path" || failed HOST-019 "$path could not be put in place"
echo "::slipway changed $path"
"#;

impl Connections {
    /// Gives a host a file: nothing is sent if it has it already, and the file that was there
    /// before stays until the new one is complete.
    pub async fn copy(
        &self,
        door: &Door,
        keys: &dyn Keys,
        push: Push<'_>,
        log: Log<'_>,
        cancel: impl Future<Output = ()> + Send,
    ) -> Result<Report, Error> {
        let Push { path, sha256, .. } = push;
        let head = format!(
            "path={}\nmode={:o}\nsha256={}\n",
            quoted(path),
            push.mode,
            quoted(sha256)
        );
        let program = Program {
            title: format!("copy {path}"),
            text: Zeroizing::new(head + PROGRAM),
            limit: push.limit,
        };
        let order = Order {
            door,
            keys,
            program: &program,
            feed: Some(Feed(push.content)),
        };
        let copied = self.order(order, log, cancel).await;
        match copied {
            // Whose fault it is matters: what is wrong here stays wrong.
            Err(error) if error.kind == Kind::HalfWritten => {
                let have = digest(push.content).await?;
                if have == sha256 {
                    return Err(error);
                }
                let what = format!(
                    "could not copy {path} to {door}: the file to be sent has the checksum {have}, not {sha256}"
                );
                Err(Error::new(Kind::WrongChecksum, what))
            }
            copied => copied,
        }
    }
}

/// A way to read the content.
async fn reader<'a>(content: Content<'a>) -> Result<Box<dyn AsyncRead + Send + Unpin + 'a>, Error> {
    match content {
        Content::Bytes(bytes) => Ok(Box::new(bytes)),
        Content::File(path) => match tokio::fs::File::open(path).await {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(unreadable(content, &error)),
        },
    }
}

fn unreadable(content: Content<'_>, error: &std::io::Error) -> Error {
    let name = match content {
        Content::File(path) => path.display().to_string(),
        Content::Bytes(_) => "the content".to_owned(),
    };
    Error::new(Kind::NoArtifact, format!("could not read {name}: {error}"))
}

/// The next part of the content; empty at its end.
async fn part(
    content: Content<'_>,
    reader: &mut (dyn AsyncRead + Send + Unpin),
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let mut part = Zeroizing::new(vec![0; CHUNK]);
    let mut length = 0;
    // Whole parts: a file is read in small pieces otherwise.
    while length < CHUNK {
        match reader.read(&mut part[length..]).await {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) => return Err(unreadable(content, &error)),
        }
    }
    part.truncate(length);
    Ok(part)
}

/// The checksum of what was to be sent.
async fn digest(content: Content<'_>) -> Result<String, Error> {
    let mut reader = reader(content).await?;
    let mut digest = Sha256::new();
    loop {
        let part = part(content, &mut reader).await?;
        if part.is_empty() {
            let digest = digest.finalize();
            return Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        digest.update(part.as_slice());
    }
}

impl Feed<'_> {
    /// Sends all of it, and that it was all.
    pub(super) async fn send(&self, write: &ChannelWriteHalf<Msg>) -> Result<(), Error> {
        let mut reader = reader(self.0).await?;
        loop {
            let part = part(self.0, &mut reader).await?;
            let last = part.is_empty();
            let sent = if last {
                write.eof().await
            } else {
                write.data_bytes(Bytes::from_owner(part)).await
            };
            // That it cannot be sent is told by the other side, too.
            if last || sent.is_err() {
                return Ok(());
            }
        }
    }
}
