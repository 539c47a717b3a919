//! Signs requests as stores that speak S3 ask for it: AWS Signature Version 4.
//!
//! What is signed is the method, the place, the question, some headers and the digest of the body;
//! what it is signed with never leaves the process.

use hmac::{Hmac, KeyInit as _, Mac as _};
use model::secret::Secret;
use model::time::Timestamp;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// How a signature is made.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// How a moment is written.
const TIME: &str = "%Y%m%dT%H%M%SZ";

/// How many characters of a moment are its day.
const DAY: usize = 8;

/// Who signs, and for whom.
pub(super) struct Signer<'a> {
    pub(super) access_key: &'a str,
    pub(super) secret_key: &'a Secret,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
}

/// What is signed.
pub(super) struct Signed<'a> {
    pub(super) method: &'a str,
    /// The path as it is sent.
    pub(super) path: &'a str,
    /// The question as [`query`] writes it.
    pub(super) query: &'a str,
    /// Headers with names in lower case, in their order.
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// The digest of the body.
    pub(super) payload: &'a str,
    /// When, as [`moment`] writes it.
    pub(super) at: &'a str,
}

/// A moment as signatures have it.
pub(super) fn moment(at: Timestamp) -> String {
    at.moment().strftime(TIME).to_string()
}

/// The SHA-256 of a text, in hexadecimal digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// A question as it is sent and signed: its parts in their order, and written in one way only.
pub(super) fn query(parts: &[(&str, &str)]) -> String {
    let encoded = parts
        .iter()
        .map(|(name, value)| (encoded(name), encoded(value)));
    let mut encoded: Vec<_> = encoded.collect();
    encoded.sort();
    let parts = encoded
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    parts.collect::<Vec<_>>().join("&")
}

/// The name of an object as it is sent and signed.
pub(super) fn path(key: &str) -> String {
    let parts: Vec<_> = key.split('/').map(encoded).collect();
    parts.join("/")
}

/// A text with nothing in it that means something in an address.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

impl Signer<'_> {
    /// The header that proves who asks.
    pub(super) fn authorization(&self, signed: &Signed<'_>) -> Option<String> {
        let names: Vec<_> = signed.headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let headers = signed.headers.iter();
        let headers: String = headers
            .map(|(name, value)| format!("{name}:{}\n", value.trim()))
            .collect();
        let Signed {
            method,
            path,
            query,
            payload,
            at,
            ..
        } = signed;
        let canonical = format!("{method}\n{path}\n{query}\n{headers}\n{names}\n{payload}");
        let (day, _) = at.split_at_checked(DAY)?;
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let digest = digest(canonical.as_bytes());
        let text = format!("{ALGORITHM}\n{at}\n{scope}\n{digest}");
        let signature = hexadecimal(&sum(&self.key(day)?, &text)?);
        let by = self.access_key;
        Some(format!(
            "{ALGORITHM} Credential={by}/{scope}, SignedHeaders={names}, Signature={signature}"
        ))
    }

    /// What is signed with on one day.
    fn key(&self, day: &str) -> Option<Zeroizing<Vec<u8>>> {
        let whole = Zeroizing::new([b"AWS4", self.secret_key.expose()].concat());
        let mut key = sum(&whole, day)?;
        for word in [self.region, self.service, "aws4_request"] {
            key = sum(&key, word)?;
        }
        Some(key)
    }
}

fn sum(key: &[u8], text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut sum = Hmac::<Sha256>::new_from_slice(key).ok()?;
    sum.update(text.as_bytes());
    Some(Zeroizing::new(sum.finalize().into_bytes().to_vec()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signature at the end of a header.
    fn signature(signer: &Signer<'_>, signed: &Signed<'_>) -> String {
        let header = signer.authorization(signed).unwrap();
        header.rsplit('=').next().unwrap().to_owned()
    }

    #[test]
    fn signatures_are_those_of_the_published_examples_of_s3() {
        let secret = Secret::from_text("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned());
        let signer = Signer {
            access_key: "AKIAIOSFODNN7EXAMPLE",
            secret_key: &secret,
            region: "us-east-1",
            service: "s3",
        };
        let (host, at) = ("examplebucket.s3.amazonaws.com", "20130524T000000Z");
        let empty = digest(b"");
        let get = |path, query, headers| Signed {
            method: "GET",
            path,
            query,
            headers,
            payload: &empty,
            at,
        };
        let bare = [
            ("host", host),
            ("x-amz-content-sha256", empty.as_str()),
            ("x-amz-date", at),
        ];
        let range = [bare[0], ("range", "bytes=0-9"), bare[1], bare[2]];
        assert_eq!(
            signature(&signer, &get("/test.txt", "", &range)),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        let lifecycle = query(&[("lifecycle", "")]);
        assert_eq!(
            signature(&signer, &get("/", &lifecycle, &bare)),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        let listed = query(&[("prefix", "J"), ("max-keys", "2")]);
        assert_eq!(
            signature(&signer, &get("/", &listed, &bare)),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
        let body = digest(b"Welcome to Amazon S3.");
        let put = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            ("host", host),
            ("x-amz-content-sha256", body.as_str()),
            ("x-amz-date", at),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ];
        let put = Signed {
            method: "PUT",
            path: "/test%24file.text",
            query: "",
            headers: &put,
            payload: &body,
            at,
        };
        assert_eq!(
            signature(&signer, &put),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        );
    }

    #[test]
    fn signatures_are_those_of_the_published_suite() {
        let secret = Secret::from_text("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned());
        let signer = Signer {
            access_key: "AKIDEXAMPLE",
            secret_key: &secret,
            region: "us-east-1",
            service: "service",
        };
        let at = "20150830T123600Z";
        let headers = [("host", "example.amazonaws.com"), ("x-amz-date", at)];
        let empty = digest(b"");
        let vanilla = Signed {
            method: "GET",
            path: "/",
            query: "",
            headers: &headers,
            payload: &empty,
            at,
        };
        assert_eq!(
            signer.authorization(&vanilla).unwrap(),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, \
             Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
        let ordered = query(&[("Param2", "value2"), ("Param1", "value1")]);
        let ordered = Signed {
            query: &ordered,
            ..vanilla
        };
        assert_eq!(
            signature(&signer, &ordered),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
        );
    }

    #[test]
    fn a_question_is_written_in_one_way() {
        assert_eq!(query(&[]), "");
        assert_eq!(
            query(&[("uploads", ""), ("prefix", "a/b c~"), ("marker", "+=&é")]),
            "marker=%2B%3D%26%C3%A9&prefix=a%2Fb%20c~&uploads="
        );
        assert_eq!(path("a-b_c.d/e f?g"), "a-b_c.d/e%20f%3Fg");
        assert_eq!(moment(Timestamp::default()), "19700101T000000Z");
    }
}
