//! What the language says of load balancers.

use super::super::Field;
use super::super::Is::{Flag, Form, Mapping, Name, Number, One, Several};
use super::{NAME, PORT_MAX, may, must};
use crate::admit::manifest::{CLUSTER_NAME_MAX, POOL_NAME_MAX, PROVIDER_NAME_MAX};
use crate::balancer::RESERVED_FROM;

pub(super) const BALANCERS: &[Field] = &[
    may(
        "roles",
        Several(&Mapping(ROLE)),
        "What load balancers listen to and lead to; each may have several.",
    ),
    may(
        "clusters",
        Several(&Mapping(&[
            must(
                "name",
                Name(CLUSTER_NAME_MAX),
                "What people call it; unique among load balancers and clusters.",
            ),
            must(
                "targetedK8s",
                Name(CLUSTER_NAME_MAX),
                "The cluster that it stands before.",
            ),
            may("roles", Several(&Name(NAME)), "Which roles it has."),
            may(
                "pools",
                Several(&Name(POOL_NAME_MAX)),
                "Pools of its machines.",
            ),
            may(
                "dns",
                Mapping(DNS),
                "How it is called in the world. This build makes no records with clouds: it says which are missing.",
            ),
        ])),
        "The load balancers.",
    ),
];

const DNS: &[Field] = &[
    must(
        "dnsZone",
        Form("a name of DNS", "example.org"),
        "The zone in which its names are.",
    ),
    must(
        "provider",
        Name(PROVIDER_NAME_MAX),
        "The provider of this manifest that answers for the zone.",
    ),
    may(
        "hostname",
        Name(NAME),
        "What it is called there; 17 letters and digits, for as long as the zone is the same, where nothing is said.",
    ),
    may(
        "alternativeNames",
        Several(&Form("a name of DNS", "www")),
        "What else it is called there. None on a load balancer with the API.",
    ),
];

const ROLE: &[Field] = &[
    must("name", Name(NAME), "What load balancers call it."),
    must("protocol", One(|| vec!["tcp", "udp"]), "What is passed on."),
    must(
        "port",
        Number(1, RESERVED_FROM - 1),
        "Where the load balancer listens.",
    ),
    must(
        "targetPort",
        Number(1, PORT_MAX),
        "Where nodes answer. 6443 is the API: then the load balancer listens there, too.",
    ),
    must(
        "targetPools",
        Several(&Name(POOL_NAME_MAX)),
        "Whose nodes answer.",
    ),
    may(
        "settings",
        Mapping(&[
            must(
                "proxyProtocol",
                Flag,
                "Whether nodes are told who is calling; true without settings. Never for udp and the API.",
            ),
            must(
                "stickySessions",
                Flag,
                "Whether callers stay with their node; false without settings.",
            ),
        ]),
        "How it passes on.",
    ),
];
