//! What can go wrong with a host: a code, a sentence, a hint, and who must act.

pub use driver::kinds::Owner;

driver::kinds! {
    /// Nobody listens there.
    Refused = "HOST-001", Slipway, "tries again by itself; see that an SSH server listens at that address and port";
    /// It did not answer in time.
    Silent = "HOST-002", Slipway, "tries again by itself; see that the machine runs and that no firewall is in between";
    /// It knows the user or the key not.
    WrongKey = "HOST-003", Person, "set the right private key with `slipway secret set`, or add its public half to the user's authorized_keys";
    /// It is not the host it was.
    ChangedHostKey = "HOST-004", Person, "if it was installed anew, take it out of the manifest, apply, put it back and apply again; if not, somebody may be in between";
    /// A program took too long.
    Hung = "HOST-005", Slipway, "tries again by itself; the log of the task shows its last lines";
    /// A disk is full.
    DiskFull = "HOST-006", Person, "make room on the machine; it goes on at the next attempt or with `slipway task retry`";
    /// A filesystem cannot be written.
    ReadOnly = "HOST-007", Person, "remount it for writing: a filesystem that turned read-only often means a broken disk";
    /// A tool is missing that we cannot bring.
    MissingTool = "HOST-008", Person, "install it on the machine, or give a mirror that holds its package";
    /// An operating system that we do not know.
    UnknownSystem = "HOST-009", Person, "use Debian 12 or newer or Ubuntu 22.04 or newer, or give the host a prepared marker";
    /// An answer that makes no sense.
    Garbage = "HOST-010", Person, "look at the log of the task: a tool on the machine answers in another way than it should";
    /// A clock that is wrong.
    ClockSkew = "HOST-011", Person, "set the machine's clock, for example by installing chrony; certificates would not be valid";
    /// No right to become root.
    NoSudo = "HOST-012", Person, "let the user run sudo without a password, or log in as root";
    /// The connection ended in the middle.
    Lost = "HOST-013", Slipway, "tries again by itself";
    /// A package could not be installed.
    Package = "HOST-014", Slipway, "tries again by itself; see that the machine reaches its package sources, or give a mirror";
    /// A service does not start or does not stay up.
    Service = "HOST-015", Person, "look at the service's own log on the machine; the task's log ends with its last lines";
    /// A prepared marker that does not hold.
    FalseMarker = "HOST-016", Person, "correct the image the host was made from, or remove /etc/slipway/prepared.d/image from it";
    /// No way to make a tunnel.
    NoTunnel = "HOST-017", Person, "the host needs the wireguard kernel module, or wireguard-go and /dev/net/tun";
    /// A proxy that refuses its configuration.
    ProxyRefused = "HOST-018", Person, "look at the proxy's log; the configuration before, where there was one, is still in use";
    /// A file that was not as it should be after writing.
    HalfWritten = "HOST-019", Slipway, "tries again by itself; the file that was there before is untouched";
    /// A private key that is none.
    BadKey = "HOST-020", Person, "set an OpenSSH or PEM private key without a passphrase with `slipway secret set`";
    /// A program that ended badly in a way we do not know.
    Failed = "HOST-021", Slipway, "tries again by itself; the log of the task shows its last lines";
    /// A playbook of the user's that failed.
    Playbook = "HOST-022", Person, "correct the playbook; the log of the task shows what it said";
    /// Something of somebody else's is where ours should be.
    Foreign = "HOST-023", Person, "use another machine, or take it from whoever has it: what others made is not overwritten; what is left of somebody who is gone is removed by hand";
    /// The key that opens the machine could not be opened itself.
    NoKey = "HOST-024", Person, "set the secret that the manifest names; the key of a cluster comes back with a backup or the right key file";
    /// Whoever keeps the keys does not answer.
    KeyAway = "HOST-025", Slipway, "tries again by itself";
    /// Playbooks are not allowed here.
    PlaybooksOff = "HOST-026", Person, "start the server and its workers with --allow-playbooks, if everybody who may apply manifests may run programs there";
    /// An SSH server that lets nobody through.
    NoPassage = "HOST-027", Person, "let the SSH server that refuses forward connections (AllowTcpForwarding, PermitOpen); one in front of a machine may be another jump host";
    /// More output than anybody can read.
    Flood = "HOST-028", Person, "look at the log of the task: a tool on the machine writes without end; mend it, what was done stays done";
    /// This machine could not even try.
    OurSide = "HOST-029", Slipway, "tries again by itself; see on the server's machine that there are file descriptors, ports, room and a route to spare";
    /// A private network in which the machine is reached already.
    Overlap = "HOST-030", Person, "delete the cluster and declare it again with a `network` that nothing else uses";
    /// Nobody listens at a port within a host.
    NobodyListens = "HOST-031", Slipway, "tries again by itself; see on the machine that what should listen at that port runs";
    /// A file that changes while it is read.
    Changing = "HOST-032", Slipway, "tries again by itself; see on the machine what writes to that file";
    /// A file of a host that is not there.
    NoFile = "HOST-033", Person, "look on the machine what became of the file; who was to make it may have failed";
    /// A file of a host with more bytes than we take.
    TooLarge = "HOST-034", Person, "look on the machine why the file grew so large, and make what it holds smaller";
    /// A provider whose machines this build does not make.
    NoHands = "HOST-035", Person, "rehearse the manifest with `slipway simulate`, or use machines of your own in a static pool";
    /// An image that nobody has, to make a machine of.
    NoImage = "HOST-036", Person, "correct the image of the pool in the manifest, and apply it";
    /// An artifact that is not what it should be.
    WrongChecksum = "ARTIFACT-001", Person, "the mirror holds another file than was promised: fetch it again, or correct the checksum";
    /// An artifact that nobody has.
    NoArtifact = "ARTIFACT-002", Person, "add it to the mirror, or name another mirror that has it";
    /// A source that does not answer.
    SourceAway = "ARTIFACT-003", Slipway, "see that it can be reached, or name a mirror that has what is missing; a server tries again by itself";
    /// The cache of artifacts, or a mirror, cannot be written or read.
    CacheBroken = "ARTIFACT-004", Person, "make room where it lies, or give the user that runs Slipway the right to write there";
    /// An index that makes no sense.
    BadIndex = "ARTIFACT-005", Person, "make it anew with `slipway mirror index DIR`, or name another mirror";
    /// A package that the packages of a mirror lack.
    NoPackage = "ARTIFACT-006", Person, "make them anew with `slipway mirror packages` on a machine of the host's system, or add the package there";
    /// Packages that cannot be collected on this machine.
    NoPackages = "ARTIFACT-007", Person, "run it on a Debian or Ubuntu machine of the kind that the hosts are, whose package sources answer `apt-get update`";
    /// A version of Kubernetes that nobody has.
    NoVersion = "ARTIFACT-008", Person, "set a version that was released in the manifest, or add its programs to a mirror";
    /// An add-on whose objects cannot be had.
    NoAddon = "ARTIFACT-009", Person, "set a version that its makers published in the manifest, or add the objects to a mirror with `slipway mirror create --addon`";
    /// This machine cannot make sandbox hosts.
    NoSandbox = "SANDBOX-001", Person, "run as root, or install uidmap and give the user a line in /etc/subuid and /etc/subgid";
    /// The root filesystem of sandbox hosts could not be made.
    NoRootfs = "SANDBOX-002", Person, "install mmdebstrap, or name a root filesystem archive with --sandbox-rootfs";
    /// A sandbox host did not start.
    NotStarted = "SANDBOX-003", Slipway, "tries again by itself; the log of the task shows what it said";
    /// Another process has the sandbox open.
    SandboxBusy = "SANDBOX-004", Slipway, "tries again by itself; end the other process, or give this one a directory of its own";
    /// The network of sandbox hosts is in use.
    SubnetTaken = "SANDBOX-005", Person, "choose a network that nothing on this machine uses with --sandbox-subnet; hosts that exist keep the one they were made with";
    /// The network of sandbox hosts is full.
    SubnetFull = "SANDBOX-006", Person, "delete hosts, or choose a larger network with --sandbox-subnet";
    /// A sandbox host that is not there.
    NoSuchHost = "SANDBOX-007", Slipway, "tries again by itself; it was deleted meanwhile, or never made";
    /// A sandbox belongs to one server, and several may share the database.
    SharedSandbox = "SANDBOX-008", Person, "start the server without --database, or use machines that are there already (static pools)";
}
