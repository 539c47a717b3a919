//! The seal: XChaCha20-Poly1305 with a random nonce, bound to what it is for.
//!
//! The nonce has 192 bits, so drawing it at random is safe for as many values as one key
//! will ever see, and no counter has to survive a restart or be shared between servers.
//! What is bound is not stored: it is given again when the seal is opened, and the seal
//! opens only if it is the same to the last byte.

use chacha20poly1305::aead::{AeadInPlace as _, KeyInit as _};
use chacha20poly1305::{Tag, XChaCha20Poly1305, XNonce};
use model::sealed::{KeyId, Place};
use model::secret::Secret;

use crate::{Error, text};

/// The longest value that is sealed: several times the largest state that tools are known to
/// keep, and small enough to be held in memory many times over.
pub const VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What sealed text begins with, so that another way of sealing can be told from this one.
const FORMAT: &str = "x1.";

const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// What a seal is bound to: parts in order, each preceded by its length, so that no two lists
/// of parts give the same bytes.
pub(crate) struct Bound(Vec<u8>);

impl Bound {
    fn of(parts: &[&str]) -> Self {
        let mut bytes = Vec::new();
        for part in parts {
            let len = u64::try_from(part.len()).unwrap_or(u64::MAX);
            bytes.extend_from_slice(&len.to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        Self(bytes)
    }

    /// A value is bound to its data key and its place.
    pub(crate) fn value(key: KeyId, place: &Place) -> Self {
        Self::of(&[
            "slipway value",
            &key.to_string(),
            place.project.as_str(),
            &place.owner.to_string(),
            place.entry.as_str(),
        ])
    }

    /// A wrapped data key is bound to its id and to the master key that wraps it.
    pub(crate) fn data_key(key: KeyId, by: &str) -> Self {
        Self::of(&["slipway data key", &key.to_string(), by])
    }
}

/// Seals `plain` under `key`.
pub(crate) fn seal(key: &Secret, plain: &[u8], bound: &Bound) -> Result<String, Error> {
    let too_large = || Error::TooLarge {
        len: plain.len(),
        max: VALUE_BYTES_MAX,
    };
    if plain.len() > VALUE_BYTES_MAX {
        return Err(too_large());
    }
    let mut nonce = [0; NONCE_BYTES];
    text::random(&mut nonce)?;
    // Of the final size from the start: memory that grows leaves the plain bytes behind.
    let mut bytes = Vec::with_capacity(NONCE_BYTES + plain.len() + TAG_BYTES);
    bytes.extend_from_slice(&nonce);
    bytes.extend_from_slice(plain);
    let tag = XChaCha20Poly1305::new_from_slice(key.expose())
        .ok()
        .and_then(|cipher| {
            let body = &mut bytes[NONCE_BYTES..];
            cipher
                .encrypt_in_place_detached(&XNonce::from(nonce), &bound.0, body)
                .ok()
        });
    let Some(tag) = tag else {
        drop(Secret::from(bytes));
        return Err(too_large());
    };
    bytes.extend_from_slice(&tag);
    Ok(format!("{FORMAT}{}", text::encode(&bytes)))
}

/// Opens what [`seal`] made of the same key and the same bound; nothing if anything differs.
pub(crate) fn open(key: &Secret, sealed: &str, bound: &Bound) -> Option<Secret> {
    let bytes = text::decode(sealed.strip_prefix(FORMAT)?.as_bytes())?;
    let (nonce, rest) = bytes.expose().split_first_chunk::<NONCE_BYTES>()?;
    let (body, tag) = rest.split_last_chunk::<TAG_BYTES>()?;
    let cipher = XChaCha20Poly1305::new_from_slice(key.expose()).ok()?;
    let mut plain = body.to_vec();
    let opened = cipher.decrypt_in_place_detached(
        &XNonce::from(*nonce),
        &bound.0,
        &mut plain,
        &Tag::from(*tag),
    );
    let plain = Secret::from(plain);
    opened.ok().map(|()| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of draft-irtf-cfrg-xchacha-03, appendix A.3.1: what we write today is what
    /// any other implementation reads.
    #[test]
    fn the_cipher_is_the_published_one() {
        let key = Secret::from((0x80..0xa0).collect::<Vec<u8>>());
        let nonce: Vec<u8> = (0x40..0x58).collect();
        let mut body = *b"Ladies and Gentlemen of the class of '99: If I could offer you \
            only one tip for the future, sunscreen would be it.";
        let bound: Vec<u8> = [
            &[0x50, 0x51, 0x52, 0x53][..],
            &(0xc0..0xc8).collect::<Vec<_>>(),
        ]
        .concat();
        let tag = XChaCha20Poly1305::new_from_slice(key.expose())
            .unwrap()
            .encrypt_in_place_detached(
                &XNonce::from(<[u8; 24]>::try_from(nonce).unwrap()),
                &bound,
                &mut body,
            )
            .unwrap();
        assert_eq!(text::hex(&body[..16]), "bd6d179d3e83d43b9576579493c0e939");
        assert_eq!(text::hex(&tag), "c0875924c1c7987947deafd8780acf49");
    }

    #[test]
    fn parts_cannot_be_shifted() {
        let bounds = [
            Bound::of(&["ab", "c"]),
            Bound::of(&["a", "bc"]),
            Bound::of(&["abc"]),
            Bound::of(&["abc", ""]),
            Bound::of(&["", "abc"]),
        ];
        for (at, one) in bounds.iter().enumerate() {
            for other in &bounds[at + 1..] {
                assert_ne!(one.0, other.0);
            }
        }
    }

    #[test]
    fn text_that_was_never_sealed_does_not_open() {
        let key = text::draw_key().unwrap();
        let bound = Bound::of(&["here"]);
        let sealed = seal(&key, b"", &bound).unwrap();
        assert!(open(&key, &sealed, &bound).is_some_and(|plain| plain.expose().is_empty()));
        let cut: String = sealed.chars().take(40).collect();
        let other = sealed.replacen("x1.", "x2.", 1);
        for wrong in ["", "x1.", "x1.AAAA", "plain", &cut, &other, &sealed[3..]] {
            assert!(open(&key, wrong, &bound).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn one_value_sealed_twice_looks_different() {
        let key = text::draw_key().unwrap();
        let bound = Bound::of(&["here"]);
        assert_ne!(
            seal(&key, b"same", &bound).unwrap(),
            seal(&key, b"same", &bound).unwrap()
        );
    }

    #[test]
    fn a_value_has_a_largest_size() {
        let key = text::draw_key().unwrap();
        let refused = seal(&key, &vec![0; VALUE_BYTES_MAX + 1], &Bound::of(&[]));
        assert_eq!(refused.unwrap_err().code(), "SEAL-011");
    }
}
