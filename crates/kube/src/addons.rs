//! What add-ons are made of: objects that we write ourselves, and what is changed in those of
//! others so that they fit a cluster of ours.

use crate::error::{Error, Kind};
use hosts::mesh::INTERFACE;
use model::addon::{Addon, AddonName};
use model::kubernetes::Kubernetes;
use serde_json::{Value, json};

/// The objects of an add-on that we write ourselves.
pub fn own(addon: &Addon) -> Option<String> {
    let text = match addon.name {
        AddonName::NodeExporter => include_str!("addons/node-exporter.yaml"),
        AddonName::KubeStateMetrics => include_str!("addons/kube-state-metrics.yaml"),
        AddonName::MetricsServer => include_str!("addons/metrics-server.yaml"),
        AddonName::LocalPath => include_str!("addons/local-path.yaml"),
        AddonName::Prometheus => include_str!("addons/prometheus.yaml"),
        AddonName::Flannel
        | AddonName::Calico
        | AddonName::Cilium
        | AddonName::Longhorn
        | AddonName::Dashboard => return None,
    };
    let mut filled = text.replace("@version@", &addon.version);
    for setting in addon.name.settings() {
        let value = addon.value(setting.key).unwrap_or_default();
        filled = filled.replace(&format!("@{}@", setting.key), value);
    }
    if addon.name == AddonName::Prometheus {
        filled = with_room(&filled, addon.value("storage").unwrap_or_default());
    }
    Some(filled)
}

/// Where metrics are kept: on a volume of this size, or beside the pod for as long as that lives.
fn with_room(text: &str, size: &str) -> String {
    if size.is_empty() {
        return text.replace("@volume@", "{name: data, emptyDir: {}}");
    }
    let claim = format!(
        "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: prometheus, namespace: prometheus}}\n\
         spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {size}}}}}}}\n"
    );
    let volume = "{name: data, persistentVolumeClaim: {claimName: prometheus}}";
    text.replace("@volume@", volume) + &claim
}

/// Fits an object of somebody else to a cluster of ours: pods are where the cluster says, and
/// tunnels go through the mesh, because nothing else needs to be open between hosts.
pub fn fit(name: AddonName, kubernetes: &Kubernetes, object: &mut Value) -> Result<(), Error> {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let called = object["metadata"]["name"].as_str().unwrap_or_default();
    match (name, kind.as_str(), called) {
        (AddonName::Flannel, "ConfigMap", "kube-flannel-cfg") => {
            let told = &mut object["data"]["net-conf.json"];
            let text = told.as_str().unwrap_or_default();
            let mut settings: Value = serde_json::from_str(text).map_err(|error| {
                let what = format!("cannot read the settings of flannel: {error}");
                Error::new(Kind::BadObjects, what)
            })?;
            settings["Network"] = json!(kubernetes.pods.to_string());
            *told = json!(settings.to_string());
        }
        (AddonName::Flannel, "DaemonSet", _) => {
            let iface = format!("--iface={INTERFACE}");
            for container in containers(object, "kube-flannel") {
                if let Some(arguments) = container["args"].as_array_mut()
                    && !arguments.iter().any(|known| known == &iface)
                {
                    arguments.push(json!(iface));
                }
            }
        }
        (AddonName::Calico, "DaemonSet", "calico-node") => {
            let pods = kubernetes.pods.to_string();
            let told = [
                ("IP_AUTODETECTION_METHOD", "kubernetes-internal-ip"),
                ("CALICO_IPV4POOL_CIDR", &pods),
            ];
            for container in containers(object, "calico-node") {
                for (variable, value) in told {
                    set(container, variable, value);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// The containers of this name in something that runs pods.
fn containers<'a>(object: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    let all = object.pointer_mut("/spec/template/spec/containers");
    let all = all.and_then(Value::as_array_mut).into_iter().flatten();
    all.filter(move |container| container["name"] == name)
}

/// Sets a variable of a container.
fn set(container: &mut Value, variable: &str, value: &str) {
    if container["env"].as_array().is_none() {
        container["env"] = json!([]);
    }
    if let Some(all) = container["env"].as_array_mut() {
        all.retain(|one| one["name"] != variable);
        all.push(json!({ "name": variable, "value": value }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::manifest::objects;
    use model::addon::Named;
    use std::collections::BTreeMap;

    fn addon(name: AddonName, values: &[(&str, &str)]) -> Addon {
        let values = values.iter();
        let values: BTreeMap<String, String> = values
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let named = Named {
            name,
            version: None,
            values,
        };
        named.decided("v1.34.4".parse().unwrap())
    }

    #[test]
    fn whatever_we_write_is_whole_and_has_no_gap() {
        let mut written = 0;
        for name in AddonName::ALL {
            let Some(text) = own(&addon(name, &[])) else {
                continue;
            };
            written += 1;
            assert!(!text.contains('@'), "{name}: {text}");
            assert!(text.contains(&addon(name, &[]).version), "{name}");
            let all = objects(&text).unwrap();
            assert!(all.len() >= 3, "{name}");
            let runs = ["Deployment", "DaemonSet"];
            assert!(all.iter().any(|one| runs.contains(&one.kind.as_str())));
        }
        assert_eq!(written, 5);
    }

    #[test]
    fn what_is_set_stands_where_it_counts() {
        let text = own(&addon(AddonName::NodeExporter, &[("port", "9200")])).unwrap();
        assert!(text.contains("--web.listen-address=:9200") && !text.contains("9100"));
        let small = own(&addon(AddonName::Prometheus, &[])).unwrap();
        let large = own(&addon(AddonName::Prometheus, &[("storage", "10Gi")])).unwrap();
        assert!(small.contains("emptyDir") && !small.contains("PersistentVolumeClaim"));
        assert!(large.contains("storage: 10Gi") && !large.contains("emptyDir"));
        assert_eq!(
            objects(&large).unwrap().len(),
            objects(&small).unwrap().len() + 1
        );
    }

    #[test]
    fn who_connects_pods_does_so_where_the_cluster_says() {
        let kubernetes = Kubernetes {
            pods: "10.32.0.0/14".parse().unwrap(),
            ..Kubernetes::default()
        };
        let mut settings = json!({
            "kind": "ConfigMap", "metadata": { "name": "kube-flannel-cfg" },
            "data": { "net-conf.json": r#"{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}"# },
        });
        fit(AddonName::Flannel, &kubernetes, &mut settings).unwrap();
        let told = settings["data"]["net-conf.json"].as_str().unwrap();
        assert!(told.contains("10.32.0.0/14") && told.contains("vxlan"));
        let runs = |name: &str| {
            json!({
                "kind": "DaemonSet", "metadata": { "name": name },
                "spec": { "template": { "spec": { "containers": [
                    { "name": name, "args": ["--ip-masq"], "env": [{ "name": "IP_AUTODETECTION_METHOD", "value": "first-found" }] },
                ] } } },
            })
        };
        let mut flannel = runs("kube-flannel");
        for _ in 0..2 {
            fit(AddonName::Flannel, &kubernetes, &mut flannel).unwrap();
        }
        let container = &flannel["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["args"], json!(["--ip-masq", "--iface=wg0"]));
        let mut calico = runs("calico-node");
        for _ in 0..2 {
            fit(AddonName::Calico, &kubernetes, &mut calico).unwrap();
        }
        let container = &calico["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["env"].as_array().unwrap().len(), 2);
        assert_eq!(container["env"][0]["value"], "kubernetes-internal-ip");
        settings["data"]["net-conf.json"] = json!("{");
        assert!(fit(AddonName::Flannel, &kubernetes, &mut settings).is_err());
    }
}
