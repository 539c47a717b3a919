//! Writes tar archives that depend on nothing but what is put in.
//!
//! POSIX ustar: sorted by path, one time for all, no names of users, no extensions.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

/// Archives are made of blocks of this many bytes.
const BLOCK: usize = 512;

/// One file or directory.
struct Entry {
    /// None for a directory.
    content: Option<Vec<u8>>,
    mode: u32,
    owner: u32,
}

/// An archive that is being put together.
pub(super) struct Archive {
    entries: BTreeMap<String, Entry>,
    time: u64,
}

impl Archive {
    /// An empty archive whose files all have the same time, in seconds since 1970.
    pub(super) fn new(time: u64) -> Self {
        Self {
            entries: BTreeMap::new(),
            time,
        }
    }

    /// Adds a file; user and group have the same number.
    pub(super) fn file(&mut self, path: &str, mode: u32, content: impl Into<Vec<u8>>) {
        let entry = Entry {
            content: Some(content.into()),
            mode,
            owner: 0,
        };
        self.entries.insert(path.to_owned(), entry);
    }

    /// Adds a directory; user and group have the same number.
    pub(super) fn directory(&mut self, path: &str, mode: u32, owner: u32) {
        let entry = Entry {
            content: None,
            mode,
            owner,
        };
        self.entries.insert(format!("{path}/"), entry);
    }

    /// The bytes of the archive.
    pub(super) fn finish(self) -> Result<Vec<u8>> {
        let mut archive = Vec::new();
        for (path, entry) in &self.entries {
            let head = header(path, entry, self.time)
                .with_context(|| format!("could not put {path} into an archive"))?;
            archive.extend(head);
            let content = entry.content.as_deref().unwrap_or_default();
            archive.extend(content);
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
        }
        archive.resize(archive.len() + 2 * BLOCK, 0);
        Ok(archive)
    }
}

/// The block before the content of an entry.
fn header(path: &str, entry: &Entry, time: u64) -> Result<[u8; BLOCK]> {
    let mut block = [0; BLOCK];
    ensure!(path.len() <= 100, "its path is too long");
    put(&mut block, 0, path.as_bytes());
    let size = entry.content.as_ref().map_or(0, Vec::len);
    octal(&mut block, 100, 8, entry.mode.into())?;
    octal(&mut block, 108, 8, entry.owner.into())?;
    octal(&mut block, 116, 8, entry.owner.into())?;
    octal(&mut block, 124, 12, u64::try_from(size)?)?;
    octal(&mut block, 136, 12, time)?;
    put(&mut block, 148, b"        "); // the sum is made with blanks in its place
    put(
        &mut block,
        156,
        if entry.content.is_some() { b"0" } else { b"5" },
    );
    put(&mut block, 257, b"ustar\x0000");
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    octal(&mut block, 148, 7, sum)?;
    Ok(block)
}

/// Writes `text` into the block.
fn put(block: &mut [u8; BLOCK], at: usize, text: &[u8]) {
    for (place, byte) in block.iter_mut().skip(at).zip(text) {
        *place = *byte;
    }
}

/// Writes a number in octal digits that end in a zero byte, in a field of `width`.
fn octal(block: &mut [u8; BLOCK], at: usize, width: usize, number: u64) -> Result<()> {
    let digits = width - 1;
    let text = format!("{number:0digits$o}\0");
    ensure!(text.len() == width, "a number is too large: {number}");
    put(block, at, text.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Archive;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    fn archive(reverse: bool) -> Vec<u8> {
        let mut archive = Archive::new(86_400);
        let mut files = vec![("etc/passwd", 0o644, "root\n"), ("b", 0o755, "")];
        if reverse {
            files.reverse();
        }
        for (path, mode, content) in files {
            archive.file(path, mode, content);
        }
        archive.directory("tmp", 0o1777, 0);
        archive.directory("data", 0o700, 65_532);
        archive.finish().unwrap()
    }

    #[test]
    fn tar_reads_what_was_written() {
        let mut child = Command::new("tar")
            .args(["--list", "--verbose", "--numeric-owner", "--utc"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(&archive(false)).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let listed = String::from_utf8(output.stdout).unwrap();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = listed.lines().map(words).collect();
        assert_eq!(
            lines,
            [
                "-rwxr-xr-x 0/0 0 1970-01-02 00:00 b",
                "drwx------ 65532/65532 0 1970-01-02 00:00 data/",
                "-rw-r--r-- 0/0 5 1970-01-02 00:00 etc/passwd",
                "drwxrwxrwt 0/0 0 1970-01-02 00:00 tmp/",
            ]
        );
    }

    #[test]
    fn the_order_of_writing_does_not_show() {
        assert_eq!(archive(false), archive(true));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut archive = Archive::new(0);
        archive.file(&"a".repeat(101), 0o644, "");
        assert!(archive.finish().is_err());
    }
}
