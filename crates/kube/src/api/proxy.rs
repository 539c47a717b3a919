//! The pods of kube-proxy, which know where the API was when they were started.

use k8s_openapi::api::core::v1::Pod;
use kube_client::Api;
use kube_client::api::{DeleteParams, ListParams, Preconditions};

use super::Door;
use crate::error::{Error, Kind};

/// Where they are.
const NAMESPACE: &str = "kube-system";

/// What tells them from others.
const SELECTOR: &str = "k8s-app=kube-proxy";

/// A pod of kube-proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Its name.
    pub name: String,
    /// Which of all that had this name.
    pub uid: String,
    /// Whether it does its work.
    pub ready: bool,
}

impl Door {
    /// The pods of kube-proxy on a node.
    pub async fn proxies(&self, node: &str) -> Result<Vec<Proxy>, Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let on = format!("spec.nodeName={node}");
        let params = ListParams::default().labels(SELECTOR).fields(&on);
        let what = format!("look for kube-proxy on node {node}");
        let list = self.ask(&what, pods.list(&params)).await?;
        Ok(list.items.into_iter().map(Proxy::from).collect())
    }

    /// Has a pod of kube-proxy replaced by another one; one that is gone already is fine.
    pub async fn renew_proxy(&self, proxy: &Proxy) -> Result<(), Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(proxy.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let what = format!("delete pod {NAMESPACE}/{}", proxy.name);
        match self.ask(&what, pods.delete(&proxy.name, &params)).await {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.kind, Kind::Absent | Kind::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl From<Pod> for Proxy {
    fn from(pod: Pod) -> Self {
        let conditions = pod.status.and_then(|status| status.conditions);
        let ready = conditions
            .into_iter()
            .flatten()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True");
        Self {
            ready: ready && pod.metadata.deletion_timestamp.is_none(),
            name: pod.metadata.name.unwrap_or_default(),
            uid: pod.metadata.uid.unwrap_or_default(),
        }
    }
}
