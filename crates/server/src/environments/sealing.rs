//! Seals the secret settings of environments, each for its own place.

use model::environment::config::Edits;
use model::id::EnvironmentId;
use model::name::Name;
use model::sealed::{Owner, Place};
use model::secret::{EntryName, Secret};
use store::{Actor, EnvironmentRow, SealedRow};

use crate::app::App;
use crate::problem::Problem;

/// Values sealed for the environment that they are of.
pub(crate) async fn sealed(
    app: &App,
    project: &Name,
    id: EnvironmentId,
    fresh: &[(EntryName, Secret)],
) -> Result<Vec<SealedRow>, Problem> {
    let mut rows = Vec::with_capacity(fresh.len());
    for (entry, value) in fresh {
        let place = place(project, id, entry.clone());
        let sealed = app.vault().seal(&place, value).await?;
        rows.push(SealedRow { place, sealed });
    }
    Ok(rows)
}

/// The secret values of an environment, opened to be sealed for another.
pub(crate) async fn copied(
    app: &App,
    row: &EnvironmentRow,
    actor: &Actor,
) -> Result<Vec<(EntryName, Secret)>, Problem> {
    let mut values = Vec::new();
    for (level, key) in row.edits.secrets() {
        let entry = Edits::entry(level, key);
        let place = place(&row.project, row.id, entry.clone());
        let Some(value) = app.vault().open(&place, actor).await? else {
            let level = level.as_str();
            let detail = format!("the {level} setting `{key}` is secret and has no value");
            return Err(Problem::no_secret_value(detail));
        };
        values.push((entry, value));
    }
    Ok(values)
}

fn place(project: &Name, id: EnvironmentId, entry: EntryName) -> Place {
    Place {
        project: project.clone(),
        owner: Owner::Environment(id),
        entry,
    }
}
