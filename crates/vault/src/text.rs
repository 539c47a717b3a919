//! Bytes as text and back, without leaving copies behind that nobody wipes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::secret::Secret;
use sha2::{Digest as _, Sha256};

use crate::Error;

/// How many bytes a key has, a data key as well as a master key.
pub(crate) const KEY_BYTES: usize = 32;

/// Draws random bytes from the system.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(Error::Random)
}

/// Draws a new key.
pub(crate) fn draw_key() -> Result<Secret, Error> {
    let mut key = vec![0; KEY_BYTES];
    random(&mut key)?;
    Ok(Secret::from(key))
}

/// Base64 of bytes that are no secret.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Base64 of a secret, as ASCII bytes with `before` and a line end around it.
///
/// Written straight into memory of its final size: whatever grows leaves a copy behind.
pub(crate) fn encode_line(before: &str, secret: &Secret) -> Secret {
    let head = before.len();
    let size = secret.expose().len().div_ceil(3) * 4;
    let mut line = vec![b'\n'; head + size + 1];
    line[..head].copy_from_slice(before.as_bytes());
    let wrote = STANDARD.encode_slice(secret.expose(), &mut line[head..head + size]);
    debug_assert_eq!(
        wrote,
        Ok(size),
        "the memory has the size that was asked for"
    );
    Secret::from(line)
}

/// The bytes behind base64 text; nothing if it is not exactly that.
pub(crate) fn decode(text: &[u8]) -> Option<Secret> {
    let mut bytes = vec![0; base64::decoded_len_estimate(text.len())];
    let len = STANDARD.decode_slice(text, &mut bytes).ok();
    bytes.truncate(len.unwrap_or(0));
    // A secret even if it is useless: what was read before the fault is wiped as well.
    let bytes = Secret::from(bytes);
    len.map(|_| bytes)
}

/// The first bytes of a digest of a key, for one use: another use gives another digest.
pub(crate) fn digest<const N: usize>(used_for: &str, key: &Secret) -> [u8; N] {
    let mut hash = Sha256::new();
    hash.update(used_for.as_bytes());
    hash.update([0]);
    hash.update(key.expose());
    let whole: [u8; 32] = hash.finalize().into();
    std::array::from_fn(|at| whole[at])
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_can_be_decoded() {
        for len in 0..70u8 {
            let secret = Secret::from((0..len).collect::<Vec<_>>());
            let line = encode_line("key ", &secret);
            let text = line.expose_text().unwrap();
            let text = text
                .strip_prefix("key ")
                .unwrap()
                .strip_suffix('\n')
                .unwrap();
            assert_eq!(text, encode(secret.expose()));
            assert_eq!(decode(text.as_bytes()).unwrap().expose(), secret.expose());
        }
    }

    #[test]
    fn what_is_nearly_base64_is_refused() {
        for wrong in ["AAA", "AAB=", "AA A=", "AAA_", "A===", "AAAA\n"] {
            assert!(decode(wrong.as_bytes()).is_none(), "{wrong:?}");
        }
    }
}
