//! What the language says of clusters.

use super::super::Field;
use super::super::Is::{Flag, Foreign, Form, Mapping, Name, Number, One, Several, Text};
use super::{NAME, may, must};
use crate::addon::AddonName;
use crate::admit::manifest::{CLUSTER_NAME_MAX, ENGINE, POOL_NAME_MAX};
use crate::admit::{gates, snapshots};
use crate::disruption::Day;
use crate::kubernetes::{Cni, ProxyMode};
use crate::manifest::UNAVAILABLE_MAX;

pub(super) const CLUSTER: &[Field] = &[
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
