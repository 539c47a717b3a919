//! `slipway simulate`: a rehearsal in a world where nothing is at stake.

use super::plan::ensure_newline;
use crate::context::Context;
use crate::error::Error;
use crate::source::Source;
use api::Exit;
use clap::builder::PossibleValuesParser;

/// The faults that the simulator knows.
const PROFILES: [&str; 6] = ["none", "flaky", "slow", "lossy", "crashes", "storm"];

/// Arguments of `slipway simulate`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  slipway simulate -f examples/hello.yaml --seed 7 --faults storm"
)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,

    /// The same number tells the same story
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Which faults to let loose
    #[arg(long, value_name = "PROFILE", value_parser = PossibleValuesParser::new(PROFILES))]
    faults: Option<String>,
}

pub(crate) async fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    let text = arguments.source.read()?;
    let client = context.client()?;
    let told = client
        .simulate(&text, arguments.seed, arguments.faults.as_deref())
        .await?;
    context.show(&told, |_| ensure_newline(&told.text))?;
    if told.converged {
        return Ok(Exit::Done);
    }
    context
        .out()
        .say("the simulated world did not become as declared");
    Ok(Exit::Failed)
}
