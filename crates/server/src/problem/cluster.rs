//! Problems with what a cluster should give out.

use axum::http::StatusCode;
use model::endpoint::Endpoint;
use model::name::Name;

use super::Problem;

impl Problem {
    /// No control plane was started that would have one.
    pub(crate) fn no_kubeconfig(cluster: &Name) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "API-016",
            "no kubeconfig yet",
            format!("cluster `{cluster}` has no kubeconfig: its control plane was not started yet"),
            format!(
                "wait until a control node is ready; `slipway why cluster {cluster}` says what that waits for"
            ),
        )
    }

    /// Nobody outside would find the API.
    pub(crate) fn no_api_address(cluster: &Name, endpoint: &Endpoint) -> Self {
        let behind = endpoint.machines.iter();
        let behind: Vec<_> = behind.map(|behind| behind.machine.as_str()).collect();
        let (detail, hint) = if let [first, ..] = behind[..] {
            (
                format!(
                    "{} leads to {}, which was not seen to run: its address is not known",
                    endpoint.name,
                    behind.join(", ")
                ),
                format!(
                    "wait until it runs; `slipway describe machine {first}` says how it was last seen"
                ),
            )
        } else {
            (
                format!("{} leads to no machine", endpoint.name),
                format!(
                    "see what the cluster should have with `slipway describe cluster {cluster}`"
                ),
            )
        };
        Self::new(
            StatusCode::CONFLICT,
            "API-017",
            "no way to the API",
            detail,
            hint,
        )
    }
}
