//! What the API server's refusals mean.

use kube_client::core::Status;

use crate::error::{Error, Kind};

/// What an answer means that is none; `what` says what was attempted ("list nodes").
pub(super) fn told(what: &str, error: &kube_client::Error) -> Error {
    if let kube_client::Error::Api(status) = error {
        return refused(what, status);
    }
    if let kube_client::Error::SerdeError(said) = error {
        return Error::new(
            Kind::Garbage,
            format!("could not {what}, the answer makes no sense: {said}"),
        );
    }
    let (kind, why) = transport(error);
    Error::new(kind, format!("could not {what}, {why}"))
}

/// What a refusal means.
pub(super) fn refused(what: &str, status: &Status) -> Error {
    let said = status.message.trim();
    if let Some(webhook) = webhook(said) {
        return Error::new(
            Kind::Webhook,
            format!("could not {what}, webhook {webhook} is in the way: {said}"),
        );
    }
    let kind = match status.code {
        401 => Kind::Credentials,
        403 => Kind::Forbidden,
        404 => Kind::Absent,
        409 => Kind::Conflict,
        400 | 406 | 413 | 415 | 422 => Kind::Rejected,
        _ => Kind::Busy,
    };
    let said = if said.is_empty() {
        &status.reason
    } else {
        said
    };
    Error::new(
        kind,
        format!(
            "could not {what}, the API server answered {}: {said}",
            status.code
        ),
    )
}

/// The webhook that a refusal names: one that denies, or one that could not be asked.
pub(super) fn webhook(said: &str) -> Option<&str> {
    let after = said
        .split_once("admission webhook \"")
        .or_else(|| said.split_once("failed calling webhook \""))?
        .1;
    Some(after.split_once('"')?.0)
}

/// Why there was no answer at all.
fn transport(error: &kube_client::Error) -> (Kind, String) {
    let mut deepest: &(dyn std::error::Error + 'static) = error;
    loop {
        if let Some(tls) = deepest.downcast_ref::<rustls::Error>() {
            return (tls_kind(tls), format!("TLS failed: {tls}"));
        }
        // An I/O error hides what it was made of from `source`.
        let hidden = deepest
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        deepest = match (hidden, deepest.source()) {
            (Some(inner), _) => inner,
            (None, Some(source)) => source,
            (None, None) => return (Kind::Unreachable, format!("no connection: {deepest}")),
        };
    }
}

/// Whether we do not accept the server, or it does not accept us.
fn tls_kind(error: &rustls::Error) -> Kind {
    if matches!(
        error,
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented
    ) {
        return Kind::WrongServer;
    }
    if matches!(error, rustls::Error::AlertReceived(_)) {
        return Kind::Credentials;
    }
    Kind::Unreachable
}
