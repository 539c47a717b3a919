//! Durable tasks a second, from a committed plan to a recorded end.
//!
//! Ours is the example `throughput` of the store. The rival on the same server is what people write
//! first when they need a queue in PostgreSQL: a table, a row per task, and one transaction each to
//! add it, to claim it and to take it off, here in the hands of PostgreSQL's own `pgbench`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use lab::postgres::Postgres;
use serde_json::Value;

use super::body::Body;
use super::{Row, fresh};
use crate::workspace;

/// What was promised.
const PER_SECOND_MIN: f64 = 5_000.0;

/// How the rival keeps its tasks.
const TABLE: &str = "CREATE TABLE queue (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text NOT NULL, worker int, payload text NOT NULL);
CREATE INDEX ON queue (id) WHERE state = 'waiting';
CREATE INDEX ON queue (worker) WHERE state = 'running';";

/// The life of one task there. Each line is a transaction.
const SCRIPT: &str = "
INSERT INTO queue (state, payload) VALUES ('waiting', repeat('x', 400));
UPDATE queue SET state = 'running', worker = :client_id WHERE id = (SELECT id FROM queue WHERE state = 'waiting' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1);
DELETE FROM queue WHERE state = 'running' AND worker = :client_id;
";

/// Measures ours on every body, and the rival where there is PostgreSQL.
pub(super) fn measure(bodies: &[Body], rows: &mut Vec<Row>) -> Result<()> {
    let built = workspace::cargo()
        .args(["build", "--release", "--package", "store"])
        .args(["--example", "throughput"])
        .status();
    ensure!(
        built.context("could not start cargo")?.success(),
        "the release build of the measuring program failed"
    );
    let program = workspace::target_directory()?.join("release/examples/throughput");
    for body in bodies {
        eprintln!("measuring durable tasks on {}", body.name());
        let per_second = ours(&program, body)?;
        let rival = match body {
            Body::Sqlite => "River: 501/s, published".to_owned(),
            Body::Postgres(postgres) => {
                let rival = naive(postgres)?;
                format!("plain queue: {rival:.0}/s, {:.1}x", per_second / rival)
            }
        };
        rows.push(Row {
            what: format!("durable tasks, plan to done, {}", body.name()),
            ours: format!("{per_second:.0}/s"),
            rival,
            budget: "≥ 5,000/s",
            met: per_second >= PER_SECOND_MIN,
        });
    }
    Ok(())
}

fn ours(program: &Path, body: &Body) -> Result<f64> {
    let mut command = std::process::Command::new(program);
    match body.database()? {
        Some(url) => command.arg(url),
        None => command.arg(fresh("tasks")?),
    };
    let told = command
        .output()
        .context("could not run the measuring program")?;
    ensure!(
        told.status.success(),
        "the measuring program failed: {}",
        String::from_utf8_lossy(&told.stderr)
    );
    let answer: Value =
        serde_json::from_slice(&told.stdout).context("the measuring program told no figures")?;
    let number = |name: &str| answer[name].as_f64().context("a figure is missing");
    Ok(number("tasks")? / number("seconds")?)
}

fn naive(postgres: &Postgres) -> Result<f64> {
    let url = postgres.create_database()?;
    postgres.psql(&url, TABLE)?;
    let script = fresh("rival")?.join("queue.sql");
    std::fs::write(&script, SCRIPT).context("could not write the script of the rival")?;
    let told = postgres
        .command("pgbench")
        .args(["--no-vacuum", "--protocol=prepared", "--client=16"])
        .args(["--jobs=2", "--time=10", "--file"])
        .arg(&script)
        .arg(&url)
        .output()
        .context("could not run pgbench")?;
    ensure!(
        told.status.success(),
        "pgbench failed: {}",
        String::from_utf8_lossy(&told.stderr)
    );
    tps(&String::from_utf8_lossy(&told.stdout)).context("pgbench told no figure")
}

/// The transactions per second that pgbench tells; a run of the script counts as one.
fn tps(told: &str) -> Option<f64> {
    let line = told.lines().find_map(|line| line.strip_prefix("tps = "))?;
    line.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::tps;

    #[test]
    fn the_figure_of_the_rival_is_read() {
        let told =
            "latency average = 2.1 ms\ntps = 2043.500000 (without initial connection time)\n";
        assert_eq!(tps(told), Some(2_043.5));
        assert_eq!(tps("pgbench: error: connection failed\n"), None);
    }
}
