//! An environment from its beginning to its end.

use crate::testing::{Known, context, secret};
use crate::world::{World, following, nobody_secret, with_text, within};
use driver::deploy::{Acted, Deployer as _};
use driver::{Context, Keeping, Opening};
use model::environment::config::Level;
use model::environment::settings::Kubeconfig;
use model::environment::status::{Deed, Failure, Look, Seen};
use model::name::Name;
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
use model::time::Timestamp;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const GENERIC: Seen = Seen::Bad(Failure::Generic);
const PARTIAL: Seen = Seen::Bad(Failure::Partial);

/// What nobody should see, and JSON writes otherwise.
const SECRET: &str = "swordfish-2f1c\"quoted";
const MISMATCH: Seen = Seen::Bad(Failure::TagMismatch);

#[tokio::test]
async fn an_environment_lives_with_helm_4() {
    lives("an_environment_lives_with_helm_4", "v4.1.4", "living-four").await;
}

#[tokio::test]
async fn an_environment_lives_with_helm_3() {
    lives(
        "an_environment_lives_with_helm_3",
        "v3.19.5",
        "living-three",
    )
    .await;
}

async fn lives(test: &str, version: &str, namespace: &str) {
    let Some(mut world) = World::placed(test, version, namespace) else {
        return;
    };
    let cx = nobody_secret();
    let chart = world.own_chart();
    let nightly = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\nspec:\n  schedule: \"0 3 * * *\"\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          restartPolicy: Never\n          containers: [{name: nightly, image: \"slipway.lab/nightly:1\"}]\n";
    std::fs::write(chart.join("templates/nightly.yaml"), nightly).unwrap();
    world.set("store.enabled", "true");
    let links = world.done(&cx, Deed::Create).await;
    assert_eq!(links, ["http://orange-button.shop.example"]);
    becomes_ready(&world).await;
    is_updated(&mut world).await;
    rests_and_returns(&world).await;
    // What was scaled by us is the chart's again.
    world.set("replicas", "3");
    world.done(&cx, Deed::Update).await;
    let looked = world.all_ready().await;
    assert!(looked.said.contains("3 of 3 ready"), "{}", looked.said);
    is_cleaned_up(&world).await;
}

async fn becomes_ready(world: &World) {
    let looked = world
        .until(Look::Up, |looked| looked.said.contains("0 of 2"))
        .await;
    assert_eq!(looked.seen, GENERIC, "{}", looked.said);
    let looked = world.until(Look::Up, |looked| {
        if looked.seen == GENERIC {
            world.ready(1);
        }
        looked.seen != GENERIC
    });
    let looked = looked.await;
    assert_eq!(looked.seen, PARTIAL, "{}", looked.said);
    let looked = world.all_ready().await;
    assert_eq!(
        looked.said,
        "deployment orange-button-echo: 2 of 2 ready\n\
         statefulset orange-button-store: 1 of 1 ready\n\
         cronjob nightly: waits for its time"
    );
    assert_eq!(world.look(Look::Down).await.seen, GENERIC);
}

async fn is_updated(world: &mut World) {
    let cx = nobody_secret();
    world.set("image.tag", "2");
    // Nothing was done yet, and all is well but for the tag.
    let looked = world.look(Look::Up).await;
    assert_eq!(looked.seen, MISMATCH, "{}", looked.said);
    let told = "no image has the tag 2: slipway.lab/echo:1, slipway.lab/nightly:1";
    assert!(looked.said.ends_with(told), "{}", looked.said);
    world.set("ingress.tlsSecret", "wildcard");
    let links = world.done(&cx, Deed::Update).await;
    assert_eq!(links, ["https://orange-button.shop.example"]);
    // Those of before serve until the new ones do, and that is no success.
    assert_ne!(world.look(Look::Up).await.seen, Seen::Good);
    world.all_ready().await;
}

async fn rests_and_returns(world: &World) {
    let cx = nobody_secret();
    // One pod takes its time.
    let pod = world.names("pods").remove(0);
    let hold = r#"{"metadata":{"finalizers":["slipway.dev/test"]}}"#;
    world.kubectl(&["patch", &pod, "--patch", hold]);
    world.done(&cx, Deed::Archive).await;
    let looked = world.until(Look::Down, |looked| looked.said.contains("about to end"));
    let looked = looked.await;
    assert_eq!(looked.seen, GENERIC, "{}", looked.said);
    assert_eq!(world.look(Look::Up).await.seen, GENERIC);
    let let_go = r#"{"metadata":{"finalizers":null}}"#;
    world.kubectl(&["patch", &pod, "--type", "merge", "--patch", let_go]);
    world
        .until(Look::Down, |looked| looked.seen == Seen::Good)
        .await;
    assert_eq!(world.names("pods"), [""; 0]);
    let web = world.json(&["get", "deployment", "orange-button-echo"]);
    assert_eq!(web["metadata"]["annotations"]["slipway.dev/replicas"], "2");
    let nightly = || world.json(&["get", "cronjob", "nightly"])["spec"]["suspend"].clone();
    assert_eq!(nightly(), true);
    // A second time changes nothing: the numbers are those of the first.
    world.done(&cx, Deed::Archive).await;
    let volumes = world.names("persistentvolumeclaims");
    assert_eq!(
        volumes,
        ["persistentvolumeclaim/data-orange-button-store-0"]
    );
    world.done(&cx, Deed::Restore).await;
    let web = world.json(&["get", "deployment", "orange-button-echo"]);
    assert_eq!(web["spec"]["replicas"], 2);
    assert_eq!(nightly(), false);
    assert!(web["metadata"]["annotations"]["slipway.dev/replicas"].is_null());
    world.all_ready().await;
}

async fn is_cleaned_up(world: &World) {
    let cx = nobody_secret();
    let other = r#"{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"other","labels":{"app.kubernetes.io/instance":"apple"}},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}"#;
    let file = world.home.path().join("other.json");
    std::fs::write(&file, other).unwrap();
    world.kubectl(&["create", "--filename", file.to_str().unwrap()]);
    world.done(&cx, Deed::Cleanup).await;
    // What belongs to others stays.
    let volumes = world.names("persistentvolumeclaims");
    assert_eq!(volumes, ["persistentvolumeclaim/other"]);
    assert_eq!(
        world.names("deployments,statefulsets,ingresses,secrets"),
        [""; 0]
    );
    assert_eq!(world.look(Look::Down).await.seen, Seen::Good);
    assert_eq!(world.look(Look::Up).await.seen, GENERIC);
    // What is gone is gone a second time, too, and rests; it cannot come back.
    world.done(&cx, Deed::Cleanup).await;
    world.done(&cx, Deed::Archive).await;
    let (acted, heard) = world.act(&cx, Deed::Restore).await;
    assert!(
        matches!(acted, Acted::Exited { status, .. } if status != 0),
        "{acted:?}"
    );
    assert!(heard.all().contains("not found"), "{}", heard.all());
}

/// Opens the way to a cluster, and nothing else.
struct Keeper(String);

impl driver::Open for Keeper {
    fn open<'a>(&'a self, secret: &'a SecretRef) -> Opening<'a> {
        assert_eq!(secret.name.as_str(), "shop");
        let text = std::fs::read_to_string(&self.0).unwrap();
        Box::pin(std::future::ready(Ok(Secret::from_text(text))))
    }

    fn kept<'a>(&'a self, _: &'a Owner, _: &'a EntryName) -> Keeping<'a> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn kubeconfig<'a>(&'a self, cluster: &'a Name) -> Opening<'a> {
        assert_eq!(cluster.as_str(), "shed");
        let text = std::fs::read_to_string(&self.0).unwrap();
        Box::pin(std::future::ready(Ok(Secret::from_text(text))))
    }
}

struct Silent;

impl driver::Log for Silent {
    fn line(&self, _: Timestamp, _: &str) {}
}

#[tokio::test]
async fn the_way_to_a_cluster_may_be_sealed_or_that_of_one_of_ours() {
    let test = "the_way_to_a_cluster_may_be_sealed_or_that_of_one_of_ours";
    let Some(mut world) = World::placed(test, "v4.1.4", "sealed-way") else {
        return;
    };
    let file = world.kubeconfig();
    let (log, keeper) = (Arc::new(Silent), Arc::new(Keeper(file.clone())));
    let cancel = CancellationToken::new();
    let cx = Context::new(driver::Clock::System, log, keeper, cancel, 1);
    world.chart().kubeconfig = Some(Kubeconfig::Secret(SecretRef {
        name: "shop".parse().unwrap(),
        key: Some("kubeconfig".parse().unwrap()),
    }));
    let links = world.done(&cx, Deed::Create).await;
    assert_eq!(links, ["http://orange-button.shop.example"]);
    let subject = world.configured(&cx).await;
    let looked = within(world.helm.look(&cx, &subject, Look::Up))
        .await
        .unwrap();
    assert_eq!(looked.seen, GENERIC, "{}", looked.said);
    assert_eq!(
        with_text(&world.runs(), "client-key-data"),
        [""; 0].map(PathBuf::from)
    );
    // One of ours is known to whoever opens secrets.
    world.chart().kubeconfig = None;
    world.subject.settings.place.cluster = Some("shed".parse().unwrap());
    world.done(&cx, Deed::Cleanup).await;
    let looked = within(world.helm.look(&cx, &world.subject, Look::Down)).await;
    assert_eq!(looked.unwrap().seen, Seen::Good);
    assert_eq!(
        with_text(&world.runs(), "client-key-data"),
        [""; 0].map(PathBuf::from)
    );
}

/// What docs/helm.md lists, for the chart of the examples.
const ROLE: &str = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"shop"},"rules":[
  {"apiGroups":["apps"],"resources":["deployments","statefulsets"],"verbs":["get","list","watch","create","patch","delete"]},
  {"apiGroups":["","networking.k8s.io"],"resources":["services","ingresses"],"verbs":["get","list","create","patch","delete"]},
  {"apiGroups":[""],"resources":["secrets"],"verbs":["get","list","create","update","patch","delete"]},
  {"apiGroups":["apps","batch",""],"resources":["daemonsets","cronjobs","pods"],"verbs":["list"]},
  {"apiGroups":[""],"resources":["persistentvolumeclaims"],"verbs":["get","list","watch","delete"]}]}"#;

#[tokio::test]
async fn the_documented_permissions_are_enough() {
    let test = "the_documented_permissions_are_enough";
    for (version, namespace) in [("v4.1.4", "allowed-four"), ("v3.19.5", "allowed-three")] {
        let Some(mut world) = World::placed(test, version, namespace) else {
            return;
        };
        world.kubectl(&["create", "namespace", namespace]);
        let role = world.home.path().join("role.json");
        std::fs::write(&role, ROLE).unwrap();
        world.kubectl(&["create", "--filename", role.to_str().unwrap()]);
        world.kubectl(&[
            "create",
            "rolebinding",
            "shop",
            "--role=shop",
            "--user=shop",
        ]);
        world.become_user("shop");
        let cx = nobody_secret();
        world.set("store.enabled", "true");
        let links = world.done(&cx, Deed::Create).await;
        assert_eq!(links, ["http://orange-button.shop.example"]);
        world.set("image.tag", "2");
        world.done(&cx, Deed::Update).await;
        world
            .until(Look::Up, |looked| looked.said.contains("0 of 2"))
            .await;
        world.done(&cx, Deed::Archive).await;
        world
            .until(Look::Down, |looked| looked.seen == Seen::Good)
            .await;
        world.done(&cx, Deed::Restore).await;
        world.done(&cx, Deed::Cleanup).await;
        assert_eq!(world.names("persistentvolumeclaims"), [""; 0]);
        // Another namespace is somebody else's, and that is told.
        world.subject.settings.place.namespace = "kube-system".parse().unwrap();
        let subject = world.configured(&cx).await;
        let error = within(world.helm.look(&cx, &subject, Look::Up)).await;
        let error = error.unwrap_err().attempted;
        assert!(
            error.contains("forbidden") && error.ends_with("(HELM-008)"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_secret_reaches_the_cluster_and_nobody_else() {
    let test = "a_secret_reaches_the_cluster_and_nobody_else";
    let Some(mut world) = World::placed(test, "v4.1.4", "secretive") else {
        return;
    };
    world.before_helm(
        "if [ \"$1\" = upgrade ]; then\n\
           cat /proc/[0-9]*/cmdline /proc/self/environ 2>/dev/null | tr '\\0' '\\n' >\"$HERE/seen\"\n\
           for word; do case $word in *values.json) stat -c %a \"$word\" >\"$HERE/mode\"; esac; done\n\
           env | grep -c SLIPWAY_ACTION >>\"$HERE/mode\"\n\
         fi\n\
         exec \"$HELM\" \"$@\"",
    );
    let chart = world.own_chart();
    std::fs::write(
        chart.join("templates/NOTES.txt"),
        "it is {{ .Values.password }}\n",
    )
    .unwrap();
    let cx = context(Known(vec![(
        Level::Application,
        "password",
        SECRET.as_bytes(),
    )]));
    let mut work = world.work(Deed::Create, &cx).await;
    let settings = &mut work.subject.application;
    settings.retain(|one| one.key.as_str() != "password");
    settings.push(secret("password"));
    let heard = crate::world::Heard::default();
    let acted = within(world.helm.act(&cx, &work, &following(&heard))).await;
    assert!(
        matches!(acted, Acted::Exited { status: 0, .. }),
        "{acted:?} {}",
        heard.all()
    );
    // It is there.
    let words = ["get", "secret", "orange-button-echo"];
    let template = "go-template={{ .data.PASSWORD | base64decode }}";
    let kept = world.kubectl(&[&words[..], &["--output", template]].concat());
    assert_eq!(kept, SECRET);
    // The chart told it to everybody, and nobody heard it.
    assert!(heard.all().contains("it is ***"), "{}", heard.all());
    // Nobody could see it while Helm ran, and nothing of it is left.
    let seen = std::fs::read_to_string(world.home.path().join("seen")).unwrap();
    assert!(
        seen.contains("values.json") && !seen.contains("swordfish"),
        "{seen}"
    );
    let mode = std::fs::read_to_string(world.home.path().join("mode")).unwrap();
    assert_eq!(mode, "600\n1\n");
    assert_eq!(
        with_text(world.home.path(), "swordfish"),
        [""; 0].map(PathBuf::from)
    );
    assert!(
        !world
            .runs()
            .join(work.action.to_string())
            .join("secrets")
            .exists()
    );
    world.done(&cx, Deed::Cleanup).await;
}

#[tokio::test]
async fn looks_at_one_namespace_share_a_question() {
    let test = "looks_at_one_namespace_share_a_question";
    let Some(world) = World::placed(test, "v4.1.4", "crowded") else {
        return;
    };
    let counted = world.home.path().join("kubectl");
    let real = world.programs.kubectl.clone().unwrap();
    let here = world.home.path().display();
    let text = format!(
        "#!/bin/sh\necho asked >>'{here}/asked'\nexec '{}' \"$@\"\n",
        real.display()
    );
    std::fs::write(&counted, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&counted, mode).unwrap();
    let programs = scripts::helm::Programs {
        kubectl: Some(counted),
        ..world.programs.clone()
    };
    let helm = crate::world::open(world.home.path(), programs);
    let cx = nobody_secret();
    let subject = world.configured(&cx).await;
    let looks = (0..20).map(|_| helm.look(&cx, &subject, Look::Up));
    let looks = within(futures_of(looks.collect())).await;
    assert!(
        looks
            .iter()
            .all(|looked| looked.as_ref().unwrap().seen == GENERIC)
    );
    let asked = std::fs::read_to_string(world.home.path().join("asked")).unwrap();
    assert!(asked.lines().count() <= 2, "{asked}");
}

/// All answers, when all are there.
async fn futures_of<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, slot) in waiting.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let std::task::Poll::Ready(answer) = future.as_mut().poll(cx)
            {
                *slot = Some(answer);
            }
        }
        if done.iter().all(Option::is_some) {
            return std::task::Poll::Ready(());
        }
        std::task::Poll::Pending
    })
    .await;
    done.into_iter().flatten().collect()
}
