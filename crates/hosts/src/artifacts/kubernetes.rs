//! What Kubernetes is made of: programs and images of one version, as mirrors keep them and as its
//! makers publish them.
//!
//! ```text
//! kubernetes/v1.34.4/linux-amd64/kubeadm              a program
//! kubernetes/v1.34.4/linux-amd64/images/etcd.tar      an image archive for `ctr images import`
//! ```

use super::{Name, Platform};
use model::version::Version;

/// Where its makers publish its programs.
pub const UPSTREAM: &str = "https://dl.k8s.io/release";

/// The first part of all names.
const FIRST: &str = "kubernetes";

/// The programs that every node has.
pub const PROGRAMS: [&str; 3] = ["kubeadm", "kubelet", "kubectl"];

/// The images that every node needs.
pub const IMAGES: [&str; 3] = ["kube-proxy", "coredns", "pause"];

/// The images that a node of the control plane needs besides.
pub const CONTROL_IMAGES: [&str; 4] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "etcd",
];

/// The name of a program in mirrors.
pub fn program(version: Version, platform: Platform, program: &str) -> Option<Name> {
    let platform = platform.as_str();
    format!("{FIRST}/{version}/{platform}/{program}")
        .parse()
        .ok()
}

/// The name of an image archive in mirrors.
pub fn image(version: Version, platform: Platform, image: &str) -> Option<Name> {
    let platform = platform.as_str();
    let name = format!("{FIRST}/{version}/{platform}/images/{image}.tar");
    name.parse().ok()
}

/// The path below which upstream publishes a program, where it does.
pub(super) fn published(name: &Name) -> Option<[&str; 5]> {
    let mut parts = name.parts();
    let (first, version, platform) = (parts.next()?, parts.next()?, parts.next()?);
    let (program, end) = (parts.next()?, parts.next());
    let (system, architecture) = platform.split_once('-')?;
    let ours = first == FIRST && end.is_none() && PROGRAMS.contains(&program);
    ours.then_some([version, "bin", system, architecture, program])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_published_and_images_are_not() {
        let version = "v1.34.4".parse().unwrap();
        let name = program(version, Platform::Arm64, "kubelet").unwrap();
        assert_eq!(name.as_str(), "kubernetes/v1.34.4/linux-arm64/kubelet");
        let path = published(&name).unwrap().join("/");
        assert_eq!(path, "v1.34.4/bin/linux/arm64/kubelet");
        let name = image(version, Platform::Amd64, "etcd").unwrap();
        assert_eq!(
            name.as_str(),
            "kubernetes/v1.34.4/linux-amd64/images/etcd.tar"
        );
        for other in [
            name.as_str(),
            "kubernetes/v1.34.4/linux-amd64/kube-proxy",
            "envoy/1/a-b/kubelet",
        ] {
            assert_eq!(published(&other.parse().unwrap()), None);
        }
    }
}
