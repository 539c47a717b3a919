//! What a manifest says, whatever it looks like: how plans know the manifest that they were made of.

use super::{Manifest, Named, Pool};
use crate::host::Fingerprint;

impl Manifest {
    /// The same for manifests that say the same: comments, the order in which providers, pools, clusters
    /// and load balancers were written, and whether the project was named do not matter.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut said = self.clone();
        said.namespace = None;
        for account in said.providers.values_mut() {
            forget_places(account.secret.iter_mut());
            forget_places(account.templates_secret.iter_mut());
        }
        for pool in said.pools.values_mut() {
            match pool {
                Pool::Dynamic(dynamic) => dynamic.position = 0,
                Pool::Static(fixed) => {
                    let hosts = fixed.hosts.iter_mut();
                    forget_places(hosts.filter_map(|host| host.secret.as_mut()));
                    let jump = fixed.jump.iter_mut();
                    forget_places(jump.filter_map(|jump| jump.secret.as_mut()));
                }
                Pool::Metal(_) => {}
            }
        }
        for cluster in &mut said.clusters {
            forget_places(cluster.backup_secret.iter_mut());
        }
        said.clusters
            .sort_by(|one, other| one.name.cmp(&other.name));
        said.balancers
            .sort_by(|one, other| one.name.cmp(&other.name));
        Fingerprint::of(&said)
    }
}

/// Where secrets are named is for messages.
fn forget_places<'a>(named: impl Iterator<Item = &'a mut Named>) {
    for named in named {
        named.path = String::new();
        named.namespace = None;
    }
}

#[cfg(test)]
mod tests {
    use crate::admit::admit;
    use crate::source::parse;

    const TEXT: &str = "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {name: hello}
spec:
  providers:
    - {name: lab, providerType: simulated}
    - {name: far, providerType: hetzner, secretRef: {name: cloud}}
  nodePools:
    dynamic:
      - {name: brain, providerSpec: {name: lab, region: north}, count: 1, serverType: small, image: debian-12}
      - {name: muscle, providerSpec: {name: lab, region: north}, count: 2, serverType: small, image: debian-12}
  kubernetes:
    clusters:
      - {name: a, version: v1.34.1, network: 10.8.0.0/24, pools: {control: [brain], compute: [muscle]}}
      - {name: b, version: v1.34.1, network: 10.9.0.0/24, pools: {control: [brain], compute: [muscle]}}
";

    /// The lines from `one` on before the line before them.
    fn swapped(one: &str) -> String {
        let mut lines: Vec<_> = TEXT.lines().collect();
        let at = lines.iter().position(|line| line.contains(one)).unwrap();
        lines.swap(at - 1, at);
        lines.join("\n")
    }

    #[test]
    fn what_says_the_same_has_one_fingerprint_and_what_says_more_another() {
        let of = |text: &str| admit(&parse(text).unwrap()).unwrap().fingerprint();
        let said = of(TEXT);
        let same = [
            format!("# a comment\n{TEXT}"),
            swapped("name: far"),
            swapped("name: muscle, provider"),
            swapped("name: b, version"),
            TEXT.replace("{name: cloud}", "{name: cloud, namespace: default}"),
        ];
        for text in same {
            assert_eq!(of(&text), said, "{text}");
        }
        let other = [
            TEXT.replace("name: b, ", "name: b, deletionProtection: true, "),
            TEXT.replace("{name: cloud}", "{name: other}"),
            TEXT.replace(
                "count: 2,",
                "count: 2, taints: [{key: a, value: b, effect: NoExecute}],",
            ),
        ];
        for text in other {
            assert_ne!(of(&text), said, "{text}");
        }
    }
}
