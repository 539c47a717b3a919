//! The table itself, in the order in which manifests are written.

mod balancers;

use super::Field;
use super::Is::{Flag, Foreign, Form, Mapping, Name, Number, One, Several, Text, Texts};
use crate::addon::AddonName;
use crate::admit::hardware::{CPUS_MAX, DISK_MAX, GPUS_MAX, MEMORY_MAX};
use crate::admit::manifest::{
    API_VERSIONS, CLUSTER_NAME_MAX, ENGINE, POOL_NAME_MAX, PROVIDER_NAME_MAX,
};
use crate::admit::{gates, snapshots, templates, upkeep};
use crate::care::TaintEffect;
use crate::disruption::Day;
use crate::kubernetes::{Cni, ProxyMode};
use crate::manifest::{POOL_COUNT_MAX, UNAVAILABLE_MAX};
use crate::name;
use crate::provider::Provider;
use balancers::BALANCERS;

const fn must(name: &'static str, is: super::Is, about: &'static str) -> Field {
    Field {
        name,
        needed: true,
        is,
        about,
    }
}

const fn may(name: &'static str, is: super::Is, about: &'static str) -> Field {
    Field {
        name,
        needed: false,
        is,
        about,
    }
}

const NAME: usize = name::Name::LEN_MAX;
const PORT_MAX: u32 = 65_535;

pub(super) const TOP: &[Field] = &[
    must(
        "apiVersion",
        One(|| API_VERSIONS.to_vec()),
        "Which language this is; both words mean the same.",
    ),
    must(
        "kind",
        One(|| vec!["InputManifest"]),
        "What kind of document this is.",
    ),
    must(
        "metadata",
        Mapping(METADATA),
        "What the manifest is called.",
    ),
    must("spec", Mapping(SPEC), "All that is declared."),
];

const METADATA: &[Field] = &[
    must(
        "name",
        Name(NAME),
        "What people call the manifest; unique within its project.",
    ),
    may(
        "namespace",
        Name(NAME),
        "The project, for files that name one. Another is refused.",
    ),
    may("labels", Texts, "For other tools; none of them is kept."),
    may(
        "annotations",
        Texts,
        "For other tools; none of them is kept.",
    ),
];

const SPEC: &[Field] = &[
    may(
        "providers",
        Several(&Mapping(PROVIDER)),
        "Who lends machines. Needed where a dynamic pool names one.",
    ),
    may(
        "disruption",
        Mapping(&[may(
            "groups",
            Several(&Mapping(&[
                must("name", Name(NAME), "What pools call the group."),
                must(
                    "unavailable",
                    Number(1, UNAVAILABLE_MAX),
                    "How many machines of the group may be out of service at once, in all clusters of the project.",
                ),
            ])),
            "Machines that share a fate, such as those of one rack.",
        )]),
        "What is taken out of service together, in all clusters.",
    ),
    must(
        "nodePools",
        Mapping(POOLS),
        "Machines alike, scaled and replaced together.",
    ),
    must(
        "kubernetes",
        Mapping(&[may("clusters", Several(&Mapping(CLUSTER)), "The clusters.")]),
        "The clusters.",
    ),
    may(
        "loadBalancers",
        Mapping(BALANCERS),
        "What stands before clusters.",
    ),
];

const PROVIDER: &[Field] = &[
    must(
        "name",
        Name(PROVIDER_NAME_MAX),
        "What pools call it; unique in the manifest.",
    ),
    must(
        "providerType",
        One(|| Provider::all().map(Provider::as_str).collect()),
        "Whose machines: simulated ones in memory, those of a sandbox on this machine, or a cloud's.",
    ),
    may(
        "secretRef",
        Mapping(SECRET),
        "The secret that opens the account. Clouds need one; each knows which of its entries.",
    ),
    may(
        "templates",
        Mapping(&[
            must(
                "repository",
                Form(
                    "a git repository without a scheme",
                    "github.com/org/modules",
                ),
                "Where they are; they are fetched by https.",
            ),
            must("commit", Text, COMMIT),
            may(
                "path",
                Form("a path within the repository", "modules/hetzner"),
                "Where in the repository; at its top where nothing is said.",
            ),
            may("secretRef", Mapping(OPENS), OPENS_ABOUT),
        ]),
        "Whose modules its machines are made with; built-in ones where nothing is said.",
    ),
    may(
        "templatesRef",
        Mapping(&[
            must(
                "name",
                Name(NAME),
                "What a TemplateGitReference of the same file is called. claudie-default-templates without one means the built-in modules.",
            ),
            may(
                "namespace",
                Name(NAME),
                "The namespace of that document, where both name one.",
            ),
        ]),
        "The same, as the name of a document beside this one.",
    ),
];

const COMMIT: &str = "Which of its commits: a hash, a tag or a branch. Another word here is another kind of machine (see replace). To which commit a tag or a branch leads is looked up, and machines remember it; when it leads elsewhere, machines are made from that in a window of the cluster, or when somebody asks (`slipway pool update`).";

const OPENS_ABOUT: &str =
    "The secret that opens the repository, where that is not open to everybody.";

const OPENS: &[Field] = &[
    must(
        "name",
        Name(NAME),
        "Which secret of the project. Its entry token is needed; username says in whose name, x-access-token where it is not there.",
    ),
    may(
        "namespace",
        Name(NAME),
        "The project, for files that name one. Another is refused.",
    ),
];

/// Documents that describe modules under a name, beside a manifest.
pub(super) const TEMPLATES: &[Field] = &[
    must(
        "apiVersion",
        One(|| API_VERSIONS.to_vec()),
        "Which language this is; both words mean the same.",
    ),
    must(
        "kind",
        One(|| vec![templates::KIND]),
        "What kind of document this is.",
    ),
    must(
        "metadata",
        Mapping(METADATA),
        "What templatesRef of a provider calls it.",
    ),
    must(
        "spec",
        Mapping(&[
            must(
                "endpoint",
                Mapping(&[
                    must(
                        "url",
                        Form(
                            "a git repository without a scheme",
                            "github.com/org/modules",
                        ),
                        "Where it is.",
                    ),
                    must("protocol", One(|| vec!["https"]), "How it is fetched."),
                ]),
                "Where the repository is.",
            ),
            must("commit", Text, COMMIT),
            must(
                "paths",
                Mapping(&[
                    must(
                        "terraformer",
                        Form("a path within the repository", "templates/terraformer"),
                        "Where the modules are that machines are made with.",
                    ),
                    may("playbooks", Text, IGNORED),
                    may("configLb", Text, IGNORED),
                    may("configK8s", Text, IGNORED),
                    may("manifestsK8s", Text, IGNORED),
                ]),
                "Where in the repository.",
            ),
            may(
                "auth",
                Mapping(&[may("secretRef", Mapping(OPENS), OPENS_ABOUT)]),
                "What opens the repository.",
            ),
        ]),
        "Which modules.",
    ),
];

const IGNORED: &str = "For files from elsewhere; nothing there is used.";

const SECRET: &[Field] = &[
    must("name", Name(NAME), "Which secret of the project."),
    may(
        "key",
        Text,
        "Which of its entries; the usual one where nothing is said.",
    ),
    may(
        "namespace",
        Name(NAME),
        "The project, for files that name one. Another is refused.",
    ),
];

const POOLS: &[Field] = &[
    may(
        "dynamic",
        Several(&Mapping(DYNAMIC)),
        "Pools of machines that Slipway makes.",
    ),
    may(
        "static",
        Several(&Mapping(STATIC)),
        "Pools of machines that are there already.",
    ),
    may(
        "metal",
        Several(&Mapping(METAL)),
        "Pools of machines that were discovered. This build discovers none: such a pool waits for them.",
    ),
];

const METAL: &[Field] = &[
    must(
        "name",
        Name(POOL_NAME_MAX),
        "What clusters call the pool; unique in the manifest.",
    ),
    must("count", Number(1, POOL_COUNT_MAX), "How many machines."),
    must(
        "selector",
        Texts,
        "The labels that its machines have, with their values; at least one.",
    ),
    POOL_DISRUPTION,
    LABELS,
    ANNOTATIONS,
    TAINTS,
];

const DYNAMIC: &[Field] = &[
    must(
        "name",
        Name(POOL_NAME_MAX),
        "What clusters call the pool; unique in the manifest.",
    ),
    must(
        "providerSpec",
        Mapping(&[
            must(
                "name",
                Name(PROVIDER_NAME_MAX),
                "Which provider of this manifest.",
            ),
            must("region", Text, "Where, in the provider's words."),
            may(
                "zone",
                Text,
                "Where within the region; the provider chooses where nothing is said.",
            ),
            may(
                "externalNetworkName",
                Text,
                "The network through which machines are reached. Needed with openstack, and for nobody else.",
            ),
        ]),
        "Whose machines, and where. Cannot change while they serve, unless the pool says replace: true.",
    ),
    may(
        "count",
        Number(1, POOL_COUNT_MAX),
        "How many machines. Either this or autoscaler.",
    ),
    may(
        "autoscaler",
        Mapping(&[
            must(
                "min",
                Number(0, POOL_COUNT_MAX),
                "The fewest machines, with which it begins; there may be none.",
            ),
            must("max", Number(1, POOL_COUNT_MAX), "The most machines."),
        ]),
        "Between which sizes wishes scale it. Never for a control plane.",
    ),
    must(
        "serverType",
        Text,
        "Which size, in the provider's words. Cannot change while they serve, unless the pool says replace: true.",
    ),
    must(
        "image",
        Text,
        "Which system, in the provider's words. Cannot change while they serve, unless the pool says replace: true.",
    ),
    may(
        "storageDiskSize",
        Number(0, DISK_MAX),
        "The data disk of compute machines in GB: 0 for none, else at least 50. Clouds give 50 where nothing is said. Cannot change while they serve, unless the pool says replace: true.",
    ),
    may(
        "machineSpec",
        Mapping(&[
            may(
                "cpuCount",
                Number(0, CPUS_MAX),
                "Processors; said with memory or not at all.",
            ),
            may(
                "memory",
                Number(0, MEMORY_MAX),
                "GB of memory; said with cpuCount or not at all.",
            ),
            may(
                "nvidiaGpuCount",
                Number(0, GPUS_MAX),
                "Graphics processors.",
            ),
            may(
                "nvidiaGpu",
                Number(0, GPUS_MAX),
                "The same, as older files call it.",
            ),
            may(
                "nvidiaGpuType",
                Text,
                "Which graphics processors. Needed with gcp where there are any.",
            ),
        ]),
        "What a machine has, where its type does not say. Cannot change while they serve, unless the pool says replace: true.",
    ),
    may(
        "spot",
        Flag,
        "Whether machines are lent cheaply and may be taken back at any time. Never for a control plane; false where nothing is said. Cannot change while they serve, unless the pool says replace: true.",
    ),
    may(
        "replace",
        Flag,
        "Whether the pool's machines are replaced when they are to be made in another way: another type, image, disk or place. Those of the new kind come and serve before the old ones go, and a kind that fails is taken back. False where nothing is said: such a change is refused.",
    ),
    may(
        "surge",
        Number(1, upkeep::SURGE_MAX),
        "How many machines of the new kind come at once before as many go; 1 where nothing is said. Needs replace: true.",
    ),
    POOL_DISRUPTION,
    LABELS,
    ANNOTATIONS,
    TAINTS,
];

const STATIC: &[Field] = &[
    must(
        "name",
        Name(POOL_NAME_MAX),
        "What clusters call the pool; unique in the manifest.",
    ),
    SSH_PORT,
    may(
        "jumpHost",
        Mapping(&[
            must("endpoint", ADDRESS, "Its address."),
            SSH_PORT,
            USERNAME,
            may(
                "secretRef",
                Mapping(SECRET),
                "The private key that opens it.",
            ),
        ]),
        "The host through which its machines are reached, by their addresses as it sees them.",
    ),
    must(
        "nodes",
        Several(&Mapping(&[
            must(
                "endpoint",
                ADDRESS,
                "The address of the machine. Nobody else may declare it.",
            ),
            USERNAME,
            may(
                "secretRef",
                Mapping(SECRET),
                "The private key that opens it, in its entry `privatekey`.",
            ),
        ])),
        "The machines, at least one.",
    ),
    POOL_DISRUPTION,
    LABELS,
    ANNOTATIONS,
    TAINTS,
];

const ADDRESS: super::Is = Form("an IPv4 address", "192.0.2.7");

const SSH_PORT: Field = may(
    "sshPort",
    Number(0, PORT_MAX),
    "The port of its SSH server; 22 where nothing is said, or 0.",
);

const USERNAME: Field = may(
    "username",
    Text,
    "Who enters it: root where nothing is said, else somebody who may use sudo without a password.",
);

const POOL_DISRUPTION: Field = may(
    "disruption",
    Mapping(&[
        may(
            "unavailable",
            Number(1, UNAVAILABLE_MAX),
            "How many of its machines may be out of service at once, in each cluster.",
        ),
        may(
            "group",
            Name(NAME),
            "The group that its machines belong to.",
        ),
    ]),
    "How its machines are taken out of service.",
);

const LABELS: Field = may("labels", Texts, "What its nodes are labelled with.");

const ANNOTATIONS: Field = may(
    "annotations",
    Texts,
    "What its nodes are annotated with; 256 KiB at most.",
);

const TAINTS: Field = may(
    "taints",
    Several(&Mapping(&[
        must("key", Text, "What it is called."),
        may("value", Text, "What it says."),
        must(
            "effect",
            One(|| TaintEffect::ALL.map(TaintEffect::as_str).to_vec()),
            "What happens to pods that do not tolerate it.",
        ),
    ])),
    "What keeps pods from its nodes.",
);

const CLUSTER: &[Field] = &[
    must(
        "name",
        Name(CLUSTER_NAME_MAX),
        "What people call the cluster; unique within its project.",
    ),
    must(
        "version",
        Form(
            "a released version of Kubernetes from 1.33 to 1.36",
            "v1.34.4",
        ),
        "Which Kubernetes. It can be raised, over several minor releases too: nodes then go there by one of them at a time. It is never lowered.",
    ),
    may(
        "engine",
        One(|| vec![ENGINE]),
        "Who makes Kubernetes on its machines; this build knows no other.",
    ),
    must(
        "network",
        Form("a private IPv4 network", "10.8.0.0/24"),
        "The network that its machines share. It cannot change.",
    ),
    must(
        "pools",
        Mapping(&[
            may(
                "control",
                Several(&Name(POOL_NAME_MAX)),
                "Pools whose machines run the control plane: 1, 3, 5 or 7 machines in all.",
            ),
            may(
                "compute",
                Several(&Name(POOL_NAME_MAX)),
                "Pools whose machines run workloads.",
            ),
        ]),
        "Which machines it has.",
    ),
    may(
        "disruption",
        Mapping(&[
            may(
                "unavailable",
                Number(1, UNAVAILABLE_MAX),
                "How many of its machines may be out of service at once; 1 where nothing is said. The control plane goes one at a time in any case.",
            ),
            may(
                "windows",
                Several(&Mapping(WINDOW)),
                "When machines may be taken out of service; at any time where there are none.",
            ),
        ]),
        "How its machines are taken out of service.",
    ),
    may(
        "upgradeGates",
        Several(&Mapping(GATE)),
        "What a node has to pass before it serves again after its upgrade, or in place of another, and before the next one goes.",
    ),
    may(
        "podNetwork",
        Form("a private IPv4 network", "10.244.0.0/16"),
        "The addresses of pods. It cannot change.",
    ),
    may(
        "serviceNetwork",
        Form("a private IPv4 network", "10.96.0.0/12"),
        "The addresses of services. It cannot change.",
    ),
    may(
        "cni",
        One(|| Cni::ALL.map(Cni::as_str).to_vec()),
        "Who connects pods: the mesh itself (routed, which needs no image, and is usual) or an add-on. It cannot change.",
    ),
    may(
        "kubeProxy",
        One(|| ProxyMode::ALL.map(ProxyMode::as_str).to_vec()),
        "How services find their pods; iptables where nothing is said, none only with cilium. It cannot change.",
    ),
    may(
        "installationProxy",
        Mapping(&[
            must(
                "mode",
                One(|| vec!["on", "off", "default"]),
                "Whether hosts use a proxy. With default they do where an endpoint is named and the cluster has machines of Hetzner, whose addresses some package sources refuse.",
            ),
            may(
                "noProxy",
                Text,
                "What is reached directly, separated by commas, besides what always is.",
            ),
            may(
                "endpoint",
                Form("the address of a proxy", "http://proxy.example.org:3128"),
                "Which proxy. Needed with mode: on.",
            ),
        ]),
        "How hosts reach package sources and registries.",
    ),
    may(
        "playbooks",
        Mapping(&[
            may(
                "beforeJoining",
                Several(&Mapping(PLAYBOOK)),
                "Played before a machine becomes a node.",
            ),
            may(
                "afterJoining",
                Several(&Mapping(PLAYBOOK)),
                "Played when it has become one.",
            ),
        ]),
        "What is played on machines besides, by Ansible.",
    ),
    may(
        "addons",
        Several(&Mapping(ADDON)),
        "What the cluster has besides Kubernetes.",
    ),
    may(
        "deletionProtection",
        Flag,
        "Whether the cluster is kept, whoever removes it or its manifest; false where nothing is said. To remove it, say false first.",
    ),
    may(
        "repair",
        Mapping(REPAIR),
        "What is done about machines that do not serve: those that Slipway made are replaced after ten minutes, where nothing is said.",
    ),
    may(
        "etcdBackup",
        Mapping(BACKUP),
        "How its etcd is saved: every day, the last seven, where nothing is said.",
    ),
];

const REPAIR: &[Field] = &[
    may(
        "mode",
        One(|| vec!["on", "off"]),
        "Whether machines are replaced without being asked; on where nothing is said.",
    ),
    may(
        "after",
        Form("a time from 1m to 7d", "10m"),
        "How long a machine may not serve before another takes its place; 10m where nothing is said.",
    ),
];

const WINDOW: &[Field] = &[
    may(
        "days",
        Several(&One(|| Day::ALL.map(Day::as_str).to_vec())),
        "On which days it opens; every day where nothing is said.",
    ),
    must(
        "start",
        Form("a time of day", "\"23:00\""),
        "When it opens.",
    ),
    must(
        "duration",
        Form("a time from 10m to 168h", "1h30m"),
        "How long it is open.",
    ),
    may(
        "offset",
        Form("an offset from UTC", "\"+02:00\""),
        "Whose clock; UTC where nothing is said.",
    ),
];

const GATE: &[Field] = &[
    must(
        "name",
        Name(gates::NAME_MAX),
        "What people call it; unique in the cluster.",
    ),
    may(
        "command",
        Several(&Text),
        "A program and its arguments, run on the node's machine as root. 0 lets the node pass.",
    ),
    may(
        "job",
        Foreign("a Job as Kubernetes knows it"),
        "A Job that must be complete. Either this or a command.",
    ),
    may(
        "timeout",
        Form("a time from 1m to 50m", "10m"),
        "For how long it is asked again; 10m where nothing is said.",
    ),
];

const PLAYBOOK: &[Field] = &[
    must(
        "name",
        Name(NAME),
        "What people call it; unique in the cluster.",
    ),
    must("text", Text, "A list of plays, in YAML, as one text."),
];

const ADDON: &[Field] = &[
    must(
        "name",
        One(|| AddonName::ALL.map(AddonName::as_str).to_vec()),
        "Which one.",
    ),
    may(
        "version",
        Form("a version that its makers published", "v0.8.0"),
        "Which version; one that fits Kubernetes, and is upgraded with it, where nothing is said.",
    ),
    may(
        "values",
        Foreign("settings that the add-on knows"),
        "How it is set up.",
    ),
];

const BACKUP: &[Field] = &[
    may(
        "mode",
        One(|| vec!["on", "off"]),
        "Whether it is saved at all, also before upgrades; on where nothing is said.",
    ),
    may(
        "every",
        Form("a time from 1m to 30d", "6h"),
        "How often; 24h where nothing is said.",
    ),
    may(
        "keep",
        Mapping(&[
            may(
                "count",
                Number(1, snapshots::COUNT_MAX),
                "How many snapshots are kept; 7 where nothing is said.",
            ),
            may(
                "age",
                Form("a time from 1h to 3650d", "14d"),
                "For how long they are kept; for good where nothing is said.",
            ),
        ]),
        "Which snapshots are kept.",
    ),
    may(
        "to",
        Mapping(&[
            may(
                "s3",
                Mapping(&[
                    must(
                        "endpoint",
                        Form("the address of a store", "https://s3.example.org"),
                        "Where the store answers.",
                    ),
                    must("bucket", Text, "Which bucket; it must be there."),
                    may(
                        "region",
                        Text,
                        "What requests are signed for; us-east-1 where nothing is said.",
                    ),
                    may("prefix", Text, "What the names of all objects begin with."),
                    may(
                        "ca",
                        Text,
                        "Certificates in PEM of those who may vouch for the store; those whom the machine trusts where nothing is said.",
                    ),
                    may(
                        "secretRef",
                        Mapping(&[
                            must(
                                "name",
                                Name(NAME),
                                "A secret with the entries accessKeyId and secretAccessKey.",
                            ),
                            may(
                                "namespace",
                                Name(NAME),
                                "The project, for files that name one. Another is refused.",
                            ),
                        ]),
                        "What opens the store.",
                    ),
                ]),
                "A bucket of a store that speaks S3.",
            ),
            may(
                "directory",
                Name(NAME),
                "A directory in snapshots of the server's data directory.",
            ),
        ]),
        "Where snapshots are kept; in the server's data directory where nothing is said.",
    ),
];
