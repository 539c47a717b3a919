//! Writes tar archives that depend on nothing but what is put in.
//!
//! POSIX ustar: sorted by path, one time for all, no names of users, no extensions.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

/// Archives are made of blocks of this many bytes.
const BLOCK: usize = 512;

/// One file, directory or link.
struct Entry {
    what: What,
    mode: u32,
    owner: u32,
}

/// What an entry is.
enum What {
    File(Vec<u8>),
    Directory,
    /// Leads to this path.
    Link(String),
}

impl What {
    /// The bytes that follow the header.
    fn content(&self) -> &[u8] {
        match self {
            Self::File(content) => content,
            Self::Directory | Self::Link(_) => &[],
        }
    }
}

/// An archive that is being put together.
pub(crate) struct Archive {
    entries: BTreeMap<String, Entry>,
    time: u64,
}

impl Archive {
    /// An empty archive whose files all have the same time, in seconds since 1970.
    pub(crate) fn new(time: u64) -> Self {
        Self {
            entries: BTreeMap::new(),
            time,
        }
    }

    /// Adds a file of root's.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: impl Into<Vec<u8>>) {
        let entry = Entry {
            what: What::File(content.into()),
            mode,
            owner: 0,
        };
        self.entries.insert(path.to_owned(), entry);
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, path: &str, to: &str) {
        let entry = Entry {
            what: What::Link(to.to_owned()),
            mode: 0o777,
            owner: 0,
        };
        self.entries.insert(path.to_owned(), entry);
    }

    /// Adds a directory; user and group have the same number.
    pub(crate) fn directory(&mut self, path: &str, mode: u32, owner: u32) {
        let entry = Entry {
            what: What::Directory,
            mode,
            owner,
        };
        self.entries.insert(format!("{path}/"), entry);
    }

    /// The bytes of the archive.
    pub(crate) fn finish(self) -> Result<Vec<u8>> {
        let sizes = self.entries.values().map(|entry| {
            let content = entry.what.content().len();
            BLOCK + content.next_multiple_of(BLOCK)
        });
        // Programs are large, and growing by doubling would take twice their memory.
        let mut archive = Vec::with_capacity(sizes.sum::<usize>() + 2 * BLOCK);
        for (path, entry) in &self.entries {
            let head = header(path, entry, self.time)
                .with_context(|| format!("could not put {path} into an archive"))?;
            archive.extend(head);
            archive.extend(entry.what.content());
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
    let size = entry.what.content().len();
    octal(&mut block, 100, 8, entry.mode.into())?;
    octal(&mut block, 108, 8, entry.owner.into())?;
    octal(&mut block, 116, 8, entry.owner.into())?;
    octal(&mut block, 124, 12, u64::try_from(size)?)?;
    octal(&mut block, 136, 12, time)?;
    put(&mut block, 148, b"        "); // the sum is made with blanks in its place
    let kind = match &entry.what {
        What::File(_) => b"0",
        What::Link(to) => {
            ensure!(to.len() <= 100, "it leads to a path that is too long");
            put(&mut block, 157, to.as_bytes());
            b"2"
        }
        What::Directory => b"5",
    };
    put(&mut block, 156, kind);
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
        archive.link("sh", "bin/b");
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
                "lrwxrwxrwx 0/0 0 1970-01-02 00:00 sh -> bin/b",
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
        let mut archive = Archive::new(0);
        archive.link("a", &"a".repeat(101));
        assert!(archive.finish().is_err());
    }
}
