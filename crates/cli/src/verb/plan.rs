//! `slipway plan`: the whole journey, before anything is touched.

use crate::allow::Allowing;
use crate::context::Context;
use crate::error::Error;
use crate::global::DEFAULT_PROJECT;
use crate::source::Source;
use api::Exit;

/// Arguments of `slipway plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  slipway plan -f examples/hello.yaml")]
pub struct Arguments {
    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    allow: Allowing,
}

pub(crate) async fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    let text = arguments.source.read()?;
    let client = context.client()?;
    let journey = client.plan(&text, arguments.allow.into()).await?;
    context.show(&journey, |_| ensure_newline(&journey.text))?;
    if let Some(refused) = journey.refused {
        // The journey itself tells why; here it is only about the shell.
        context.out().say(&format!(
            "applying this would be refused ({})",
            refused.code
        ));
        return Ok(refused.exit());
    }
    if !journey.kept {
        context
            .out()
            .say("the server could not write this plan down, so `apply --plan` cannot refer to it");
    } else if !journey.empty && (journey.unread.is_empty() || !journey.clusters.is_empty()) {
        let project = match client.project() {
            usual if usual == DEFAULT_PROJECT => String::new(),
            other => format!(" --project {other}"),
        };
        let file = arguments.source.file.display();
        context.out().say(&format!(
            "to do this and no more: slipway{project} apply -f {file}{} --plan {}",
            arguments.allow.flags(),
            journey.id
        ));
    }
    // What cannot be read waits for somebody, whatever becomes of the rest.
    Ok(if journey.unread.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// The text with exactly one newline at its end.
pub(super) fn ensure_newline(text: &str) -> String {
    format!("{}\n", text.trim_end())
}
