//! What kubeadm said when it failed, and what that means.

use crate::error::{Error, Kind};
use hosts::program::Report;

/// How much of what it said is told.
const SHOWN: usize = 400;

/// Words of kubeadm, and what they mean; the first that fits counts.
const WORDS: [(&str, Kind); 12] = [
    ("no space left on device", Kind::NoRoom),
    ("failed to pull image", Kind::NoImage),
    ("[ERROR ImagePull]", Kind::NoImage),
    ("could not find a JWS signature", Kind::TokenExpired),
    ("token id \"", Kind::TokenExpired),
    ("Unauthorized", Kind::TokenExpired),
    ("certificate has expired or is not yet valid", Kind::Clocks),
    ("timed out waiting for the condition", Kind::NotReady),
    ("context deadline exceeded", Kind::NotReady),
    ("kubelet is not healthy", Kind::NotReady),
    ("control plane components failed", Kind::NotReady),
    ("[ERROR ", Kind::Preflight),
];

/// Why kubeadm did not do its work, where it did not.
pub fn trouble(title: &str, host: &str, report: &Report) -> Option<Error> {
    let status = report.fact("kubeadm").unwrap_or("unknown");
    if status == "0" {
        return None;
    }
    let find = |(words, kind): &(&str, Kind)| {
        let lines = report.tail.iter().rev();
        let line = lines.clone().find(|line| line.contains(words));
        line.map(|line| (*kind, line))
    };
    let told = |line: &String| line.trim().chars().take(SHOWN).collect::<String>();
    let errors = report.tail.iter().rev();
    let error = errors
        .clone()
        .find(|line| line.trim_start().starts_with("error"));
    let last = error.or(report.tail.last());
    let (kind, line) = WORDS
        .iter()
        .find_map(find)
        .map_or((Kind::Kubeadm, last), |(kind, line)| (kind, Some(line)));
    let line = line.map_or_else(|| "it said nothing".to_owned(), told);
    let what = format!("`{title}` on {host} ended with status {status}: {line}");
    Some(Error::new(kind, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hosts::program::Mark;

    fn judged(status: &str, tail: &[&str]) -> Option<(Kind, String)> {
        let report = Report {
            status: Some(0),
            marks: vec![Mark::Fact("kubeadm".to_owned(), status.to_owned())],
            tail: tail.iter().map(|&line| line.to_owned()).collect(),
            dropped: 0,
        };
        trouble("kubeadm join", "edge-1", &report).map(|error| (error.kind, error.what))
    }

    #[test]
    fn what_kubeadm_says_decides_who_must_act() {
        assert_eq!(judged("0", &["error: never mind"]), None);
        let pull =
            "\t[ERROR ImagePull]: failed to pull image registry.k8s.io/etcd:3.6.5-0: rpc error";
        let cases: [(&[&str], Kind); 4] = [
            (
                &["[preflight] Some fatal errors occurred:", pull],
                Kind::NoImage,
            ),
            (
                &["error: could not find a JWS signature in the cluster-info"],
                Kind::TokenExpired,
            ),
            (
                &["\t[ERROR Port-6443]: Port 6443 is in use"],
                Kind::Preflight,
            ),
            (
                &["error: it rains", "To see the stack trace"],
                Kind::Kubeadm,
            ),
        ];
        for (tail, kind) in cases {
            let (found, what) = judged("1", tail).unwrap();
            assert_eq!(found, kind, "{what}");
        }
        let (_, what) = judged("1", &["error: it rains", "To see the stack trace"]).unwrap();
        assert_eq!(
            what,
            "`kubeadm join` on edge-1 ended with status 1: error: it rains"
        );
    }
}
