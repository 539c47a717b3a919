//! Members of etcd, as one of them tells of all.

use hosts::program::Report;
use model::observed::Member;

/// The members that a program of [`super::members`] told of, in the order of their names; nothing
/// where no member answered.
pub fn told_members(report: &Report) -> Option<Vec<Member>> {
    if report.fact("etcd") != Some("answers") {
        return None;
    }
    let healthy: Vec<&str> = report
        .facts("health")
        .filter_map(|line| line.split_once(" is healthy"))
        .map(|(endpoint, _)| endpoint)
        .collect();
    let members = report.facts("member").filter_map(|line| {
        let fields: Vec<&str> = line.split(", ").collect();
        let [_, state, name, peers, clients, learner] = fields[..] else {
            return None;
        };
        // One that has not started yet has no name: it is known by where it will be.
        let name = if name.is_empty() { peers } else { name };
        let learner = learner == "true";
        // Of one that only learns nobody can ask whether it is well.
        let answers = learner || clients.split(',').any(|client| healthy.contains(&client));
        Some(Member {
            name: name.to_owned(),
            healthy: state == "started" && answers,
            learner,
        })
    });
    let mut members: Vec<Member> = members.collect();
    members.sort();
    Some(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hosts::program::Mark;

    fn report(lines: &[&str]) -> Report {
        let marks = lines
            .iter()
            .filter_map(|line| Mark::parse(&format!("::slipway fact {line}")));
        Report {
            status: Some(0),
            marks: marks.collect(),
            ..Report::default()
        }
    }

    #[test]
    fn members_are_told_by_name_with_how_they_are() {
        let told = told_members(&report(&[
            "member 8e9e05c52164694d, started, edge-02, https://10.8.0.2:2380, https://10.8.0.2:2379, false",
            "member 91bc3c398fb3c146, started, edge-01, https://10.8.0.1:2380, https://10.8.0.1:2379, false",
            "member fd422379fda50e48, unstarted, , https://10.8.0.3:2380, , true",
            "member 0a1b2c3d4e5f6071, started, edge-04, https://10.8.0.4:2380, https://10.8.0.4:2379, true",
            "health https://10.8.0.4:2379 is unhealthy: failed to commit proposal: etcdserver: rpc not supported for learner",
            "health https://10.8.0.1:2379 is healthy: successfully committed proposal: took = 4.1ms",
            "health {\"level\":\"warn\",\"msg\":\"retrying of unary invoker failed\"}",
            "health https://10.8.0.2:2379 is unhealthy: failed to commit proposal: context deadline exceeded",
            "etcd answers",
        ]));
        let told = told.unwrap();
        let told: Vec<_> = told
            .iter()
            .map(|member| (member.name.as_str(), member.healthy, member.learner))
            .collect();
        let expected = [
            ("edge-01", true, false),
            ("edge-02", false, false),
            ("edge-04", true, true),
            ("https://10.8.0.3:2380", false, true),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_member_that_does_not_answer_tells_of_nobody() {
        assert_eq!(told_members(&report(&["etcd silent"])), None);
        assert_eq!(told_members(&report(&[])), None);
        assert_eq!(told_members(&report(&["etcd answers"])), Some(Vec::new()));
    }
}
