//! Proofs of git services that it is them: a signature over the body, or a word that both know.

use axum::http::HeaderMap;
use hmac::{Hmac, KeyInit as _, Mac as _};
use model::environment::git::Service;
use model::secret::Secret;
use sha2::{Digest as _, Sha256};

/// The longest name of a delivery that is kept as it is.
const DELIVERY_LEN_MAX: usize = 128;

/// Whether who sent this knows the secret. What is compared takes as long whatever differs.
pub(crate) fn proves(service: Service, secret: &Secret, headers: &HeaderMap, body: &[u8]) -> bool {
    let header = |name: &str| {
        let mut all = headers.get_all(name).iter();
        let only = (all.next(), all.next());
        match only {
            (Some(value), None) => value.to_str().ok(),
            (_, _) => None,
        }
    };
    // A secret that is empty is known to everybody.
    if known(secret).is_empty() {
        return false;
    }
    match service {
        Service::Github => header("x-hub-signature-256")
            .and_then(|value| value.strip_prefix("sha256="))
            .is_some_and(|signature| signs(secret, signature, body)),
        Service::Gitea => {
            header("x-gitea-signature").is_some_and(|signature| signs(secret, signature, body))
        }
        Service::Gitlab => header("x-gitlab-token").is_some_and(|token| same(secret, token)),
    }
}

/// What both know, without the line break that people's files end with.
fn known(secret: &Secret) -> &[u8] {
    secret.expose().trim_ascii_end()
}

/// Whether this is the signature of the body, in hexadecimal digits.
fn signs(secret: &Secret, signature: &str, body: &[u8]) -> bool {
    let Some(signature) = unhex(signature) else {
        return false;
    };
    // A key of any length will do.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(known(secret)) else {
        return false;
    };
    mac.update(body);
    mac.verify_slice(&signature).is_ok()
}

/// Whether this is the word that both know: what is compared are signatures with it, of which
/// nobody can guess a part.
fn same(secret: &Secret, token: &str) -> bool {
    let of = |key: &[u8]| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
        mac.update(b"slipway git token");
        Some(mac)
    };
    let (Some(ours), Some(theirs)) = (of(known(secret)), of(token.as_bytes())) else {
        return false;
    };
    ours.verify(&theirs.finalize().into_bytes()).is_ok()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some((digit(*high)? << 4) | digit(*low)?),
            _ => None,
        })
        .collect()
}

/// What the service says that its delivery is about.
pub(crate) fn kind(service: Service, headers: &HeaderMap) -> &str {
    let name = match service {
        Service::Github => "x-github-event",
        Service::Gitlab => "x-gitlab-event",
        Service::Gitea => "x-gitea-event",
    };
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or("nothing")
}

/// What the service calls its delivery: the same when it tries again. One without a name is called
/// by what it says.
pub(crate) fn delivery(service: Service, headers: &HeaderMap, body: &[u8]) -> String {
    let names: &[&str] = match service {
        Service::Github => &["x-github-delivery"],
        Service::Gitlab => &["idempotency-key", "x-gitlab-event-uuid"],
        Service::Gitea => &["x-gitea-delivery"],
    };
    let plain = |text: &&str| {
        let fits = (1..=DELIVERY_LEN_MAX).contains(&text.len());
        fits && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let found = names.iter().find_map(|name| {
        let value = headers.get(*name)?.to_str().ok();
        value.filter(plain)
    });
    match found {
        Some(name) => name.to_owned(),
        None => format!("sha256:{}", crate::hex(&Sha256::digest(body))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .fold(
                HeaderMap::new(),
                |mut all, (name, value): (axum::http::HeaderName, _)| {
                    all.append(name, value);
                    all
                },
            )
    }

    /// The example that GitHub's documentation gives.
    #[test]
    fn a_signature_of_github_is_known() {
        let secret = Secret::from_text("It's a Secret to Everybody".to_owned());
        let signature = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let body = b"Hello, World!";
        let github = |value: &str| {
            let headers = headers(&[("x-hub-signature-256", value)]);
            proves(Service::Github, &secret, &headers, body)
        };
        assert!(github(&format!("sha256={signature}")));
        assert!(github(&format!("sha256={}", signature.to_uppercase())));
        let gitea = headers(&[("x-gitea-signature", signature)]);
        assert!(proves(Service::Gitea, &secret, &gitea, body));
        assert!(!proves(Service::Gitea, &secret, &gitea, b"Hello, World"));
        assert!(
            !proves(Service::Github, &secret, &gitea, body),
            "another's header"
        );
        let other = Secret::from_text("another".to_owned());
        assert!(!proves(Service::Gitea, &other, &gitea, body));
        for wrong in [
            signature.to_owned(),
            format!("sha1={signature}"),
            format!("sha256={}", &signature[2..]),
            format!("sha256={}", &signature[1..]),
            format!("sha256={signature}00"),
            "sha256=".to_owned(),
            "sha256=zz".to_owned(),
            String::new(),
        ] {
            assert!(!github(&wrong), "{wrong}");
        }
        let twice = headers(&[
            ("x-gitea-signature", signature),
            ("x-gitea-signature", signature),
        ]);
        assert!(!proves(Service::Gitea, &secret, &twice, body));
    }

    #[test]
    fn a_token_of_gitlab_is_known() {
        let secret = Secret::from_text("hunter2".to_owned());
        let gitlab = |token: &str| {
            let headers = headers(&[("x-gitlab-token", token)]);
            proves(Service::Gitlab, &secret, &headers, b"anything")
        };
        assert!(gitlab("hunter2"));
        for wrong in ["hunter", "hunter22", "", "HUNTER2"] {
            assert!(!gitlab(wrong), "{wrong}");
        }
        let none = HeaderMap::new();
        assert!(!proves(Service::Gitlab, &secret, &none, b""));
        let file = Secret::from_text("hunter2\n".to_owned());
        let headers_of_file = headers(&[("x-gitlab-token", "hunter2")]);
        assert!(proves(Service::Gitlab, &file, &headers_of_file, b""));
        let empty = Secret::from_text("\n".to_owned());
        let nothing = headers(&[("x-gitlab-token", "")]);
        assert!(!proves(Service::Gitlab, &empty, &nothing, b""));
    }

    #[test]
    fn a_delivery_has_a_name() {
        let named = headers(&[("idempotency-key", "a-1"), ("x-gitlab-event-uuid", "b-2")]);
        assert_eq!(delivery(Service::Gitlab, &named, b"x"), "a-1");
        let older = headers(&[("x-gitlab-event-uuid", "b-2")]);
        assert_eq!(delivery(Service::Gitlab, &older, b"x"), "b-2");
        let unnamed = delivery(Service::Github, &older, b"x");
        assert!(unnamed.starts_with("sha256:2d711642b726"), "{unnamed}");
        let long = "a".repeat(200);
        let odd = headers(&[("x-github-delivery", &long)]);
        assert_eq!(delivery(Service::Github, &odd, b"x"), unnamed);
    }
}
