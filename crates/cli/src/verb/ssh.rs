//! `slipway ssh`: enters a machine by the system's own SSH client, through the server.

mod relay;
mod room;

use crate::context::Context;
use crate::error::Error;
use api::Exit;
use room::Room;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// What shells report of a program that a signal ended begins here.
const SIGNALLED: i32 = 128;

/// Arguments of `slipway ssh`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway ssh edge-compute-02
  slipway ssh edge-compute-02 -- journalctl -u kubelet -n 50
  slipway ssh edge-brain-01 --option 'LocalForward 8080 localhost:80'
  slipway ssh edge-compute-02 --keep way && scp -F way/config core.gz edge-compute-02:/tmp/

The server lets a key that is made for this one visit in for five minutes and carries what is said;
only the machine can read it. Who entered which machine is audited. The exit status is that of ssh.")]
pub struct Arguments {
    /// The machine
    #[arg(value_parser = api::argument::name)]
    machine: String,

    /// An option for ssh, as a line of its configuration; may be given several times
    #[arg(long, value_name = "LINE", value_parser = one_line)]
    option: Vec<String>,

    /// Do not enter: write what ssh, scp and rsync need to this new directory, readable by you alone
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    keep: Option<PathBuf>,

    /// Carry bytes between standard input, the machine and standard output: what ssh runs
    #[arg(long, hide = true, conflicts_with_all = ["keep", "command", "option"])]
    relay: bool,

    /// What to run there instead of a shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn one_line(text: &str) -> Result<String, String> {
    if text.contains(['\n', '\r', '\0']) {
        return Err("it must be one line".to_owned());
    }
    Ok(text.to_owned())
}

pub(crate) async fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Arguments {
        machine,
        option,
        keep,
        relay,
        command,
    } = arguments;
    let client = context.client()?;
    if relay {
        return relay::run(&client, &machine).await;
    }
    let room = match keep {
        Some(directory) => Room::kept(&directory)?,
        None => Room::passing()?,
    };
    let guest = api::GuestRequest {
        public_key: room.new_key().await?,
    };
    let view = client.let_in(&machine, &guest).await?;
    room.furnish(&view, &option, context.global())?;
    if let Some(directory) = room.stay() {
        let shown = directory.display();
        context.show(&view, |_| {
            format!("ssh -F {shown}/config {machine}\nscp -F {shown}/config FILE {machine}:\n")
        })?;
        let until = &view.until;
        context
            .out()
            .say(&format!("the key is let in until {until}"));
        return Ok(Exit::Done);
    }
    entered(&room, &machine, &command).await
}

/// Runs ssh to its end; what it needs is gone afterwards.
async fn entered(room: &Room, machine: &str, command: &[String]) -> Result<Exit, Error> {
    // A terminal sends these to ssh as well, which knows what they mean there: we stay to tidy up.
    let mut keys = signal(SignalKind::interrupt())?;
    let mut quits = signal(SignalKind::quit())?;
    let mut ends = signal(SignalKind::terminate())?;
    let mut hangs = signal(SignalKind::hangup())?;
    let mut ssh = Command::new(room::SSH);
    ssh.arg("-F").arg(room.config()).arg(machine).args(command);
    let mut child = ssh
        .kill_on_drop(true)
        .spawn()
        .map_err(room::missing(room::SSH))?;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(as_it_ended(status?)),
            _ = keys.recv() => {}
            _ = quits.recv() => {}
            _ = ends.recv() => return Ok(of_signal(SignalKind::terminate())),
            _ = hangs.recv() => return Ok(of_signal(SignalKind::hangup())),
        }
    }
}

fn of_signal(kind: SignalKind) -> Exit {
    theirs(SIGNALLED + kind.as_raw_value())
}

fn as_it_ended(status: ExitStatus) -> Exit {
    let signalled = || status.signal().map(|signal| SIGNALLED + signal);
    theirs(status.code().or_else(signalled).unwrap_or(SIGNALLED))
}

fn theirs(code: i32) -> Exit {
    u8::try_from(code).map_or(Exit::Failed, Exit::Theirs)
}
