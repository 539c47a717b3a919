//! Manifests of many clusters of one shape, in the simulated world.

/// What is asked for.
pub(crate) struct Clusters<'a> {
    /// What the manifest is called.
    pub(crate) name: &'a str,
    /// What the names of its clusters begin with.
    pub(crate) prefix: &'a str,
    /// What their networks begin with: two numbers.
    pub(crate) network: &'a str,
    /// How many clusters.
    pub(crate) count: usize,
    /// Machines of each for the control plane.
    pub(crate) control: usize,
    /// Machines of each for workloads.
    pub(crate) compute: usize,
}

impl Clusters<'_> {
    /// The manifest.
    pub(crate) fn manifest(&self) -> String {
        let Self {
            name,
            prefix,
            network,
            count,
            control,
            compute,
        } = self;
        let clusters: String = (0..*count)
            .map(|n| {
                format!(
                    "      - {{name: {prefix}{n:02}, version: v1.34.0, network: {network}.{n}.0/24, pools: {{control: [brain], compute: [muscle]}}}}\n"
                )
            })
            .collect();
        format!(
            "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: {name}}}
spec:
  providers: [{{name: lab, providerType: simulated}}]
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: lab, region: n}}, count: {control}, serverType: small, image: debian-12}}
      - {{name: muscle, providerSpec: {{name: lab, region: n}}, count: {compute}, serverType: small, image: debian-12}}
  kubernetes:
    clusters:
{clusters}"
        )
    }
}
