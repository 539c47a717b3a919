//! Manifests of one cluster of sandbox hosts that run a real Kubernetes.

/// What the manifest and its cluster are called.
pub(crate) const NAME: &str = "shed";

/// The port at which pods answer on every node.
pub(crate) const NODE_PORT: u16 = 30_080;

/// The ports of the load balancer: what pods answer at, and the API.
pub(crate) const WEB: u16 = 8080;
pub(crate) const API: u16 = 6443;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Which Kubernetes.
    pub(crate) version: &'static str,
    /// Machines of the control plane.
    pub(crate) control: usize,
    /// Machines for workloads.
    pub(crate) compute: usize,
    /// Whether there is a load balancer before both.
    pub(crate) balanced: bool,
    /// What it has besides Kubernetes, as manifests say it.
    pub(crate) addons: &'static str,
    /// What nodes of compute machines carry: fields of their pool.
    pub(crate) marks: &'static str,
    /// What lets nodes back into service, as manifests say it.
    pub(crate) gates: &'static str,
}

impl Shape {
    /// One control machine and nothing before it.
    pub(crate) const fn small(version: &'static str, compute: usize) -> Self {
        Self {
            version,
            control: 1,
            compute,
            balanced: false,
            addons: "[]",
            marks: "",
            gates: "[]",
        }
    }

    /// How many machines it takes.
    pub(crate) const fn machines(self) -> usize {
        // One machine balances the load.
        self.control + self.compute + if self.balanced { 1 } else { 0 }
    }

    /// The manifest.
    pub(crate) fn manifest(self) -> String {
        let Self {
            version,
            control,
            compute,
            balanced,
            addons,
            marks,
            gates,
        } = self;
        let pool = |name: &str, count: usize, more: &str| {
            format!(
                "      - {{name: {name}, providerSpec: {{name: here, region: local}}, count: {count}, serverType: systemd, image: debian-12{more}}}\n"
            )
        };
        let mut pools = pool("control", control, "") + &pool("compute", compute, marks);
        let mut doors = String::new();
        if balanced {
            pools += &pool("door", 1, "");
            doors = format!(
                "  loadBalancers:
    roles:
      - {{name: api, protocol: tcp, port: {API}, targetPort: {API}, targetPools: [control], settings: {{proxyProtocol: false, stickySessions: false}}}}
      - {{name: web, protocol: tcp, port: {WEB}, targetPort: {NODE_PORT}, targetPools: [compute], settings: {{proxyProtocol: false, stickySessions: false}}}}
    clusters:
      - {{name: porch, targetedK8s: {NAME}, roles: [api, web], pools: [door]}}
"
            );
        }
        format!(
            "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: {NAME}}}
spec:
  providers: [{{name: here, providerType: sandbox}}]
  nodePools:
    dynamic:
{pools}  kubernetes:
    clusters:
      - {{name: {NAME}, version: {version}, network: 10.20.0.0/24, addons: {addons}, upgradeGates: {gates}, pools: {{control: [control], compute: [compute]}}}}
{doors}"
        )
    }
}

/// Pods that answer with their names, and the port that leads to them.
const ECHO: &str = include_str!("../../../../examples/echo.yaml");

/// As many of them, one on every compute machine if there are enough.
pub(crate) fn workload(replicas: usize) -> String {
    let two = "replicas: 2\n";
    assert!(ECHO.contains(two) && ECHO.contains(&format!("nodePort: {NODE_PORT}")));
    ECHO.replace(two, &format!("replicas: {replicas}\n"))
}
