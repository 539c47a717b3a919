//! What a change may take away, as people say it.

use api::client::Allow;

/// What a change may take away.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Allowing {
    /// Allow the removal of this share of machines at once
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(..=100))]
    allow_blast: Option<u8>,

    /// Allow machines to go together with data that their cluster keeps on them
    #[arg(long)]
    allow_data_loss: bool,
}

impl Allowing {
    /// The flags, as they are said again.
    pub(crate) fn flags(self) -> String {
        let mut flags = String::new();
        if let Some(percent) = self.allow_blast {
            flags.push_str(&format!(" --allow-blast {percent}"));
        }
        if self.allow_data_loss {
            flags.push_str(" --allow-data-loss");
        }
        flags
    }
}

impl From<Allowing> for Allow {
    fn from(allowing: Allowing) -> Self {
        Self {
            blast: allowing.allow_blast,
            data_loss: allowing.allow_data_loss,
        }
    }
}
