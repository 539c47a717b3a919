//! Hosts from their first sight to a mesh, beside ansible-core, and one more host in a mesh.
//!
//! Ours is the example `fleet` of `hosts`: the driver itself, on hosts of the sandbox. The rival
//! plays `hosts/playbook.yaml` on others of the same kind, with its fastest settings; `fleet`
//! fails where what came of both is not the same. Both begin with no connection. All of it runs in
//! namespaces of its own, so that nothing is left of hosts, however it ends.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Row, fresh};
use crate::hosts::{self, Got};
use crate::workspace;

/// What is measured, and what was promised.
const RACE: &str = "prepare and mesh 10 hosts";
const RACE_TIMES_MIN: f64 = 10.0;
const RACE_BUDGET: &str = "≥ 10x faster";
const MANY: &str = "50 hosts prepared and meshed";
const MANY_SECONDS: f64 = 10.0;
const MANY_BUDGET: &str = "< 10 s";
const MORE: &str = "one host added to a mesh of 50";
const MORE_SECONDS: f64 = 2.0;
const MORE_BUDGET: &str = "< 2 s";

/// Measures the three, or says in each row why that is not possible here.
pub(super) fn measure(rows: &mut Vec<Row>) -> Result<()> {
    let built = workspace::cargo()
        .args(["build", "--release", "--package", "hosts"])
        .args(["--example", "fleet"])
        .status();
    ensure!(
        built.context("could not start cargo")?.success(),
        "the release build of the measuring program failed"
    );
    let target = workspace::target_directory()?;
    let fleet = Fleet(target.join("release/examples/fleet"));
    if let Some(reason) = fleet.missing()? {
        for (what, budget) in [
            (RACE, RACE_BUDGET),
            (MANY, MANY_BUDGET),
            (MORE, MORE_BUDGET),
        ] {
            rows.push(Row::unmeasured(what, &reason, budget));
        }
        return Ok(());
    }
    eprintln!(
        "preparing and meshing 10 hosts, and the rival as many; {}",
        load()
    );
    rows.push(race(&fleet, &target)?);
    eprintln!("preparing and meshing 50 hosts, and one more; {}", load());
    let figures = fleet.run("grow", "50", &[])?;
    rows.push(within(
        MANY,
        figures.slowest("many")?,
        MANY_SECONDS,
        MANY_BUDGET,
    ));
    rows.push(within(
        MORE,
        figures.slowest("one-more")?,
        MORE_SECONDS,
        MORE_BUDGET,
    ));
    Ok(())
}

/// Ours is the slower of two runs, one before and one after the rival's.
fn race(fleet: &Fleet, target: &Path) -> Result<Row> {
    let missing = match hosts::ansible(target)? {
        Got::There | Got::Installed => None,
        Got::Missing(reason) => Some(reason),
    };
    let here = workspace::root().join("xtask/src/bench/hosts");
    let [playbook, player] = [here.join("playbook.yaml"), hosts::ansible_playbook(target)];
    let rival = [
        player.as_os_str(),
        "-i".as_ref(),
        "inventory".as_ref(),
        playbook.as_ref(),
    ];
    let rival: &[&OsStr] = if missing.is_none() { &rival } else { &[] };
    let figures = fleet.run("race", "10", rival)?;
    let ours = figures.slowest("ours")?;
    let (rival, met) = if let Some(reason) = missing {
        (format!("no ansible-core: {reason}"), false)
    } else {
        let rival = figures.slowest("rival")?;
        let times = rival / ours;
        let told = format!("ansible-core: {rival:.1} s, {times:.0}x");
        (told, times >= RACE_TIMES_MIN)
    };
    Ok(Row {
        what: RACE.to_owned(),
        ours: format!("{ours:.2} s"),
        rival,
        budget: RACE_BUDGET,
        met,
    })
}

fn within(what: &str, seconds: f64, most: f64, budget: &'static str) -> Row {
    Row {
        what: what.to_owned(),
        ours: format!("{seconds:.2} s"),
        rival: "–".to_owned(),
        budget,
        met: seconds < most,
    }
}

/// What else this machine does: the figures are worth as much as it is idle.
fn load() -> String {
    let told = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let minute = told.split(' ').next().unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("load {minute} on {cores} cores")
}

/// The measuring program.
struct Fleet(PathBuf);

impl Fleet {
    /// Why there can be no hosts here; makes what they are made of.
    fn missing(&self) -> Result<Option<String>> {
        match hosts::packages()? {
            Got::There | Got::Installed => {}
            // One of them may be needed for something else alone: hosts are tried.
            Got::Missing(reason) => eprintln!("packages for hosts: {reason}"),
        }
        let told = Command::new(&self.0)
            .arg("ready")
            .output()
            .context("could not run the measuring program")?;
        if told.status.success() {
            return Ok(None);
        }
        let said = String::from_utf8_lossy(&told.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty());
        let reason = last.unwrap_or("no hosts can be made");
        Ok(Some(reason.to_owned()))
    }

    /// Runs it in namespaces of its own; whatever it leaves there ends with them.
    fn run(&self, verb: &str, count: &str, command: &[&OsStr]) -> Result<Figures> {
        let directory = fresh("hosts")?;
        let here = workspace::root().join("xtask/src/bench/hosts");
        // The sockets of the rival's connections need a short path.
        let home = format!("/tmp/slipway-rival-{}", std::process::id());
        let told = Command::new("unshare")
            .args(["--net", "--mount", "--pid", "--fork"])
            .args(["--kill-child", "--mount-proc", "--"])
            // The shell buries whom nobody else does.
            .args(["sh", "-c", "ip link set lo up; \"$@\"; exit $?", "sh"])
            .arg(&self.0)
            .arg(verb)
            .arg(&directory)
            .arg(count)
            .args(command)
            .env("ANSIBLE_CONFIG", here.join("ansible.cfg"))
            .env("ANSIBLE_HOME", &home)
            .env("LC_ALL", "C.UTF-8")
            .output()
            .context("could not run unshare");
        // Disks of hosts, and keys: also where it failed.
        let cleared = std::fs::remove_dir_all(&directory);
        drop(std::fs::remove_dir_all(&home));
        let told = told?;
        ensure!(
            told.status.success(),
            "the measuring program failed: {}",
            String::from_utf8_lossy(&told.stderr)
        );
        cleared.with_context(|| format!("could not clear {}", directory.display()))?;
        Ok(Figures::read(&String::from_utf8_lossy(&told.stdout)))
    }
}

/// What the measuring program told: names and seconds.
struct Figures(Vec<(String, f64)>);

impl Figures {
    fn read(told: &str) -> Self {
        let line = |line: &str| {
            let (name, seconds) = line.split_once(' ')?;
            Some((name.to_owned(), seconds.parse().ok()?))
        };
        let all: Vec<_> = told.lines().filter_map(line).collect();
        for (name, seconds) in &all {
            eprintln!("  {name}: {seconds:.2} s");
        }
        Self(all)
    }

    /// The slowest of those that bear a name.
    fn slowest(&self, name: &str) -> Result<f64> {
        let named = self.0.iter().filter(|(told, _)| told == name);
        let slowest = named.map(|(_, seconds)| *seconds).reduce(f64::max);
        slowest.with_context(|| format!("the measuring program told nothing of {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Figures;

    #[test]
    fn the_slower_of_two_runs_counts() {
        let figures = Figures::read("ours-equipped 0.9\nours 1.5\nrival 39\nours 1.75\nnoise\n");
        assert!((figures.slowest("ours").unwrap() - 1.75).abs() < f64::EPSILON);
        assert!((figures.slowest("rival").unwrap() - 39.0).abs() < f64::EPSILON);
        assert!(figures.slowest("many").is_err());
    }
}
