//! When the certificates of a control machine end. They are read on the host and judged here, so
//! that the host needs no program for it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hosts::program::{Program, Report};
use model::secret::Secret;
use model::time::Timestamp;
use std::time::Duration;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Where Kubernetes keeps its settings on a host.
const DIRECTORY: &str = "/etc/kubernetes";

/// How long a host may take to show them.
const SHOW_MAX: Duration = Duration::from_secs(20);

const SHOW: &str = include_str!("certificates.sh");

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// Shows the certificates of a control machine, and changes nothing.
pub fn certificates() -> Program {
    below(DIRECTORY)
}

fn below(directory: &str) -> Program {
    Program {
        limit: SHOW_MAX,
        ..super::script("certificates", &[("directory", directory)], SHOW)
    }
}

/// The day on which the first of the certificates that a host showed ends; nothing where it
/// showed none.
pub fn certificates_end(report: &Report) -> Option<Timestamp> {
    let shown = report.facts("certificate");
    let ends = shown.filter_map(|fact| end(fact.split_once(' ')?.1));
    ends.min().map(day)
}

/// The day on which the certificate of a kubeconfig ends.
pub fn kubeconfig_end(kubeconfig: &Secret) -> Option<Timestamp> {
    let text = std::str::from_utf8(kubeconfig.expose()).ok()?;
    let data = text.lines().find_map(|line| {
        let data = line.trim_start().strip_prefix("client-certificate-data:")?;
        Some(data.trim())
    });
    let framed = STANDARD.decode(data?).ok()?;
    let (_, framed) = parse_x509_pem(&framed).ok()?;
    let certificate = framed.parse_x509().ok()?;
    Some(day(millis(&certificate)))
}

/// The day of a time: what is told again each minute is stored once.
pub fn day_of(at: Timestamp) -> Timestamp {
    day(at.as_millis())
}

fn day(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis.div_euclid(DAY_MILLIS) * DAY_MILLIS)
}

/// When a certificate ends, in milliseconds.
fn end(encoded: &str) -> Option<i64> {
    let bytes = STANDARD.decode(encoded).ok()?;
    let (_, certificate) = X509Certificate::from_der(&bytes).ok()?;
    Some(millis(&certificate))
}

fn millis(certificate: &X509Certificate<'_>) -> i64 {
    let seconds = certificate.validity().not_after.timestamp();
    seconds.saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hosts::program::Mark;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use std::path::Path;
    use std::process::{Command, Stdio};

    /// A certificate that ends at noon of a day.
    fn ending(year: i32, month: u8, day: u8) -> String {
        let mut params = CertificateParams::new(vec!["a".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, month, day) + Duration::from_hours(12);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().pem()
    }

    /// What a host reports whose files are these.
    fn shown(files: &[(&str, String)]) -> Report {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let marks = run(directory.path());
        Report {
            status: Some(0),
            marks,
            ..Report::default()
        }
    }

    fn run(directory: &Path) -> Vec<Mark> {
        let program = below(directory.to_str().unwrap());
        let child = Command::new("/bin/sh")
            .args(["-c", &program.text])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(child.status.success(), "{child:?}");
        let text = String::from_utf8(child.stdout).unwrap();
        text.lines().filter_map(Mark::parse).collect()
    }

    fn config(certificate: &str) -> String {
        let data = STANDARD.encode(certificate);
        format!(
            "users:\n- name: admin\n  user:\n    client-certificate-data: {data}\n    client-key-data: c2VjcmV0\n"
        )
    }

    #[test]
    fn the_first_to_end_counts_to_the_day_wherever_it_is() {
        let (soon, later, last) = (ending(2027, 3, 4), ending(2027, 3, 5), ending(2036, 1, 1));
        let day = Timestamp::from_millis(1_804_118_400_000);
        assert_eq!(day.to_rfc3339(), "2027-03-04T00:00:00Z");
        let places = ["pki/apiserver.crt", "pki/etcd/server.crt", "scheduler.conf"];
        for place in places {
            let mut files = vec![
                ("pki/ca.crt", last.clone()),
                ("pki/front-proxy-client.crt", later.clone() + &last),
                ("admin.conf", config(&later)),
            ];
            let text = match place.split_once('/') {
                Some(_) => soon.clone(),
                None => config(&soon),
            };
            files.push((place, text));
            let report = shown(&files);
            assert_eq!(certificates_end(&report), Some(day), "{place}");
            assert!(
                !format!("{report:?}").contains("c2VjcmV0"),
                "no key is shown"
            );
        }
    }

    #[test]
    fn a_kubeconfig_tells_when_its_certificate_ends() {
        let own = |text: String| kubeconfig_end(&Secret::from(text.into_bytes()));
        let day = Timestamp::from_millis(1_804_118_400_000);
        let framed = ending(2027, 3, 4) + &ending(2036, 1, 1);
        assert_eq!(own(config(&framed)), Some(day));
        assert_eq!(day_of(day), day);
        for text in ["", "users: []\n", "client-certificate-data: AAAA\n"] {
            assert_eq!(own(text.to_owned()), None, "{text:?}");
        }
    }

    #[test]
    fn a_host_without_certificates_tells_of_none_and_garbage_is_passed_over() {
        assert_eq!(certificates_end(&shown(&[])), None);
        let garbage = [
            (
                "pki/apiserver.crt",
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned(),
            ),
            ("pki/empty.crt", String::new()),
            ("admin.conf", "users: []\n".to_owned()),
        ];
        assert_eq!(certificates_end(&shown(&garbage)), None);
        let mut mixed = garbage.to_vec();
        mixed.push(("scheduler.conf", config(&ending(2027, 3, 4))));
        assert!(certificates_end(&shown(&mixed)).is_some());
    }
}
