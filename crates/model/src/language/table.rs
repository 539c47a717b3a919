//! The table itself, in the order in which manifests are written.

mod balancers;
mod clusters;
mod pools;

use super::Field;
use super::Is::{Form, Mapping, Name, Number, One, Several, Text, Texts};
use crate::admit::manifest::{API_VERSIONS, PROVIDER_NAME_MAX};
use crate::admit::templates;
use crate::manifest::UNAVAILABLE_MAX;
use crate::name;
use crate::provider::Provider;
use balancers::BALANCERS;
use clusters::CLUSTER;
use pools::POOLS;

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
