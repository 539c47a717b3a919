//! Private keys: read, made, and the half of them that everybody may see.

use model::secret::Secret;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, HashAlg, PrivateKey, PublicKey, decode_secret_key, key::safe_rng};

use crate::error::{Error, Kind};

/// Reads a private key; what the text is wrong in stays with us, it is secret.
pub(super) fn read(secret: &Secret) -> Result<PrivateKey, Error> {
    let bad = |why: &str| Error::new(Kind::BadKey, format!("could not read a private key: {why}"));
    let text = secret
        .expose_text()
        .ok_or_else(|| bad("it is not a text"))?;
    match decode_secret_key(text, None) {
        Ok(key) if !key.is_encrypted() => Ok(key),
        Ok(_) | Err(russh::keys::Error::KeyIsEncrypted) => Err(bad("it has a passphrase")),
        Err(_) if text.contains("ENCRYPTED") => Err(bad("it has a passphrase")),
        Err(_) => Err(bad("the text is no private key")),
    }
}

/// Makes a key: its private half in OpenSSH's format, and the line for `authorized_keys`.
pub fn new_key(comment: &str) -> Result<(Secret, String), Error> {
    let failed = |why| Error::new(Kind::BadKey, format!("could not make an SSH key: {why}"));
    let mut key = PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).map_err(failed)?;
    key.set_comment(comment);
    let mut text = key.to_openssh(LineEnding::LF).map_err(failed)?;
    let public = key.public_key().to_openssh().map_err(failed)?;
    Ok((Secret::from_text(std::mem::take(&mut *text)), public))
}

/// The same private key as OpenSSH's own programs read it, whatever it was written in.
pub(crate) fn openssh(secret: &Secret) -> Result<Secret, Error> {
    let mut text = read(secret)?.to_openssh(LineEnding::LF).map_err(|why| {
        let what = format!("could not write a private key: {why}");
        Error::new(Kind::BadKey, what)
    })?;
    Ok(Secret::from_text(std::mem::take(&mut *text)))
}

/// The line for `authorized_keys` that belongs to a private key.
pub fn public_half(secret: &Secret) -> Result<String, Error> {
    line(read(secret)?.public_key())
}

/// A public key as a line of OpenSSH's.
pub(super) fn line(key: &PublicKey) -> Result<String, Error> {
    key.to_openssh()
        .map_err(|why| Error::new(Kind::BadKey, format!("could not write a public key: {why}")))
}

/// What people compare keys by.
pub(super) fn fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_was_made_can_be_read() {
        let (private, public) = new_key("slipway of lab").unwrap();
        assert!(public.starts_with("ssh-ed25519 AAAA"), "{public}");
        assert!(public.ends_with(" slipway of lab"), "{public}");
        assert_eq!(public_half(&private), Ok(public.clone()));
        let again = openssh(&private).unwrap();
        assert_eq!(public_half(&again), Ok(public));
        assert!(again.expose_text().unwrap().ends_with("KEY-----\n"));
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_repeated() {
        let cases = [
            ("hunter2", "no private key"),
            ("", "no private key"),
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n",
                "no private key",
            ),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
                "passphrase",
            ),
        ];
        for (text, why) in cases {
            let error = read(&Secret::from_text(text.to_owned())).unwrap_err();
            assert_eq!(error.kind, Kind::BadKey);
            assert!(error.what.contains(why), "{error}");
            assert!(!error.what.contains("hunter2"), "{error}");
        }
    }
}
