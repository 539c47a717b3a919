//! What kubeadm wrote down about the cluster in the cluster, after its endpoint has moved.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use kube_client::api::Patch;
use serde_json::{Map, Value, json};

use super::{Door, patched, text};
use crate::error::{Error, Kind};

/// How often a change is tried again that somebody else came before.
const TRIES: usize = 5;

impl Door {
    /// Tells those who join where the API server is, as `https://HOST:PORT`; says whether that
    /// was new.
    pub async fn point_cluster_info(&self, server: &str) -> Result<bool, Error> {
        self.rewrite("kube-public", "cluster-info", "kubeconfig", |config| {
            let clusters = config.get_mut("clusters")?.as_array_mut()?;
            for cluster in clusters {
                cluster.get_mut("cluster")?.as_object_mut()?["server"] = json!(server);
            }
            Some(())
        })
        .await
    }

    /// Tells kubeadm the endpoint of the control plane, as `HOST:PORT`, and the further names that
    /// certificates of API servers are to have; says whether that was new.
    pub async fn point_kubeadm(&self, endpoint: &str, names: &[String]) -> Result<bool, Error> {
        self.rewrite(
            "kube-system",
            "kubeadm-config",
            "ClusterConfiguration",
            |config| {
                let config = config.as_object_mut()?;
                config.insert("controlPlaneEndpoint".to_owned(), json!(endpoint));
                let server = config
                    .entry("apiServer")
                    .or_insert_with(|| Value::Object(Map::new()));
                if server.is_null() {
                    *server = Value::Object(Map::new());
                }
                let server = server.as_object_mut()?;
                if names.is_empty() {
                    server.remove("certSANs");
                } else {
                    server.insert("certSANs".to_owned(), json!(names));
                }
                Some(())
            },
        )
        .await
    }

    /// Reads the YAML document in an entry, changes it and writes it back unless it was so
    /// already, or somebody else wrote in between; then all is done again.
    async fn rewrite(
        &self,
        namespace: &str,
        name: &str,
        entry: &str,
        change: impl Fn(&mut Value) -> Option<()>,
    ) -> Result<bool, Error> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let what = format!("change {entry} of ConfigMap {namespace}/{name}");
        let mut tries = 0;
        loop {
            let map = self.ask(&what, maps.get(name)).await?;
            let senseless = || {
                Error::new(
                    Kind::Garbage,
                    format!("could not {what}, it is not what kubeadm wrote"),
                )
            };
            let data = map.data.unwrap_or_default();
            let old = data.get(entry).and_then(|old| text::one(old));
            let old = old.ok_or_else(senseless)?;
            let mut new = old.clone();
            change(&mut new).ok_or_else(senseless)?;
            if new == old {
                return Ok(false);
            }
            let new = serde_saphyr::to_string(&new).map_err(|_| senseless())?;
            let patch = Patch::Merge(json!({
                "metadata": { "resourceVersion": map.metadata.resource_version },
                "data": { entry: new },
            }));
            tries += 1;
            match self.ask(&what, maps.patch(name, &patched(), &patch)).await {
                Err(error) if error.kind == Kind::Conflict && tries < TRIES => {}
                other => return other.map(|_| true),
            }
        }
    }
}
