//! Digests, in the digits people read them in.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

/// The SHA-256 of a file.
pub(crate) fn sha256_of(path: &Path) -> Result<String> {
    let unreadable = || format!("could not read {}", path.display());
    let mut file = File::open(path).with_context(unreadable)?;
    copied(&mut file, &mut std::io::sink()).with_context(unreadable)
}

/// Copies all that is read; answers the SHA-256 of it.
pub(crate) fn copied(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<String> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 1024 * 1024];
    loop {
        let read = from.read(&mut piece)?;
        if read == 0 {
            return Ok(hex(hasher));
        }
        hasher.update(&piece[..read]);
        to.write_all(&piece[..read])?;
    }
}

fn hex(hasher: Sha256) -> String {
    let digest = hasher.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::sha256;

    #[test]
    fn digests_are_those_that_everybody_knows() {
        assert_eq!(
            sha256(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
