//! The scripts of this crate, read.

use sim::story::Story;
use std::path::{Path, PathBuf};

/// One story, with its name and the file that holds what it tells.
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) golden: PathBuf,
    pub(crate) story: Story,
}

/// Every story, in the order of their names; `SLIPWAY_STORY` asks for those alone whose names have
/// it in them, for whoever writes one.
pub(crate) fn scripts() -> Vec<Script> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("stories");
    let entries = std::fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "txt"));
    if let Ok(part) = std::env::var("SLIPWAY_STORY") {
        paths.retain(|path| path.display().to_string().contains(&part));
    }
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let story = Story::read(&text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        Script {
            name,
            golden: path.with_extension("out"),
            story,
        }
    };
    paths.into_iter().map(read).collect()
}
