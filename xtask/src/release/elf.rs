//! Reads of an ELF file what tells whether it needs anything from the machine it runs on.
//!
//! Only what Rust produces for 64-bit Linux is read: little endian, 64 bits. Offsets come from the
//! file and are believed by nobody: whatever lies outside is an error.

use anyhow::{Context, Result, bail, ensure};

const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;

/// What was found in a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// The processor it is for, as Rust calls it.
    pub(super) architecture: &'static str,
    /// It asks for a loader of this machine.
    pub(super) interpreter: bool,
    /// How many shared libraries it asks for.
    pub(super) needed: usize,
    /// It carries debug information.
    pub(super) debug_info: bool,
}

impl Facts {
    /// Reads a program.
    pub(super) fn read(file: &[u8]) -> Result<Self> {
        ensure!(file.starts_with(b"\x7fELF"), "not an ELF file");
        ensure!(
            bytes::<2>(file, 4)? == [2, 1],
            "not for 64 bits, little endian"
        );
        let architecture = match half(file, 0x12)? {
            0x3e => "x86_64",
            0xb7 => "aarch64",
            other => bail!("for a processor nobody expects here, number {other}"),
        };
        let mut facts = Self {
            architecture,
            interpreter: false,
            needed: 0,
            debug_info: debug_info(file)?,
        };
        for segment in table(file, 0x20, 0x36)? {
            match word(segment, 0)? {
                PT_INTERP => facts.interpreter = true,
                PT_DYNAMIC => {
                    let dynamic = part(file, long(segment, 8)?, long(segment, 0x20)?)?;
                    facts.needed += needed(dynamic)?;
                }
                _ => {}
            }
        }
        Ok(facts)
    }

    /// Refuses a program that needs more than a kernel, or is for another processor.
    pub(super) fn self_contained(&self, architecture: &str) -> Result<()> {
        ensure!(
            self.architecture == architecture,
            "it is for {} and not for {architecture}",
            self.architecture
        );
        ensure!(!self.interpreter, "it asks for a loader (PT_INTERP)");
        ensure!(
            self.needed == 0,
            "it asks for {} shared libraries (DT_NEEDED)",
            self.needed
        );
        ensure!(!self.debug_info, "it carries debug information");
        Ok(())
    }
}

/// How many libraries a dynamic section names; a static program that can be placed anywhere in
/// memory has such a section too, and names none.
fn needed(dynamic: &[u8]) -> Result<usize> {
    let mut count = 0;
    for entry in dynamic.chunks_exact(16) {
        match long(entry, 0)? {
            DT_NULL => break,
            DT_NEEDED => count += 1,
            _ => {}
        }
    }
    Ok(count)
}

/// Whether a section with debug information is there.
fn debug_info(file: &[u8]) -> Result<bool> {
    let sections: Vec<&[u8]> = table(file, 0x28, 0x3a)?.collect();
    let Some(names) = sections.get(usize::from(half(file, 0x3e)?)) else {
        return Ok(false); // no sections at all: stripped to the bone
    };
    let names = part(file, long(names, 0x18)?, long(names, 0x20)?)?;
    for section in sections {
        let from = usize::try_from(word(section, 0)?).context("a name is too far away")?;
        let name = names.get(from..).context("the name of a section is cut")?;
        // By their whole names: `.debug_gdb_scripts` is a few bytes that stay.
        if [&b".debug_info\0"[..], b".debug_line\0", b".zdebug_info\0"]
            .iter()
            .any(|wanted| name.starts_with(wanted))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The rows of a table whose offset is at `offset_at`, size of a row and number of rows at `shape_at`.
fn table(
    file: &[u8],
    offset_at: usize,
    shape_at: usize,
) -> Result<std::slice::ChunksExact<'_, u8>> {
    let size = usize::from(half(file, shape_at)?);
    let count = usize::from(half(file, shape_at + 2)?);
    if count == 0 {
        return Ok([].chunks_exact(1));
    }
    ensure!(size > 0, "a table has rows without size");
    let offset = usize::try_from(long(file, offset_at)?).context("a table is too far away")?;
    let rows = file
        .get(offset..)
        .and_then(|rest| rest.get(..size * count))
        .context("a table is cut")?;
    Ok(rows.chunks_exact(size))
}

/// `length` bytes from `offset`.
fn part(file: &[u8], offset: u64, length: u64) -> Result<&[u8]> {
    let offset = usize::try_from(offset).context("a part is too far away")?;
    let length = usize::try_from(length).context("a part is too long")?;
    file.get(offset..)
        .and_then(|rest| rest.get(..length))
        .context("a part is cut")
}

/// A number of 2 bytes.
fn half(data: &[u8], at: usize) -> Result<u16> {
    Ok(u16::from_le_bytes(bytes(data, at)?))
}

/// A number of 4 bytes.
fn word(data: &[u8], at: usize) -> Result<u32> {
    Ok(u32::from_le_bytes(bytes(data, at)?))
}

/// A number of 8 bytes.
fn long(data: &[u8], at: usize) -> Result<u64> {
    Ok(u64::from_le_bytes(bytes(data, at)?))
}

fn bytes<const N: usize>(data: &[u8], at: usize) -> Result<[u8; N]> {
    data.get(at..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .context("the file is cut")
}

#[cfg(test)]
mod tests {
    use super::Facts;

    /// A section header: only its name, offset and size are filled in.
    fn section(name: u32, offset: u64, size: u64) -> Vec<u8> {
        let mut row = vec![0; 0x40];
        row[..4].copy_from_slice(&name.to_le_bytes());
        row[0x18..0x20].copy_from_slice(&offset.to_le_bytes());
        row[0x20..0x28].copy_from_slice(&size.to_le_bytes());
        row
    }

    /// A program header: kind, offset and size in the file.
    fn segment(kind: u32, offset: u64, size: u64) -> Vec<u8> {
        let mut row = vec![0; 0x38];
        row[..4].copy_from_slice(&kind.to_le_bytes());
        row[8..0x10].copy_from_slice(&offset.to_le_bytes());
        row[0x20..0x28].copy_from_slice(&size.to_le_bytes());
        row
    }

    /// A file with these segments, dynamic entries and one section besides the names.
    fn program(segments: &[u32], dynamic: &[u64], section_name: &str) -> Vec<u8> {
        let names = format!("\0{section_name}\0");
        let dynamic: Vec<u8> = dynamic
            .iter()
            .flat_map(|tag| [tag.to_le_bytes(), [0; 8]].concat())
            .collect();
        let dynamic_at = 0x40 + 0x38 * u64::try_from(segments.len()).unwrap();
        let names_at = dynamic_at + u64::try_from(dynamic.len()).unwrap();
        let sections_at = names_at + u64::try_from(names.len()).unwrap();
        let mut file = vec![0; 0x40];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[0x12] = 0x3e;
        file[0x20] = 0x40;
        file[0x28..0x30].copy_from_slice(&sections_at.to_le_bytes());
        file[0x36] = 0x38;
        file[0x38] = u8::try_from(segments.len()).unwrap();
        file[0x3a] = 0x40;
        file[0x3c] = 2;
        file[0x3e] = 1;
        for kind in segments {
            file.extend(segment(
                *kind,
                dynamic_at,
                u64::try_from(dynamic.len()).unwrap(),
            ));
        }
        file.extend(&dynamic);
        file.extend(names.as_bytes());
        file.extend(section(1, 0, 0));
        file.extend(section(0, names_at, u64::try_from(names.len()).unwrap()));
        file
    }

    fn refused(file: &[u8]) -> String {
        let facts = Facts::read(file).unwrap();
        facts.self_contained("x86_64").unwrap_err().to_string()
    }

    #[test]
    fn a_static_program_passes_even_with_a_dynamic_section() {
        // 7 is DT_RELA; what follows DT_NULL does not count.
        let file = program(&[1, 2], &[7, 0, 1], ".text");
        let facts = Facts::read(&file).unwrap();
        facts.self_contained("x86_64").unwrap();
        let scripts = program(&[1], &[], ".debug_gdb_scripts");
        let scripts = Facts::read(&scripts).unwrap();
        scripts.self_contained("x86_64").unwrap();
        assert_eq!(
            facts.self_contained("aarch64").unwrap_err().to_string(),
            "it is for x86_64 and not for aarch64"
        );
    }

    #[test]
    fn whatever_it_needs_is_named() {
        assert_eq!(
            refused(&program(&[1, 3], &[], ".text")),
            "it asks for a loader (PT_INTERP)"
        );
        assert_eq!(
            refused(&program(&[1, 2], &[1, 7, 1, 0], ".text")),
            "it asks for 2 shared libraries (DT_NEEDED)"
        );
        assert_eq!(
            refused(&program(&[1], &[], ".debug_info")),
            "it carries debug information"
        );
    }

    #[test]
    fn the_program_of_this_test_is_dynamic_and_a_cut_one_is_an_error() {
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let facts = Facts::read(&file).unwrap();
        if cfg!(target_env = "gnu") && !cfg!(target_feature = "crt-static") {
            assert!(facts.interpreter && facts.needed > 0, "{facts:?}");
        }
        for length in [0, 3, 0x20, 0x41, file.len() / 2] {
            assert!(Facts::read(&file[..length]).is_err(), "{length}");
        }
        assert!(Facts::read(b"#!/bin/sh\n").is_err());
    }
}
