//! Waiting, told from whole states: lines, trees, tallies and verdicts.

use super::*;
use api::{Ready, TaskKind, TaskState};
use expect_test::{Expect, expect};

fn cluster(
    name: &str,
    state: ClusterState,
    control: u32,
    compute: u32,
    message: &str,
) -> ClusterSummary {
    ClusterSummary {
        name: name.to_owned(),
        state,
        control: Ready {
            ready: control,
            wanted: 3,
        },
        compute: Ready {
            ready: compute,
            wanted: 3,
        },
        leaving: 0,
        tasks: 1,
        message: message.to_owned(),
    }
}

fn leaving(name: &str, leaving: u32) -> ClusterSummary {
    let none = Ready {
        ready: 0,
        wanted: 0,
    };
    let gone = cluster(name, ClusterState::Deleting, 0, 0, "drain b-compute-01");
    ClusterSummary {
        control: none,
        compute: none,
        leaving,
        ..gone
    }
}

fn scene(state: ManifestState, clusters: Vec<ClusterSummary>) -> Scene {
    let time = "2026-03-01T12:00:00Z".parse().unwrap();
    Scene {
        manifest: ManifestView {
            project: "default".to_owned(),
            name: "hello".to_owned(),
            generation: 2,
            author: "admin".to_owned(),
            created_at: time,
            deleted: false,
            state,
            text: String::new(),
            clusters,
        },
        running: ["hello-compute-02", "hello-compute-03"]
            .into_iter()
            .zip(1..)
            .map(|(machine, attempts)| TaskView {
                id: "task-1".to_owned(),
                cluster: "hello".to_owned(),
                generation: 2,
                machine: machine.to_owned(),
                kind: TaskKind::Join,
                effect: api::Effect::Create,
                state: TaskState::Running,
                attempts,
                due_at: None,
                lease_until: None,
                worker: None,
                error: None,
                created_at: time,
                updated_at: time,
            })
            .collect(),
    }
}

/// Tells a sequence of scenes in plain lines, a rule between looks that had news.
#[track_caller]
fn told(scenes: &[Vec<ClusterSummary>], expected: &Expect) {
    let mut lines = Lines::default();
    let mut text = String::new();
    for clusters in scenes {
        for line in lines.changes(&scene(ManifestState::Scheduled, clusters.clone())) {
            text.push_str(&line);
            text.push('\n');
        }
        text.push_str("--\n");
    }
    expected.assert_eq(&text);
}

#[test]
fn plain_lines_come_only_on_change() {
    let joining = cluster(
        "hello",
        ClusterState::Scheduled,
        2,
        0,
        "join hello-compute-02",
    );
    let core = cluster("core", ClusterState::Done, 3, 3, "as declared");
    told(
        &[
            vec![
                cluster("hello", ClusterState::Pending, 0, 0, ""),
                core.clone(),
            ],
            vec![joining.clone(), core.clone()],
            vec![joining, core.clone()],
            vec![
                cluster("hello", ClusterState::Error, 2, 0, "stuck: no quota"),
                core.clone(),
            ],
            vec![
                cluster("hello", ClusterState::Done, 3, 3, "as declared"),
                core,
            ],
        ],
        &expect![[r"
            hello: 0/3 control, 0/3 compute — not planned yet
            core: 3/3 control, 3/3 compute — ready
            --
            hello: 2/3 control, 0/3 compute — join hello-compute-02
            --
            --
            hello: 2/3 control, 0/3 compute — error: stuck: no quota
            --
            hello: 3/3 control, 3/3 compute — ready
            --
        "]],
    );
}

#[test]
fn a_cluster_that_vanishes_is_gone() {
    told(
        &[vec![leaving("b", 6)], vec![leaving("b", 1)], vec![], vec![]],
        &expect![[r"
            b: 6 machines left — drain b-compute-01
            --
            b: 1 machine left — drain b-compute-01
            --
            b: gone
            --
            --
        "]],
    );
}

#[test]
fn an_old_cluster_and_its_namesake_are_told_apart() {
    let young = cluster("b", ClusterState::Scheduled, 1, 0, "join");
    told(
        &[
            vec![leaving("b", 1), young.clone()],
            vec![leaving("b", 1), young.clone()],
            vec![young],
        ],
        &expect![[r"
            b: 1 machine left — drain b-compute-01
            b: 1/3 control, 0/3 compute — join
            --
            --
            b: gone
            b: 1/3 control, 0/3 compute — join
            --
        "]],
    );
}

#[test]
fn many_clusters_are_counted_and_only_errors_are_named() {
    let fleet = |ready: usize, broken: bool| -> Vec<ClusterSummary> {
        (0..30)
            .map(|at| {
                let name = format!("c{at:02}");
                if at < ready {
                    cluster(&name, ClusterState::Done, 3, 3, "as declared")
                } else if at == 29 && broken {
                    cluster(&name, ClusterState::Error, 0, 0, "stuck: no quota")
                } else {
                    cluster(&name, ClusterState::Scheduled, 1, 0, "join")
                }
            })
            .collect()
    };
    told(
        &[
            fleet(0, false),
            fleet(12, true),
            fleet(12, true),
            fleet(30, false),
        ],
        &expect![[r"
            hello: 0 of 30 clusters ready, 30 open tasks
            --
            hello: 12 of 30 clusters ready, 1 in error, 30 open tasks
            c29: 0/3 control, 0/3 compute — error: stuck: no quota
            --
            --
            hello: 30 of 30 clusters ready, 30 open tasks
            --
        "]],
    );
}

#[track_caller]
fn drawn(clusters: Vec<ClusterSummary>, height: usize, expected: &Expect) {
    let Tree { headline, rows } = tree(&scene(ManifestState::Scheduled, clusters), height);
    assert!(rows.len() <= height);
    expected.assert_eq(&format!("{headline}\n{}", rows.join("\n")));
}

#[test]
fn a_tree_shows_open_clusters_with_their_tasks_and_collapses_the_rest() {
    drawn(
        vec![
            cluster("core", ClusterState::Done, 3, 3, "as declared"),
            cluster("late", ClusterState::Pending, 0, 0, ""),
            cluster(
                "hello",
                ClusterState::Scheduled,
                3,
                1,
                "join hello-compute-02 and 1 more",
            ),
            cluster("bad", ClusterState::Error, 1, 0, "stuck: no quota"),
            leaving("old", 2),
        ],
        20,
        &expect![[r"
            1 of 5 clusters ready
            bad    ██░░░░░░░░░░  1/3 control, 0/3 compute  error: stuck: no quota
            hello  ████████░░░░  3/3 control, 1/3 compute  join hello-compute-02 and 1 more
              └ join hello-compute-02
              └ join hello-compute-03, attempt 2
            old    ░░░░░░░░░░░░  2 machines left  drain b-compute-01
            late   ░░░░░░░░░░░░  0/3 control, 0/3 compute"]],
    );
}

#[test]
fn a_tree_never_outgrows_the_terminal() {
    let clusters: Vec<_> = (0..9)
        .map(|at| cluster(&format!("c{at}"), ClusterState::Scheduled, 1, 0, "join"))
        .collect();
    drawn(
        clusters.clone(),
        4,
        &expect![[r"
            0 of 9 clusters ready
            c0  ██░░░░░░░░░░  1/3 control, 0/3 compute  join
            c1  ██░░░░░░░░░░  1/3 control, 0/3 compute  join
            c2  ██░░░░░░░░░░  1/3 control, 0/3 compute  join
            … and 6 more clusters"]],
    );
    drawn(
        clusters,
        1,
        &expect![[r"
            0 of 9 clusters ready
            … and 9 more clusters"]],
    );
    let hello = cluster("hello", ClusterState::Scheduled, 3, 1, "join");
    drawn(
        vec![hello],
        2,
        &expect![[r"
        0 of 1 cluster ready
        hello  ████████░░░░  3/3 control, 1/3 compute  join
          └ join hello-compute-02"]],
    );
}

#[test]
fn the_overall_bar_counts_machines_that_come_and_machines_that_go() {
    let mut tally = Tally::default();
    let mut count = |clusters| tally.count(&scene(ManifestState::Scheduled, clusters));
    let half = cluster("a", ClusterState::Scheduled, 3, 0, "");
    assert_eq!(count(vec![half.clone(), leaving("b", 6)]), (3, 12));
    assert_eq!(count(vec![half.clone(), leaving("b", 2)]), (7, 12));
    assert_eq!(count(vec![half]), (9, 12));
    assert_eq!(
        count(vec![cluster("a", ClusterState::Done, 3, 3, "")]),
        (12, 12)
    );
}

#[test]
fn done_counts_only_for_the_generation_that_was_applied() {
    let done = scene(ManifestState::Done, Vec::new());
    assert_eq!(Goal::new(3, false).judge(&done, Duration::ZERO), None);
    assert_eq!(
        Goal::new(2, false).judge(&done, Duration::ZERO),
        Some(Verdict::Done)
    );
    assert_eq!(
        Goal::new(1, false).judge(&done, Duration::ZERO),
        Some(Verdict::Done)
    );
    assert_eq!(
        Goal::new(1, true).judge(&done, Duration::ZERO),
        Some(Verdict::Overtaken)
    );
}

#[test]
fn an_error_must_last_to_end_the_wait() {
    let mut goal = Goal::new(2, false);
    let mut judge =
        |state, seconds| goal.judge(&scene(state, Vec::new()), Duration::from_secs(seconds));
    assert_eq!(judge(ManifestState::Error, 5), None);
    assert_eq!(judge(ManifestState::Error, 14), None);
    assert_eq!(judge(ManifestState::Scheduled, 15), None);
    assert_eq!(judge(ManifestState::Error, 16), None);
    assert_eq!(judge(ManifestState::Error, 26), Some(Verdict::Failing));
}
