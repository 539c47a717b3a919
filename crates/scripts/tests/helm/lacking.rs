//! What is missing or wrong, and how it is told.

use crate::testing::{Known, context, secret};
use crate::world::{World, example, helm_or_skip, nobody_secret, within};
use driver::deploy::{Acted, Deployer as _, Of};
use model::environment::settings::{Deploy, Kubeconfig};
use model::environment::status::{Deed, Look};
use scripts::helm::Programs;

/// The error of an action that could not be begun, and was not.
async fn unbegun(world: &World, deed: Deed) -> String {
    let cx = nobody_secret();
    let mut work = world.work(Deed::Create, &cx).await;
    work.deed = deed;
    let heard = crate::world::Heard::default();
    let following = crate::world::following(&heard);
    let acted = within(world.helm.act(&cx, &work, &following)).await;
    let Acted::Unbegun(error) = acted else {
        panic!("{acted:?} {}", heard.all());
    };
    error.attempted
}

#[tokio::test]
async fn what_is_missing_is_told_before_anything_is_begun() {
    let test = "what_is_missing_is_told_before_anything_is_begun";
    let Some(helm) = helm_or_skip(test, lab::helm::VERSIONS[0]) else {
        return;
    };
    let mut world = World::alone(&helm);
    // A kubectl is looked for, and not asked.
    world.programs.kubectl = Some("/bin/true".into());
    world.helm = world.again();
    let code = |error: &str, code: &str| assert!(error.ends_with(&format!("({code})")), "{error}");
    code(&unbegun(&world, Deed::Create).await, "HELM-006");
    world.subject.settings.place.cluster = Some("nowhere".parse().unwrap());
    let error = unbegun(&world, Deed::Archive).await;
    assert_eq!(error, "there is no cluster nowhere (SCRIPT-014)");
    world.chart().kubeconfig = Some(Kubeconfig::File("/nowhere/conf".to_owned()));
    code(&unbegun(&world, Deed::Cleanup).await, "HELM-006");
    for (helm, kubectl, wanted) in [
        (Some("/nowhere/helm"), Some("/bin/true"), "HELM-001"),
        (Some("/bin/true"), Some("/bin/true"), "HELM-002"),
        (None, Some("/nowhere/kubectl"), "HELM-003"),
    ] {
        let programs = Programs {
            helm: helm.map_or_else(|| world.programs.helm.clone(), |helm| Some(helm.into())),
            kubectl: kubectl.map(Into::into),
        };
        let other = crate::world::open(world.home.path(), programs);
        let cx = nobody_secret();
        let work = world.work(Deed::Archive, &cx).await;
        let heard = crate::world::Heard::default();
        let following = crate::world::following(&heard);
        let acted = within(other.act(&cx, &work, &following)).await;
        let Acted::Unbegun(error) = acted else {
            panic!("{acted:?}");
        };
        code(&error.attempted, wanted);
    }
    let left = std::fs::read_dir(world.runs()).unwrap();
    let began = left.filter(|entry| entry.as_ref().unwrap().path().join("began").exists());
    assert_eq!(began.count(), 0);
}

#[tokio::test]
async fn what_is_no_chart_is_told() {
    let test = "what_is_no_chart_is_told";
    let Some(helm) = helm_or_skip(test, lab::helm::VERSIONS[0]) else {
        return;
    };
    let mut world = World::alone(&helm);
    let cx = nobody_secret();
    let broken = world.own_chart();
    let mut wrong = async |chart: &str, code: &str| {
        world.chart().chart = chart.to_owned();
        let settings = &world.subject.settings;
        let error = within(world.helm.defaults(&cx, settings, Of::Application(&[]))).await;
        let error = error.unwrap_err().attempted;
        assert!(error.ends_with(&format!("({code})")), "{error}");
        let judged = within(world.helm.judge(&cx, &world.subject)).await;
        assert!(
            judged
                .unwrap_err()
                .attempted
                .ends_with(&format!("({code})"))
        );
    };
    wrong("/nowhere", "HELM-004").await;
    wrong("relative", "HELM-004").await;
    std::fs::write(broken.join("values.yaml"), "a: [").unwrap();
    wrong(broken.to_str().unwrap(), "HELM-005").await;
    std::fs::write(broken.join("values.yaml"), "a: 1\n").unwrap();
    std::fs::write(broken.join("values.schema.json"), "{").unwrap();
    wrong(broken.to_str().unwrap(), "HELM-005").await;
    let archive = broken.join("none.tgz");
    std::fs::write(&archive, "no archive").unwrap();
    wrong(archive.to_str().unwrap(), "HELM-005").await;
    world.subject.settings.deploy = Deploy::Scripts;
    let error = within(world.helm.look(&cx, &world.subject, Look::Up)).await;
    assert!(error.unwrap_err().attempted.ends_with("(HELM-004)"));
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_is_no_answer() {
    let test = "a_cluster_that_does_not_answer_is_no_answer";
    let Some(helm) = helm_or_skip(test, lab::helm::VERSIONS[0]) else {
        return;
    };
    let Some(_) = lab::helm::kubectl() else {
        lab::skip(test, &lab::kubernetes::missing());
        return;
    };
    let mut world = World::alone(&helm);
    let conf = world.home.path().join("kubeconfig");
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: \"http://127.0.0.1:9\"}}]\nusers: [{name: a, user: {}}]\n";
    std::fs::write(&conf, text).unwrap();
    world.chart().kubeconfig = Some(Kubeconfig::File(conf.display().to_string()));
    let cx = nobody_secret();
    for look in [Look::Up, Look::Down] {
        let error = within(world.helm.look(&cx, &world.subject, look)).await;
        let error = error.unwrap_err().attempted;
        assert!(error.ends_with("(HELM-008)"), "{error}");
    }
    // An action is begun, and fails as Helm does.
    let (acted, heard) = world.act(&cx, Deed::Archive).await;
    assert!(
        matches!(acted, Acted::Exited { status, .. } if status != 0),
        "{acted:?}"
    );
    assert!(heard.all().contains("127.0.0.1:9"), "{}", heard.all());
}

#[tokio::test]
async fn a_cluster_that_hangs_is_no_answer_for_anybody_who_waits() {
    let test = "a_cluster_that_hangs_is_no_answer_for_anybody_who_waits";
    let Some(helm) = helm_or_skip(test, lab::helm::VERSIONS[0]) else {
        return;
    };
    let mut world = World::alone(&helm);
    let conf = world.home.path().join("kubeconfig");
    std::fs::write(&conf, "apiVersion: v1\nkind: Config\n").unwrap();
    world.chart().kubeconfig = Some(Kubeconfig::File(conf.display().to_string()));
    let kubectl = world.home.path().join("kubectl");
    std::fs::write(&kubectl, "#!/bin/sh\nexec sleep 600\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&kubectl, mode).unwrap();
    world.programs.kubectl = Some(kubectl);
    world.helm = world.again();
    let patience = std::time::Duration::from_secs(2);
    world.subject.settings.patience.check = patience;
    let cx = nobody_secret();
    let look = async |after: u64| {
        tokio::time::sleep(std::time::Duration::from_millis(after)).await;
        // Whoever asks waits a little longer than they say.
        let looked = world.helm.look(&cx, &world.subject, Look::Up);
        let looked = tokio::time::timeout(patience.mul_f64(1.5), looked).await;
        let error = looked.expect("it ends in time").unwrap_err().attempted;
        assert!(error.ends_with("(HELM-009)"), "{error}");
    };
    tokio::join!(look(0), look(500), look(1000));
}

#[tokio::test]
async fn a_secret_without_a_value_and_contradictions_are_not_begun() {
    let test = "a_secret_without_a_value_and_contradictions_are_not_begun";
    let Some(helm) = helm_or_skip(test, lab::helm::VERSIONS[0]) else {
        return;
    };
    let mut world = World::alone(&helm);
    world.programs.kubectl = Some("/bin/true".into());
    world.helm = world.again();
    assert!(example().join("Chart.yaml").is_file());
    world.set("image.tag.suffix", "x");
    let error = unbegun(&world, Deed::Update).await;
    assert!(error.ends_with("(HELM-007)"), "{error}");
    world.edits.clear();
    world.subject.deployment = vec![secret("password")];
    let error = unbegun(&world, Deed::Update).await;
    assert!(error.ends_with("(SCRIPT-009)"), "{error}");
    let cx = context(Known(Vec::new()));
    let judged = within(world.helm.judge(&cx, &world.configured(&cx).await)).await;
    assert_eq!(judged, Ok(driver::deploy::Judged::Good));
}

#[tokio::test]
async fn each_project_is_deployed_as_it_says() {
    let test = "each_project_is_deployed_as_it_says";
    let Some(helm) = helm_or_skip(test, lab::helm::VERSIONS[0]) else {
        return;
    };
    let mut world = World::alone(&helm);
    let scripts = |home: &std::path::Path| {
        let surroundings = scripts::Surroundings::new(std::env::vars_os());
        scripts::Scripts::open(home, vec!["/bin/false".into()], surroundings).unwrap()
    };
    let elsewhere = tempfile::tempdir().unwrap();
    assert!(scripts::Deployers::new(scripts(elsewhere.path()), world.again()).is_none());
    let both = scripts::Deployers::new(scripts(&world.runs()), world.again()).unwrap();
    assert_eq!(both.place(), world.helm.place());
    let cx = nobody_secret();
    let mut subject = world.configured(&cx).await;
    assert_eq!(
        within(both.judge(&cx, &subject)).await,
        Ok(driver::deploy::Judged::Good)
    );
    let asked = |error: driver::Error| error.attempted;
    let look = within(both.look(&cx, &subject, Look::Up)).await;
    assert!(look.map_err(asked).unwrap_err().ends_with("(HELM-006)"));
    world.subject.settings.deploy = Deploy::Scripts;
    subject.settings = world.subject.settings.clone();
    let look = within(both.look(&cx, &subject, Look::Up)).await;
    assert!(look.map_err(asked).unwrap_err().ends_with("(SCRIPT-003)"));
    let judged = within(both.judge(&cx, &subject)).await;
    assert!(judged.map_err(asked).unwrap_err().ends_with("(SCRIPT-003)"));
}
