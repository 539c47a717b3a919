//! What the process says about itself, on standard error.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object per line, for collectors.
    Json,
}

/// Starts the log; `SLIPWAY_LOG` chooses what is said, in the notation of `env_filter`.
pub(crate) fn start(format: Format, level: &str) {
    let filter = EnvFilter::try_from_env("SLIPWAY_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_span_events(FmtSpan::NONE)
        .with_target(false);
    match format {
        Format::Text => log.compact().init(),
        Format::Json => log.json().init(),
    }
}
