//! Files of hosts, brought here: in pieces that are asked for, and compared with what the host
//! says is in them.
//!
//! The library takes from the wire whatever comes and waits for whoever reads too slowly, and with
//! it waits all that shares the connection. So a host sends no more than it was asked for, and
//! never more is asked for than finds room on the way.

use std::time::Duration;

use bytes::Bytes;
use russh::ChannelMsg;
use sha2::Sha256;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::sleep;
use zeroize::Zeroizing;

use super::frame::{self, Input};
use super::output::Output;
use super::run::{Talk, heard};
use super::verdict::{self, Ended};
use super::{Connections, Door, Keys, Log};
use crate::artifacts::Digest;
use crate::error::{Error, Kind};
use crate::program::{Program, Report, quoted};

/// How many bytes are asked for at a time; two pieces are on their way at once.
const PIECE: u64 = 512 * 1024;

/// What a program ends with that saw its file change.
const CHANGED: u32 = 9;

/// A file that a host shall send.
#[derive(Clone, Copy)]
pub struct Pull<'a> {
    /// Where it is, an absolute path.
    pub path: &'a str,
    /// The most bytes it may have.
    pub size_max: u64,
    /// How long it may take.
    pub limit: Duration,
}

/// Where a file goes.
pub type Sink<'a> = &'a mut (dyn AsyncWrite + Send + Unpin);

/// What a host says is in a file.
type Told = (u64, Digest);

/// Tells what is in the file, and then sends a piece for each line that it reads. What it sends is
/// not looked at for marks, so how it ended is told by its status.
const PROGRAM: &str = r#"
failed() { echo "::slipway failed $1 $2"; exit 1; }
state() { stat -Lc '%i %s %y' /proc/self/fd/4; }
[ -e "$path" ] || failed HOST-033 "there is no $path"
[ -f "$path" ] || failed HOST-033 "$path is no plain file"
exec 4<"$path" || exit 1
was=$(state) && size=$(stat -Lc %s /proc/self/fd/4) || exit 1
[ "$size" -le "$most" ] || failed HOST-034 "$path has $size bytes, and at most $most are taken"
sum=$(sha256sum </proc/self/fd/4) || exit 1
echo "::slipway fact size $size"
echo "::slipway fact sha256 ${sum%% *}"
echo '::slipway ready'
while [ "$size" -gt 0 ]; do
  read -r more || exit 1
  head -c "$piece" <&4 || exit 1
  [ "$(state)" = "$was" ] || exit 9
  size=$((size - piece))
done
exit 0
"#;

impl Connections {
    /// Brings a file of a host here; answers its bytes and its digest, which is what the host said.
    ///
    /// What was written when it ends with an error is worth nothing. It is never whole in memory.
    pub async fn fetch(
        &self,
        door: &Door,
        keys: &dyn Keys,
        (pull, into): (Pull<'_>, Sink<'_>),
        log: Log<'_>,
        cancel: impl Future<Output = ()> + Send,
    ) -> Result<(u64, Digest), Error> {
        let Pull { path, size_max, .. } = pull;
        let head = format!("path={}\nmost={size_max}\npiece={PIECE}\n", quoted(path));
        let program = Program {
            title: format!("fetch {path}"),
            text: Zeroizing::new(head + PROGRAM),
            limit: pull.limit,
        };
        tokio::pin!(cancel);
        let title = program.title.as_str();
        let called_off = || Err(verdict::called_off(door, title));
        let mut talk = tokio::select! {
            biased;
            () = &mut cancel => return called_off(),
            talk = self.talk(door, keys, title) => talk?,
        };
        let pulling = Pulling {
            door,
            program: &program,
            log,
        };
        // Whoever drops the talk ends the program.
        tokio::select! {
            biased;
            () = &mut cancel => called_off(),
            () = sleep(pull.limit) => Err(verdict::hung(door, &program, true)),
            pulled = pulling.pull(&mut talk, into) => pulled,
        }
    }
}

struct Pulling<'a> {
    door: &'a Door,
    program: &'a Program,
    log: Log<'a>,
}

impl Pulling<'_> {
    async fn pull(&self, talk: &mut Talk, into: Sink<'_>) -> Result<Told, Error> {
        let (size, sha256) = self.begin(talk).await?;
        let mut digest = <Sha256 as sha2::Digest>::new();
        let mut output = Output::new(self.log);
        let (mut asked, mut come) = (0, 0);
        let mut ended = None;
        while come < size {
            while ended.is_none() && asked < size && asked < come + 2 * PIECE {
                asked += PIECE;
                talk.say(Bytes::from_static(b"\n")).await;
            }
            match talk.read.wait().await {
                Some(ChannelMsg::Data { data }) => {
                    come += u64::try_from(data.len()).unwrap_or(u64::MAX);
                    if come > size {
                        break;
                    }
                    sha2::Digest::update(&mut digest, &data);
                    let written = into.write_all(&data).await;
                    written.map_err(|error| self.unwritten(&error))?;
                }
                Some(ChannelMsg::Close) | None => {
                    return Err(self.short(ended, output, talk));
                }
                Some(told) => ended = heard(told, &mut output).or(ended),
            }
        }
        into.flush().await.map_err(|error| self.unwritten(&error))?;
        if come == size && Digest::ended(digest) == sha256 {
            return Ok((size, sha256));
        }
        Err(self.changed())
    }

    /// Begins the program; answers what it says of the file.
    async fn begin(&self, talk: &mut Talk) -> Result<Told, Error> {
        let text = frame::framed(&self.program.text, Input::Fed);
        talk.begin(frame::command(&self.door.user), Bytes::from_owner(text))
            .await;
        let mut output = Output::new(self.log);
        let mut ended = None;
        while !output.ready() {
            match talk.read.wait().await {
                Some(ChannelMsg::Close) | None => {
                    return Err(self.short(ended, output, talk));
                }
                Some(ChannelMsg::Failure) => ended = Some(Ended::Refused),
                Some(told) => ended = heard(told, &mut output).or(ended),
            }
        }
        let report = Report {
            marks: output.finish().marks,
            ..Report::default()
        };
        let size = report.fact("size").and_then(|size| size.parse().ok());
        let sha256 = report.fact("sha256").and_then(|sum| sum.parse().ok());
        size.zip(sha256).ok_or_else(|| {
            let what = format!(
                "`{}` on {}: it tells no size or digest",
                self.program.title, self.door
            );
            Error::new(Kind::Garbage, what)
        })
    }

    /// Why it ended before all of it was there.
    fn short(&self, ended: Option<Ended>, output: Output<'_>, talk: &Talk) -> Error {
        let ended = ended.unwrap_or(Ended::Lost);
        if matches!(ended, Ended::Status(0 | CHANGED)) {
            return self.changed();
        }
        let (title, why) = (&self.program.title, talk.connection.why());
        let judged = verdict::judge(self.door, title, &ended, output.finish(), &why);
        judged.err().unwrap_or_else(|| self.changed())
    }

    fn changed(&self) -> Error {
        let what = format!(
            "`{}` on {}: it changed while it was read",
            self.program.title, self.door
        );
        Error::new(Kind::Changing, what)
    }

    fn unwritten(&self, error: &std::io::Error) -> Error {
        let what = format!(
            "`{}` on {}: could not keep what came: {error}",
            self.program.title, self.door
        );
        Error::new(Kind::OurSide, what)
    }
}
