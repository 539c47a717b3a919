//! People who enter a machine themselves: their key is let in for some minutes, and their bytes are
//! carried to the machine's SSH server, by the way on which we come ourselves.

use super::Hosts;
use crate::error::{Error, Kind};
use crate::program::{Program, quoted};
use crate::ssh::Wire;
use driver::Context;
use model::access::{GuestKey, Welcome};
use model::cluster::Machine;
use model::id::ClusterId;
use model::time::Timestamp;
use std::time::Duration;

/// How long a machine may take to let somebody in.
const LET_IN_MAX: Duration = Duration::from_secs(15);

/// What lets a key in; `$user`, `$key` and `$seconds` say whose and for how long.
const LET_IN: &str = include_str!("let-in.sh");

impl Hosts {
    /// Lets a key into a machine for some time; keys whose time has passed are taken out.
    pub async fn let_in(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        key: &GuestKey,
        time: Duration,
    ) -> Result<Welcome, Error> {
        let entry = self.entry(cx, cluster, machine).await?;
        let program = letting_in(&entry.door.user, key, time);
        let report = self.run(cx, &entry, &program).await?;
        let garbage = |what: &str| {
            let what = format!("`{}` on {}: {what}", program.title, entry.door);
            Error::new(Kind::Garbage, what)
        };
        let until = report.fact("until").and_then(|text| text.parse().ok());
        let until: i64 = until.ok_or_else(|| garbage("it does not say until when"))?;
        let host_key = entry.seen();
        Ok(Welcome {
            user: entry.door.user.clone(),
            port: entry.door.port,
            host_key: host_key.ok_or_else(|| garbage("its host key is not known"))?,
            until: Timestamp::from_millis(until.saturating_mul(1000)),
        })
    }

    /// A byte stream to the SSH server of a machine, as somebody would have who stands where we do.
    pub async fn reach(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
    ) -> Result<Box<dyn Wire>, Error> {
        let entry = self.entry(cx, cluster, machine).await?;
        let reaching = self.inner.connections.reach(&entry.door, &entry);
        Self::unless_told(cx, reaching).await
    }
}

/// The program that lets a key in.
fn letting_in(user: &str, key: &GuestKey, time: Duration) -> Program {
    let text = format!(
        "user={}\nkey={}\nseconds={}\n{LET_IN}",
        quoted(user),
        quoted(key.as_str()),
        time.as_secs()
    );
    Program {
        title: "let in".to_owned(),
        text: text.into(),
        limit: LET_IN_MAX,
    }
}
