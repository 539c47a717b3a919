//! What a store says when it does not do what it is asked, and what that means.

use super::xml::Element;
use super::{Kind, passing};
use http::StatusCode;

/// How much of what a store says is told.
const WORDS_MAX: usize = 200;

/// Why a store did not do what it was asked.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) kind: Kind,
    pub(super) what: String,
    /// The word of the store for it.
    code: Option<String>,
}

impl Refusal {
    pub(super) fn new(kind: Kind, what: &str) -> Self {
        Self {
            kind,
            what: what.to_owned(),
            code: None,
        }
    }

    /// The way to the store is in trouble, or the store itself for a moment.
    pub(super) fn away(what: &str) -> Self {
        Self::new(Kind::StoreAway, what)
    }

    /// Whether the store has this word for it.
    pub(super) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// What the way to the store came to.
    pub(super) fn of_transport(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            let tls = error.downcast_ref::<rustls::Error>();
            if let Some(rustls::Error::InvalidCertificate(why)) = tls {
                let what = format!("its certificate is not trusted: {why}");
                return Self::new(Kind::Untrusted, &what);
            }
            if matches!(
                tls,
                Some(rustls::Error::InvalidMessage(_) | rustls::Error::AlertReceived(_))
            ) {
                let what = "it does not speak TLS as we do";
                return Self::new(Kind::Untrusted, what);
            }
            next = cause(error);
        }
        Self::away(&causes(error))
    }

    /// What a store answered that is no success.
    pub(super) fn of_answer(status: StatusCode, text: &str) -> Self {
        let document = Element::read(text).filter(|document| document.name == "Error");
        let told = |name: &str| {
            let text = document.as_ref()?.text(name)?;
            let words = text.chars().filter(|c| !c.is_control());
            Some(words.take(WORDS_MAX).collect::<String>())
        };
        let (code, message) = (told("Code"), told("Message"));
        let kind = match code.as_deref() {
            Some(code) => kind_of(code).unwrap_or_else(|| by_status(status, true)),
            None => by_status(status, false),
        };
        let what = match (&code, message) {
            (Some(code), Some(message)) => format!("it answers {code}: {message}"),
            (Some(code), None) => format!("it answers {code}"),
            (None, _) => format!("it answers {status}"),
        };
        Self { kind, what, code }
    }
}

/// What the words of stores mean.
fn kind_of(code: &str) -> Option<Kind> {
    Some(match code {
        "NoSuchBucket" => Kind::NoBucket,
        "NoSuchKey" => Kind::Unknown,
        "AccessDenied"
        | "AllAccessDisabled"
        | "AccountProblem"
        | "InvalidAccessKeyId"
        | "InvalidClientTokenId"
        | "InvalidToken"
        | "ExpiredToken"
        | "NotSignedUp" => Kind::StoreRefuses,
        "SignatureDoesNotMatch"
        | "RequestTimeTooSkewed"
        | "RequestExpired"
        | "AuthorizationHeaderMalformed"
        | "PermanentRedirect"
        | "TemporaryRedirect"
        | "IllegalLocationConstraintException" => Kind::Unsigned,
        "EntityTooLarge" | "QuotaExceeded" | "StorageFull" | "XMinioStorageFull" => {
            Kind::Unwritable
        }
        "SlowDown" | "InternalError" | "ServiceUnavailable" | "RequestTimeout"
        | "OperationAborted" => Kind::StoreAway,
        _ => return None,
    })
}

/// What the status means of an answer whose word nobody knows.
fn by_status(status: StatusCode, speaks: bool) -> Kind {
    match status {
        status if passing(status) && status != StatusCode::NOT_IMPLEMENTED => Kind::StoreAway,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Kind::StoreRefuses,
        StatusCode::INSUFFICIENT_STORAGE => Kind::Unwritable,
        status if speaks && status.is_redirection() => Kind::Unsigned,
        _ => Kind::Strange,
    }
}

/// What an error is made of: errors of the system hide it, and tell what is behind it instead.
fn cause<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a (dyn std::error::Error + 'static)> {
    let inner = error.downcast_ref::<std::io::Error>();
    match inner.and_then(std::io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

/// An error with its causes.
pub(super) fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut told = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        told.push(error.to_string());
        next = error.source();
    }
    told.dedup();
    told.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stores_say_is_sorted_by_who_must_act() {
        let said = |status: u16, code: &str| {
            let text = format!("<Error><Code>{code}</Code><Message>so it is</Message></Error>");
            let status = StatusCode::from_u16(status).unwrap();
            Refusal::of_answer(status, &text).kind
        };
        for (status, code, kind) in [
            (404, "NoSuchBucket", Kind::NoBucket),
            (404, "NoSuchKey", Kind::Unknown),
            (403, "AccessDenied", Kind::StoreRefuses),
            (403, "InvalidAccessKeyId", Kind::StoreRefuses),
            (403, "SomethingElse", Kind::StoreRefuses),
            (403, "SignatureDoesNotMatch", Kind::Unsigned),
            (403, "RequestTimeTooSkewed", Kind::Unsigned),
            (400, "AuthorizationHeaderMalformed", Kind::Unsigned),
            (301, "PermanentRedirect", Kind::Unsigned),
            (503, "SlowDown", Kind::StoreAway),
            (500, "InternalError", Kind::StoreAway),
            (507, "XMinioStorageFull", Kind::Unwritable),
            (400, "MalformedXML", Kind::Strange),
        ] {
            assert_eq!(said(status, code), kind, "{status} {code}");
        }
        let refusal = Refusal::of_answer(StatusCode::BAD_GATEWAY, "<html>sorry</html>");
        assert_eq!(refusal.kind, Kind::StoreAway);
        assert_eq!(refusal.what, "it answers 502 Bad Gateway");
        let page = Refusal::of_answer(StatusCode::NOT_FOUND, "<html>no such page</html>");
        assert_eq!(page.kind, Kind::Strange);
    }

    #[test]
    fn what_a_store_says_is_told_in_one_line() {
        let long = "x".repeat(1_000);
        let text = format!("<Error><Code>Odd</Code><Message>a\n{long}</Message></Error>");
        let refusal = Refusal::of_answer(StatusCode::BAD_REQUEST, &text);
        assert!(refusal.is("Odd") && !refusal.is("NoSuchKey"));
        assert!(refusal.what.len() < 250 && !refusal.what.contains('\n'));
    }
}
