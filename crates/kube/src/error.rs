//! What can go wrong with a cluster: a code, a sentence, a hint, and who must act.

driver::kinds! {
    /// The API server does not answer.
    Unreachable = "KUBE-001", Slipway, "tries again by itself; see on a control machine that kube-apiserver and etcd run (`crictl ps -a`)";
    /// The API server does not know us any more.
    Credentials = "KUBE-002", Person, "the kubeconfig that is kept for the cluster no longer works, nor does admin.conf of any control machine: renew that there with `kubeadm certs renew admin.conf`";
    /// Whoever answers has no certificate of this cluster.
    WrongServer = "KUBE-003", Person, "what answers is not the API server of this cluster, or its certificate expired: see `kubeadm certs check-expiration` on a control machine, and the clocks of both";
    /// A kubeconfig that is none, or that we do not follow.
    BadKubeconfig = "KUBE-004", Person, "the kubeconfig must hold the authority, the certificate and its key as data, and no command, file name or proxy";
    /// The API server lets us in and forbids what we ask.
    Forbidden = "KUBE-005", Slipway, "tries again by itself: an API server that has just started forbids everything for a moment; if it lasts, give the user of the kubeconfig the rights of an administrator";
    /// No such node.
    NoNode = "KUBE-006", Slipway, "tries again by itself; it has not joined yet, or somebody deleted it";
    /// A disruption budget that allows nothing even when all is well.
    BudgetForbids = "KUBE-007", Person, "the budget allows no disruption even if all its pods are healthy: run more replicas, or change it";
    /// A disruption budget that allows nothing now.
    BudgetSpent = "KUBE-008", Slipway, "tries again by itself; pods of the budget are not healthy yet";
    /// A webhook stands in the way.
    Webhook = "KUBE-009", Person, "mend or remove the webhook: what it refuses, or it does not answer, cannot be changed";
    /// A pod that cannot end.
    PodHeld = "KUBE-010", Person, "see that whoever set the pod's finalizer does its work, or remove the finalizer with `kubectl edit`";
    /// A pod that takes its time to end.
    PodLingers = "KUBE-011", Slipway, "tries again by itself; the pod has not used up its grace period, or the kubelet of its node is silent";
    /// Somebody asked us not to touch the node.
    Locked = "KUBE-012", Slipway, "tries again by itself; whoever set the label slipway.dev/upgrade-lock on the node removes it";
    /// It was not ready in time.
    NotReady = "KUBE-013", Slipway, "tries again by itself; the log of the task shows what was missing";
    /// An object that the API server refuses.
    Rejected = "KUBE-014", Person, "correct the object: the API server said which field is wrong";
    /// An image that cannot be had.
    NoImage = "KUBE-015", Person, "see that the hosts reach the registry, or give a mirror that holds the image";
    /// Somebody else changed it at the same time, or has a field of it.
    Conflict = "KUBE-016", Slipway, "tries again by itself; somebody else changes the same object";
    /// The API server has too much to do, or broke off.
    Busy = "KUBE-017", Slipway, "tries again by itself; the API server is overloaded or not ready yet";
    /// A kind of object that the API server does not know.
    UnknownKind = "KUBE-018", Slipway, "tries again by itself; the definition of that kind may not be there yet";
    /// It is not there.
    Absent = "KUBE-019", Slipway, "tries again by itself; it is not there yet, or somebody removed it";
    /// A text that is no manifest of objects.
    BadObjects = "KUBE-020", Person, "correct the text: every document of it needs apiVersion, kind and metadata.name";
    /// An answer that makes no sense.
    Garbage = "KUBE-021", Person, "look at the versions: the API server answers in another way than it should";
    /// The task was told to end.
    Cancelled = "KUBE-022", Slipway, "tries again by itself; the server or the task ended meanwhile";
    /// A host on which kubeadm finds no room.
    NoRoom = "KUBE-023", Person, "make room on that host's disk; images and etcd need some gigabytes";
    /// A node came with an invitation that is too old.
    TokenExpired = "KUBE-024", Slipway, "tries again by itself with another invitation; see that the clocks of the hosts agree";
    /// Certificates that are not valid at the time of a host.
    Clocks = "KUBE-025", Person, "set the clocks of the hosts: they must agree to the second, and with ours";
    /// Something on the host stands in the way of kubeadm.
    Preflight = "KUBE-026", Person, "clear away what kubeadm names on that host: something else uses what Kubernetes needs";
    /// kubeadm failed for a reason that we do not know.
    Kubeadm = "KUBE-027", Slipway, "tries again by itself; the log of the task has all that kubeadm said";
    /// Nobody is there by whom the API could be reached.
    NoMember = "KUBE-028", Slipway, "tries again by itself; no control machine of the cluster answers";
    /// etcd does not do as it is told.
    Etcd = "KUBE-029", Slipway, "tries again by itself; see on a control machine that most members of etcd are healthy";
    /// A host that cannot run Kubernetes.
    NoPlace = "KUBE-030", Person, "Kubernetes needs a host with systemd: on the sandbox, of serverType systemd";
    /// A gate did not let a node back.
    GateShut = "KUBE-031", Person, "read what the gate said with `slipway task log` and the id of this task, mend that and run `slipway task retry`; or change the gate in the manifest, and apply it. Until then the node takes no pods and no other is upgraded; if it came in place of an old machine there is nothing to do: it is taken back, and tried again by itself";
    /// A node that is left of a machine is heard again.
    Alive = "KUBE-032", Slipway, "nothing is done to it while it is ready; `slipway why cluster` says what is left to do";
    /// An add-on that keeps volumes cannot go while there are any.
    VolumesLeft = "KUBE-050", Person, "delete the claims whose volumes these are, or name the add-on in the manifest again";
}
