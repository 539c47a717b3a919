//! What the language says of pools.

use super::super::Field;
use super::super::Is::{Flag, Form, Mapping, Name, Number, One, Several, Text, Texts};
use super::{NAME, PORT_MAX, SECRET, may, must};
use crate::admit::hardware::{CPUS_MAX, DISK_MAX, GPUS_MAX, MEMORY_MAX};
use crate::admit::manifest::{POOL_NAME_MAX, PROVIDER_NAME_MAX};
use crate::admit::upkeep;
use crate::care::TaintEffect;
use crate::manifest::{POOL_COUNT_MAX, UNAVAILABLE_MAX};

pub(super) const POOLS: &[Field] = &[
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
        "How many machines. Either this or autoscaler. At a cloud at most 251 less the surge.",
    ),
    may(
        "autoscaler",
        Mapping(&[
            must(
                "min",
                Number(0, POOL_COUNT_MAX),
                "The fewest machines, with which it begins; there may be none.",
            ),
            must(
                "max",
                Number(1, POOL_COUNT_MAX),
                "The most machines; at a cloud as with count.",
            ),
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

const ADDRESS: super::super::Is = Form("an IPv4 address", "192.0.2.7");

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
