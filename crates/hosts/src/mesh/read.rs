//! Reads what a host tells of its end of the mesh.

use crate::error::{Error, Kind};
use crate::program::Report;
use model::mesh::{Heard, MeshFact, MeshKey};
use std::fmt::Display;
use std::str::FromStr;

/// The host's end of the mesh; `None` where no wish has come about yet.
pub fn read(report: &Report) -> Result<Option<MeshFact>, Error> {
    let Some(told) = fact(report, "mesh-told")? else {
        return Ok(None);
    };
    match fact(report, "mesh-live")? {
        Some(live) => Ok(Some(MeshFact { told, live })),
        None => Err(garbage("mesh-live", "nothing", "it comes with mesh-told")),
    }
}

/// The public half of the host's key; `None` where there is none yet.
pub fn key(report: &Report) -> Result<Option<MeshKey>, Error> {
    fact(report, "mesh-key")
}

/// How many tunnels are in use; `None` where there is no interface.
pub fn heard(report: &Report) -> Result<Option<Heard>, Error> {
    let (peers, lately) = (fact(report, "mesh-peers")?, fact(report, "mesh-fresh")?);
    Ok(peers
        .zip(lately)
        .map(|(peers, lately)| Heard { peers, lately }))
}

fn fact<T>(report: &Report, name: &str) -> Result<Option<T>, Error>
where
    T: FromStr<Err: Display>,
{
    report
        .fact(name)
        .map(|told| told.parse().map_err(|why| garbage(name, told, why)))
        .transpose()
}

fn garbage(name: &str, told: &str, why: impl Display) -> Error {
    let told: String = told.chars().take(60).collect();
    let what = format!("read {name} of a host: `{told}`, but {why}");
    Error::new(Kind::Garbage, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Mark;

    fn report(facts: &[(&str, &str)]) -> Report {
        let mark = |&(name, value): &(&str, &str)| Mark::Fact(name.to_owned(), value.to_owned());
        Report {
            marks: facts.iter().map(mark).collect(),
            ..Report::default()
        }
    }

    #[test]
    fn a_host_that_was_told_nothing_has_no_end() {
        assert_eq!(read(&report(&[])), Ok(None));
        assert_eq!(key(&report(&[])), Ok(None));
        assert_eq!(heard(&report(&[])), Ok(None));
    }

    #[test]
    fn what_is_told_is_read() {
        let told = report(&[
            ("mesh-told", "0123456789abcdef"),
            ("mesh-live", "fedcba9876543210"),
            ("mesh-peers", "3"),
            ("mesh-fresh", "2"),
        ]);
        let fact = read(&told).unwrap().unwrap();
        assert_eq!(fact.told.as_str(), "0123456789abcdef");
        assert_eq!(fact.live.as_str(), "fedcba9876543210");
        let shaken = Heard {
            peers: 3,
            lately: 2,
        };
        assert_eq!(heard(&told), Ok(Some(shaken)));
    }

    #[test]
    fn garbage_is_named_as_such() {
        for facts in [
            &[("mesh-told", "lorem ipsum"), ("mesh-live", "x")][..],
            &[("mesh-told", "0123456789abcdef")],
        ] {
            assert_eq!(read(&report(facts)).unwrap_err().kind, Kind::Garbage);
        }
        let noise = report(&[("mesh-key", "Segmentation fault"), ("mesh-peers", "many")]);
        assert_eq!(key(&noise).unwrap_err().kind, Kind::Garbage);
        assert_eq!(heard(&noise).unwrap_err().kind, Kind::Garbage);
        assert!(
            key(&noise)
                .unwrap_err()
                .to_string()
                .contains("Segmentation fault")
        );
    }
}
