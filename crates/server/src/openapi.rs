//! The document of the API: what the routes say of themselves, and what holds for all.
//!
//! `openapi/v1.json` is this document, and a test keeps the two equal. What every route
//! of a kind shares (the pieces of its path, the problems it can answer with) is added
//! here once, so that no route can forget it.

use std::collections::BTreeMap;

use api::problem::MEDIA_TYPE;
use utoipa::openapi::content::{Content, ContentBuilder};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, HttpMethod, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required,
    Schema,
};
use utoipa::{PartialSchema as _, ToSchema as _};

use crate::routes;

/// A DNS label, as [`model::name::Name`] checks it.
const NAME: &str = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$";

/// The name of an environment, as [`model::environment::EnvironmentName`] checks it.
const ENVIRONMENT: &str = "^[a-z][a-z0-9-]{0,14}[a-z0-9]$";

/// The digits of an id behind its prefix, as `model::id` prints them: 64 bits in 13 digits.
const DIGITS: &str = "[0-9bcdfgh][0-9bcdfghjkmnpqrstvwxyzeu]{12}";

/// How the token is shown.
pub(crate) const BEARER: &str = "bearer";

/// Where an operation says which role it needs.
pub(crate) const ROLE: &str = "x-slipway-role";

/// Said beside the role of an operation that needs a token for all projects.
pub(crate) const ALL_PROJECTS: &str = "all-projects";

/// The schema of a manifest.
const MANIFEST: &str = "InputManifest";

/// The kinds of body in which a manifest comes; the first is what routes declare.
const MANIFEST_TYPES: [&str; 4] = [
    "application/yaml",
    "application/json",
    "text/yaml",
    "text/plain",
];

/// The document, from the routes as they are.
pub fn document() -> OpenApi {
    let routes = routes::quick()
        .and(routes::slow())
        .and(routes::environments::routes())
        .and(routes::long())
        .and(routes::open());
    let (_, collected) = routes.into_inner().split_for_parts();
    let mut schemas: BTreeMap<String, RefOr<Schema>> = collected
        .components
        .map(|all| all.schemas)
        .unwrap_or_default();
    let mut referenced = Vec::new();
    api::Problem::schemas(&mut referenced);
    schemas.insert(api::Problem::name().into_owned(), api::Problem::schema());
    schemas.extend(referenced);
    let mut components = ComponentsBuilder::new().security_scheme(
        BEARER,
        SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)),
    );
    schemas.insert(MANIFEST.to_owned(), manifest().into());
    for (name, mut schema) in schemas {
        camel_case(&mut schema);
        components = components.schema(name, schema);
    }
    for problem in PROBLEMS {
        components = components.response(problem.name, problem.response());
    }
    let mut paths = collected.paths;
    for (path, item) in &mut paths.paths {
        complete(path, item);
    }
    let info = InfoBuilder::new()
        .title("Slipway")
        .version("v1")
        .description(Some(
            "Builds Kubernetes and looks after it for life. Mutations answer 202 with what to follow; \
             errors are problems (RFC 9457) with a stable code.",
        ))
        .build();
    OpenApiBuilder::new()
        .info(info)
        .paths(paths)
        .components(Some(components.build()))
        .security(Some([SecurityRequirement::new(BEARER, [""; 0])]))
        .build()
}

/// The document as it is served and committed.
pub(crate) fn text(document: &OpenApi) -> String {
    // The document is made of strings and numbers alone, which always serialise.
    let mut text = document.to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
}

/// A problem that several routes can answer with.
struct Shared {
    status: &'static str,
    name: &'static str,
    description: &'static str,
}

/// Problems that are told once for all routes.
const PROBLEMS: [Shared; 10] = [
    Shared {
        status: "400",
        name: "Malformed",
        description: "the request cannot be read",
    },
    Shared {
        status: "401",
        name: "Unauthorised",
        description: "no token was shown, or one that opens nothing",
    },
    Shared {
        status: "403",
        name: "Forbidden",
        description: "the role or the project of the token is not enough, or a quota is exceeded",
    },
    Shared {
        status: "404",
        name: "Missing",
        description: "there is no such thing",
    },
    Shared {
        status: "413",
        name: "TooLarge",
        description: "the body is larger than anything honest",
    },
    Shared {
        status: "415",
        name: "MediaType",
        description: "a kind of body that is not read here",
    },
    Shared {
        status: "429",
        name: "TooManyFailures",
        description: "too many tokens that open nothing came from this address; Retry-After says when to try again",
    },
    Shared {
        status: "500",
        name: "Bug",
        description: "a mistake of the server's own",
    },
    Shared {
        status: "503",
        name: "Unavailable",
        description: "not now; Retry-After says when to try again",
    },
    Shared {
        status: "507",
        name: "Full",
        description: "the disk of the server is full; reading goes on",
    },
];

impl Shared {
    fn response(&self) -> Response {
        let schema = Ref::from_schema_name(api::Problem::name());
        ResponseBuilder::new()
            .description(self.description)
            .content(
                MEDIA_TYPE,
                ContentBuilder::new().schema(Some(schema)).build(),
            )
            .build()
    }

    /// Whether a route of this shape can answer with it.
    fn applies(&self, path: &str, method: &HttpMethod, body: bool) -> bool {
        let closed = path.starts_with("/api/");
        match self.status {
            "400" | "401" | "403" | "404" | "429" => closed,
            "413" | "415" => body,
            "507" => *method != HttpMethod::Get,
            _ => true,
        }
    }
}

/// Adds to the operations of one path what its shape implies.
fn complete(path: &str, item: &mut PathItem) {
    let operations = [
        (HttpMethod::Get, &mut item.get),
        (HttpMethod::Put, &mut item.put),
        (HttpMethod::Post, &mut item.post),
        (HttpMethod::Patch, &mut item.patch),
        (HttpMethod::Delete, &mut item.delete),
    ];
    for (method, operation) in operations {
        let Some(operation) = operation else { continue };
        let body = operation.request_body.is_some();
        if let Some(RefOr::T(body)) = &mut operation.request_body
            && body.content.contains_key(MANIFEST_TYPES[0])
        {
            body.content = MANIFEST_TYPES
                .iter()
                .map(|kind| ((*kind).to_owned(), manifest_as(kind).into()))
                .collect();
        }
        for problem in PROBLEMS
            .iter()
            .filter(|problem| problem.applies(path, &method, body))
        {
            let told = RefOr::Ref(Ref::from_response_name(problem.name));
            operation
                .responses
                .responses
                .entry(problem.status.to_owned())
                .or_insert(told);
        }
        for parameter in operation.parameters.iter_mut().flatten() {
            never_null(parameter);
        }
        let pieces = path
            .split('/')
            .filter_map(|piece| piece.strip_prefix('{')?.strip_suffix('}'));
        let parameters: Vec<RefOr<Parameter>> =
            pieces.map(|piece| parameter(path, piece).into()).collect();
        if !parameters.is_empty() {
            operation
                .parameters
                .get_or_insert_default()
                .splice(0..0, parameters);
        }
    }
}

/// What a manifest looks like from afar; admission knows the rest, and tells it better.
fn manifest() -> ObjectBuilder {
    let text = |words: &[&str]| {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(words.iter().copied()))
    };
    let name = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(NAME));
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some("A manifest: what is declared."))
        .property("apiVersion", text(&["slipway.dev/v1"]))
        .property("kind", text(&["InputManifest"]))
        .property(
            "metadata",
            ObjectBuilder::new()
                .schema_type(Type::Object)
                .property("name", name)
                .required("name"),
        )
        .property("spec", ObjectBuilder::new().schema_type(Type::Object))
        .required("apiVersion")
        .required("kind")
        .required("metadata")
        .required("spec")
}

/// A manifest in one of the kinds of body in which it comes.
fn manifest_as(kind: &str) -> Content {
    let plain = kind == "text/plain";
    let example = serde_json::json!({
        "apiVersion": "slipway.dev/v1",
        "kind": "InputManifest",
        "metadata": {"name": "hello"},
        "spec": {
            "providers": [{"name": "lab", "providerType": "simulated"}],
            "nodePools": {"dynamic": [{
                "name": "control", "providerSpec": {"name": "lab", "region": "north"},
                "count": 1, "serverType": "small", "image": "debian-12",
            }]},
            "kubernetes": {"clusters": [{
                "name": "hello", "version": "v1.35.0", "network": "10.0.0.0/24",
                "pools": {"control": ["control"], "compute": []},
            }]},
        },
    });
    let text = RefOr::from(ObjectBuilder::new().schema_type(Type::String));
    let schema = if plain {
        text
    } else {
        Ref::from_schema_name(MANIFEST).into()
    };
    let example = if plain {
        example.to_string().into()
    } else {
        example
    };
    ContentBuilder::new()
        .schema(Some(schema))
        .example(Some(example))
        .build()
}

/// Names the fields of variants as the wire has them: utoipa does not know serde's
/// `rename_all_fields`. To be removed when it does.
fn camel_case(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::T(Schema::Object(object)) => {
            object.properties = std::mem::take(&mut object.properties)
                .into_iter()
                .map(|(name, mut property)| {
                    camel_case(&mut property);
                    (camel(&name), property)
                })
                .collect();
            object.required = object.required.iter().map(|name| camel(name)).collect();
        }
        RefOr::T(Schema::OneOf(one_of)) => one_of.items.iter_mut().for_each(camel_case),
        RefOr::T(_) | RefOr::Ref(_) => {}
    }
}

/// `server_type` becomes `serverType`.
fn camel(name: &str) -> String {
    let mut pieces = name.split('_');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |name, piece| {
        let (head, tail) = piece.split_at_checked(1).unwrap_or(("", piece));
        name + &head.to_uppercase() + tail
    })
}

/// A header or a query parameter that is not there is not there; it is never null.
fn never_null(parameter: &mut RefOr<Parameter>) {
    if let RefOr::T(Parameter {
        schema: Some(RefOr::T(Schema::Object(object))),
        ..
    }) = parameter
        && let SchemaType::Array(types) = &object.schema_type
        && let Some(only) = types.iter().find(|kind| **kind != Type::Null)
    {
        object.schema_type = SchemaType::Type(only.clone());
    }
}

/// One piece of a path, with the form it must have.
fn parameter(path: &str, piece: &str) -> Parameter {
    let text = |pattern: &str| {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(pattern.to_owned()))
    };
    let (schema, description) = match piece {
        "project" => (
            text(NAME).examples([serde_json::json!("default")]),
            "who owns it; `default` exists from the start",
        ),
        "generation" => (
            ObjectBuilder::new()
                .schema_type(Type::Integer)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
                .minimum(Some(1)),
            "which accepted change, counted from 1",
        ),
        "id" => {
            let prefix = if path.contains("/tasks/") {
                "task"
            } else if path.contains("/intents/") {
                "intent"
            } else if path.contains("/tokens/") {
                "token"
            } else if path.contains("/actions/") {
                "action"
            } else {
                "plan"
            };
            (text(&format!("^{prefix}-{DIGITS}$")), "which one")
        }
        "name" if path.contains("/environments/") => (text(ENVIRONMENT), "what people call it"),
        _ => (text(NAME), "what people call it"),
    };
    ParameterBuilder::new()
        .name(piece)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}
