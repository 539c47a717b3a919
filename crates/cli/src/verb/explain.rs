//! `slipway explain`: what a field of a manifest is for. Nobody is asked.

use crate::context::{Context, json};
use crate::error::Error;
use api::Exit;
use api::language::{Placed, all, meant, near, schema};
use serde::Serialize;

/// The widest place that explanations are put beside; those of longer ones stand below.
const WIDTH: usize = 22;

/// Arguments of `slipway explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway explain spec.nodePools.dynamic
  slipway explain upgradeGates
  slipway explain --schema > manifest.json

An editor that knows JSON Schemas completes manifests that begin with
  # yaml-language-server: $schema=manifest.json")]
pub struct Arguments {
    /// Where it stands, or how that ends; the top of the manifest without it
    field: Option<String>,

    /// Print the JSON Schema of manifests, for editors
    #[arg(long, conflicts_with = "field")]
    schema: bool,
}

/// A field for programs.
#[derive(Serialize)]
struct Told {
    path: String,
    required: bool,
    allowed: String,
    about: &'static str,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    if arguments.schema {
        let schema = json(&schema())?;
        context.out().data(&schema)?;
        return Ok(Exit::Done);
    }
    let found = match arguments.field.as_deref() {
        None => Vec::new(),
        Some(words) => match meant(words) {
            found if found.is_empty() => {
                return Err(Error::Usage {
                    what: format!("manifests have no field `{words}`"),
                    hint: hint(words),
                });
            }
            found => found,
        },
    };
    let wire: Vec<_> = shown(&found).into_iter().map(Told::new).collect();
    context.show(&wire, |_| picture(&found))?;
    Ok(Exit::Done)
}

/// What somebody may have meant, else where to begin.
fn hint(words: &str) -> String {
    /// A hint is read, not searched.
    const SHOWN_MAX: usize = 3;
    let near = near(words);
    let near: Vec<_> = near
        .iter()
        .map(|placed| format!("`{}`", placed.path))
        .collect();
    match near.as_slice() {
        [] => "`slipway explain` without a word shows where to begin".to_owned(),
        near if near.len() > SHOWN_MAX => {
            format!("did you mean {} or another?", near[..SHOWN_MAX].join(", "))
        }
        near => format!("did you mean {}?", near.join(" or ")),
    }
}

/// What is told of: one field with those within it, several without, or the top of the manifest.
fn shown(found: &[Placed]) -> Vec<Placed> {
    match found {
        [] => all()
            .into_iter()
            .filter(|placed| placed.path.matches('.').count() <= 1)
            .collect(),
        [one] => within(one),
        several => several.to_vec(),
    }
}

fn within(one: &Placed) -> Vec<Placed> {
    let inside = |placed: &Placed| {
        let rest = placed.path.strip_prefix(&one.path);
        let rest = rest.map(|rest| rest.trim_start_matches("[]"));
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('.') && !rest[1..].contains('.')
        })
    };
    all().into_iter().filter(inside).collect()
}

fn picture(found: &[Placed]) -> String {
    let mut lines = Vec::new();
    match found {
        [one] => {
            let field = one.field;
            let needed = if field.needed { ", required" } else { "" };
            lines.push(format!("{}  {}{needed}", one.path, field.is));
            lines.push(format!("  {}", field.about));
            let inside = within(one);
            let inside = inside.iter().filter(|placed| placed.path != one.path);
            let inside: Vec<_> = inside
                .map(|placed| line(placed.field.name, placed))
                .collect();
            if !inside.is_empty() {
                lines.push(String::new());
                lines.extend(inside);
                lines.extend(legend());
            }
        }
        [] => {
            let top = shown(found);
            lines.extend(top.iter().map(|placed| line(&placed.path, placed)));
            lines.extend(legend());
        }
        several => {
            let each = |placed: &Placed| [placed.path.clone(), format!("  {}", placed.field.about)];
            lines.extend(several.iter().flat_map(each));
            lines.push(String::new());
            lines.push("Say more of its place to see what is allowed there.".to_owned());
        }
    }
    lines.join("\n") + "\n"
}

fn legend() -> [String; 2] {
    [String::new(), "* must be said".to_owned()]
}

fn line(name: &str, placed: &Placed) -> String {
    let mark = if placed.field.needed { "*" } else { " " };
    let about = placed.field.about;
    if name.len() > WIDTH {
        format!("{mark} {name}\n  {:WIDTH$}  {about}", "")
    } else {
        format!("{mark} {name:WIDTH$}  {about}")
    }
}

impl Told {
    fn new(placed: Placed) -> Self {
        Self {
            required: placed.field.needed,
            allowed: placed.field.is.to_string(),
            about: placed.field.about,
            path: placed.path,
        }
    }
}
