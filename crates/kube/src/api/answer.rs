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
            format!("could not {what}, webhook or policy {webhook} is in the way: {said}"),
        );
    }
    let kind = match status.code {
        401 => Kind::Credentials,
        403 if said.contains("being terminated") => Kind::Conflict,
        // Quotas and security standards forbid an object, whoever brings it.
        403 if !said.is_empty() && !said.contains("\" cannot ") => Kind::Rejected,
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

/// The webhook or admission policy that a refusal names: one that denies, or one that could not be
/// asked.
pub(super) fn webhook(said: &str) -> Option<&str> {
    [
        ("admission webhook \"", '"'),
        ("failed calling webhook \"", '"'),
        ("ValidatingAdmissionPolicy '", '\''),
    ]
    .into_iter()
    .find_map(|(before, after)| Some(said.split_once(before)?.1.split_once(after)?.0))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(code: u16, message: &str) -> Kind {
        let status = Status {
            code,
            message: message.to_owned(),
            ..Status::default()
        };
        refused("do it", &status).kind
    }

    /// Words of real API servers.
    #[test]
    fn refusals_are_told_apart() {
        let denied = "admission webhook \"guard.lab.test\" denied the request: not today";
        assert_eq!(webhook(denied), Some("guard.lab.test"));
        for (code, said, means) in [
            (401, "Unauthorized", Kind::Credentials),
            (403, denied, Kind::Webhook),
            (
                500,
                "Internal error occurred: failed calling webhook \"g\": dial tcp",
                Kind::Webhook,
            ),
            (
                403,
                "nodes is forbidden: User \"nobody\" cannot list resource \"nodes\" in API group \"\" at the cluster scope",
                Kind::Forbidden,
            ),
            (
                403,
                "forbidden: User \"system:anonymous\" cannot get path \"/readyz\"",
                Kind::Forbidden,
            ),
            (
                403,
                "pods \"a\" is forbidden: exceeded quota: small",
                Kind::Rejected,
            ),
            (
                403,
                "pods \"a\" is forbidden: unable to create new content in namespace n because it is being terminated",
                Kind::Conflict,
            ),
            (404, "nodes \"a\" not found", Kind::Absent),
            (409, "the object has been modified", Kind::Conflict),
            (422, "Node \"a\" is invalid", Kind::Rejected),
            (429, "too many requests", Kind::Busy),
            (503, "apiserver not ready", Kind::Busy),
        ] {
            assert_eq!(kind(code, said), means, "{said}");
        }
    }
}
