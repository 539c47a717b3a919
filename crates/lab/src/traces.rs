//! What a secret would leave behind, for tests that search where it must not be.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// What of a value would be found in a copy, in each form that somebody may store it in: a
/// part from its middle as it is, in hexadecimal digits, and in base64 wherever that begins.
///
/// The value must be long enough to be nobody else's: 27 bytes.
pub fn traces(value: &[u8]) -> Vec<Vec<u8>> {
    let part = &value[value.len() / 3..][..18];
    let hex: String = part.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut traces = vec![
        part.to_vec(),
        hex.to_uppercase().into_bytes(),
        hex.into_bytes(),
    ];
    for cut in 0..3 {
        for alphabet in [STANDARD, URL_SAFE] {
            let encoded = alphabet.encode(&part[cut..]).into_bytes();
            // The last characters depend on what follows.
            traces.push(encoded[..encoded.len() - 4].to_vec());
        }
    }
    traces
}

/// Which of these are in a copy. Gigabytes are looked through, so only where the first two
/// bytes fit is anything compared.
pub fn found<'a>(copy: &[u8], traces: &'a [Vec<u8>]) -> Vec<&'a [u8]> {
    let at = |bytes: &[u8]| usize::from(bytes[0]) << 8 | usize::from(bytes[1]);
    let mut begins = vec![false; 1 << 16];
    for trace in traces {
        begins[at(trace)] = true;
    }
    let mut found = Vec::new();
    for (index, pair) in copy.windows(2).enumerate() {
        if begins[at(pair)] {
            let here = traces
                .iter()
                .filter(|trace| copy[index..].starts_with(trace));
            found.extend(here.map(Vec::as_slice));
        }
    }
    found
}
