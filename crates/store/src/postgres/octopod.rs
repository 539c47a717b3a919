//! Reads the database of an Octopod, and changes nothing there.
//!
//! All of it is read in one transaction, so that it is of one moment however long that takes.

use super::{Server, meaning};
use crate::error::Error;
use model::environment::octopod::{Deployment, Entry, Overrides};
use model::environment::taken::TakenAction;
use model::secret::Secret;
use model::time::Timestamp;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_postgres::{Client, Row};

/// One statement may read ten thousands of rows from a slow disk.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
     SET LOCAL statement_timeout = '10min'; SET LOCAL idle_in_transaction_session_timeout = 0;
     SET LOCAL application_name = 'slipway env import'";

/// What must be there, by table.
const NEEDED: [(&str, &[&str]); 2] = [
    (
        "deployments",
        &[
            "id",
            "name",
            "status",
            "status_updated_at",
            "created_at",
            "updated_at",
            "archived_at",
            "app_overrides",
            "deployment_overrides",
            "links",
        ],
    ),
    (
        "deployment_logs",
        &[
            "id",
            "deployment_id",
            "action",
            "exit_code",
            "created_at",
            "duration",
            "stdout",
            "stderr",
            "app_overrides",
            "deployment_overrides",
        ],
    ),
];

/// Why the database of an Octopod could not be read.
#[derive(Debug, thiserror::Error)]
pub enum OctopodError {
    /// Nobody let us in, or nobody answered.
    #[error("could not read the database")]
    Unread {
        /// Why.
        #[source]
        cause: Error,
    },
    /// It is another database, or one of an older version.
    #[error("it is no database of an Octopod: it has no {}", missing.join(", no "))]
    Another {
        /// Tables, or columns of tables, that are missing.
        missing: Vec<String>,
    },
}

impl OctopodError {
    /// The stable code, which names a page in `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unread { .. } => "IMPORT-001",
            Self::Another { .. } => "IMPORT-002",
        }
    }

    /// What to do.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Unread {
                cause: Error::Denied { .. },
            } => {
                "check user and database, and give the password with --password-file, in PGPASSWORD or in ~/.pgpass; the user must be allowed to read deployments and deployment_logs"
            }
            Self::Unread {
                cause: Error::Address { .. },
            } => "write postgresql://USER@HOST:PORT/DATABASE",
            Self::Unread { .. } => {
                "check host and port, and whether they can be reached from here; inside of Kubernetes, use `kubectl port-forward`"
            }
            Self::Another { .. } => {
                "name the database of Octopod itself; one of an old Octopod is brought up to date by starting Octopod 1.5 on it once"
            }
        }
    }

    /// Whether a password, or another one, may help.
    pub const fn is_denied(&self) -> bool {
        matches!(
            self,
            Self::Unread {
                cause: Error::Denied { .. }
            }
        )
    }
}

impl From<tokio_postgres::Error> for OctopodError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Unread {
            cause: meaning(error),
        }
    }
}

/// The database of an Octopod, at one moment.
pub struct Octopod {
    client: Client,
    /// Ends with this handle.
    _driving: JoinSet<()>,
}

/// A point in time as milliseconds; none where it is none.
fn millis(column: &str) -> String {
    format!("CASE WHEN isfinite({column}) THEN (extract(epoch FROM {column}) * 1000)::bigint END")
}

/// What is taken of a long output, and no more than some of the rest: 100 MB stay where they are.
fn ends(column: &str) -> String {
    let (most, head) = (
        TakenAction::OUTPUT_BYTES_MAX,
        TakenAction::OUTPUT_HEAD_BYTES,
    );
    format!(
        "CASE WHEN octet_length({column}) <= {most} THEN COALESCE({column}, '')
              ELSE left({column}, {head}) || right({column}, {most}) END"
    )
}

impl Octopod {
    /// Connects, and looks whether it is one.
    pub async fn open(url: &str, password: Option<&Secret>) -> Result<Self, OctopodError> {
        let unread = |cause| OctopodError::Unread { cause };
        let server = Server::named(url, password).map_err(unread)?;
        let (client, connection) = server.reach().await.map_err(unread)?;
        let mut driving = JoinSet::new();
        driving.spawn(async move {
            // How it ended is told to whoever asks next.
            drop(connection.await);
        });
        client.batch_execute(BEGIN).await?;
        let octopod = Self {
            client,
            _driving: driving,
        };
        octopod.must_be_one().await?;
        Ok(octopod)
    }

    async fn must_be_one(&self) -> Result<(), OctopodError> {
        let mut missing = Vec::new();
        for (table, columns) in NEEDED {
            let sql = "SELECT attname::text FROM pg_attribute
                       WHERE attrelid = to_regclass($1::text) AND attnum > 0 AND NOT attisdropped";
            let rows = self.client.query(sql, &[&table]).await?;
            let found: Vec<String> = rows
                .iter()
                .map(|row| row.try_get(0))
                .collect::<Result<_, _>>()?;
            if found.is_empty() {
                missing.push(format!("table `{table}`"));
                continue;
            }
            let absent = columns
                .iter()
                .filter(|column| !found.iter().any(|one| one == *column));
            missing.extend(absent.map(|column| format!("column `{column}` in `{table}`")));
        }
        if missing.is_empty() {
            Ok(())
        } else {
            Err(OctopodError::Another { missing })
        }
    }

    /// All deployments, oldest first.
    pub async fn deployments(&self) -> Result<Vec<Deployment>, OctopodError> {
        let sql = format!(
            "SELECT id::bigint, COALESCE(name::text, ''), COALESCE(status::text, ''), {}, {}, {}, {},
                    app_overrides::text, deployment_overrides::text, links::text
             FROM deployments ORDER BY id",
            millis("status_updated_at"),
            millis("created_at"),
            millis("updated_at"),
            millis("archived_at"),
        );
        let rows = self.client.query(&sql, &[]).await?;
        let deployments: Result<_, tokio_postgres::Error> = rows.iter().map(deployment).collect();
        Ok(deployments?)
    }

    /// The numbers of all entries of the log, each with that of its deployment, oldest first.
    pub async fn entries(&self) -> Result<Vec<(i64, i64)>, OctopodError> {
        let sql = "SELECT deployment_id::bigint, id::bigint FROM deployment_logs ORDER BY id";
        let rows = self.client.query(sql, &[]).await?;
        let read = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
        let entries: Result<_, tokio_postgres::Error> = rows.iter().map(read).collect();
        Ok(entries?)
    }

    /// Entries of the log by their numbers, oldest first.
    pub async fn log(&self, entries: &[i64]) -> Result<Vec<Entry>, OctopodError> {
        let sql = format!(
            "SELECT id::bigint, deployment_id::bigint, action::text, exit_code::int, {}, {},
                    app_overrides::text, deployment_overrides::text, {}, {}
             FROM deployment_logs WHERE id = ANY($1) ORDER BY id",
            millis("created_at"),
            millis("duration"),
            ends("stdout"),
            ends("stderr"),
        );
        let rows = self.client.query(&sql, &[&entries]).await?;
        let log: Result<_, tokio_postgres::Error> = rows.iter().map(entry).collect();
        Ok(log?)
    }
}

fn time(row: &Row, column: usize) -> Result<Option<Timestamp>, tokio_postgres::Error> {
    let millis: Option<i64> = row.try_get(column)?;
    Ok(millis.map(Timestamp::from_millis))
}

fn deployment(row: &Row) -> Result<Deployment, tokio_postgres::Error> {
    Ok(Deployment {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        status: row.try_get(2)?,
        since: time(row, 3)?,
        created_at: time(row, 4)?,
        updated_at: time(row, 5)?,
        archived_at: time(row, 6)?,
        overrides: Overrides {
            application: row.try_get(7)?,
            deployment: row.try_get(8)?,
        },
        links: row.try_get(9)?,
    })
}

fn entry(row: &Row) -> Result<Entry, tokio_postgres::Error> {
    let took: Option<i64> = row.try_get(5)?;
    let took = took.and_then(|millis| u64::try_from(millis).ok());
    let text = |column| {
        let text: Option<String> = row.try_get(column)?;
        Ok::<_, tokio_postgres::Error>(text.unwrap_or_default())
    };
    Ok(Entry {
        id: row.try_get(0)?,
        deployment: row.try_get(1)?,
        action: row.try_get(2)?,
        exit: row.try_get::<_, Option<i32>>(3)?.unwrap_or(-1),
        at: time(row, 4)?,
        took: Duration::from_millis(took.unwrap_or(0)),
        overrides: Overrides {
            application: row.try_get(6)?,
            deployment: row.try_get(7)?,
        },
        stdout: text(8)?,
        stderr: text(9)?,
    })
}
