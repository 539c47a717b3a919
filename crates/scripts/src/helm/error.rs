//! What can go wrong with Helm: a code, a sentence, a hint, and who must act.

driver::kinds! {
    /// No Helm.
    NoHelm = "HELM-001", Person, "install Helm on the server's machine, or tell the server where it is";
    /// A Helm that cannot do what is needed.
    OtherHelm = "HELM-002", Person, "install Helm 3.14 or newer, or any Helm 4, or tell the server where one is";
    /// No kubectl.
    NoKubectl = "HELM-003", Person, "install kubectl on the server's machine, or tell the server where it is";
    /// A chart that is none.
    NoChart = "HELM-004", Person, "correct the chart in the project's settings: an absolute path on the server's machine, of a directory with a Chart.yaml or of a .tgz";
    /// A chart that Helm cannot read.
    BadChart = "HELM-005", Person, "mend the chart; `helm lint` tells what is wrong with it";
    /// Nobody says where Kubernetes is.
    NoCluster = "HELM-006", Person, "name a kubeconfig, or a cluster of the project, in the project's settings";
    /// Settings that cannot be together.
    Contradiction = "HELM-007", Person, "change or remove one of the settings";
    /// A cluster that did not answer, or not as it should.
    NoAnswer = "HELM-008", Slipway, "asks again by itself; what was said is what to mend: the way to the cluster, or what its user may do";
    /// A program that took too long.
    Hung = "HELM-009", Slipway, "asks again by itself; see that the cluster answers, or give it more time in the project's settings";
    /// This machine could not even try.
    OurSide = "HELM-010", Slipway, "see on the server's machine that there are room, memory and file descriptors to spare; looks are made again by themselves, ask again for anything else";
}

impl From<Error> for driver::Error {
    fn from(error: Error) -> Self {
        Self {
            attempted: format!("{} ({})", error.what, error.kind.code()),
            hint: error.kind.hint().to_owned(),
        }
    }
}

/// What goes wrong with programs as such.
impl From<crate::error::Error> for Error {
    fn from(error: crate::error::Error) -> Self {
        Self::new(Kind::OurSide, error.what)
    }
}
