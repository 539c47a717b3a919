//! What a host tells, read.

use super::*;

fn report(lines: &[&str]) -> Report {
    Report {
        marks: lines.iter().filter_map(|line| Mark::parse(line)).collect(),
        ..Report::default()
    }
}

#[test]
fn a_host_tells_what_it_has_in_use_and_who_answers() {
    let told = report(&[
        "::slipway fact balancer-told 2d711642b726b044",
        "::slipway fact balancer-healthy web 3",
        "::slipway fact balancer-healthy api 0",
    ]);
    let fact = read(&told).unwrap().unwrap();
    assert_eq!(fact.told.as_str(), "2d711642b726b044");
    let healthy: Vec<_> = fact
        .healthy
        .iter()
        .map(|(role, n)| format!("{role} {n}"))
        .collect();
    assert_eq!(healthy, ["api 0", "web 3"]);
}

#[test]
fn a_host_that_tells_nothing_has_no_load_balancer() {
    assert_eq!(read(&report(&["::slipway fact kernel 6.1"])), Ok(None));
}

#[test]
fn a_fact_that_makes_no_sense_is_garbage_and_not_a_guess() {
    let print = "::slipway fact balancer-told 2d711642b726b044";
    for lines in [
        &["::slipway fact balancer-told <html>"][..],
        &[print, "::slipway fact balancer-healthy web"],
        &[print, "::slipway fact balancer-healthy web many"],
        &[print, "::slipway fact balancer-healthy ../x 1"],
    ] {
        assert_eq!(
            read(&report(lines)).unwrap_err().kind,
            Kind::Garbage,
            "{lines:?}"
        );
    }
}
