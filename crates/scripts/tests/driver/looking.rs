//! Scripts that look or tell something: good ones, and every kind of bad one.

use crate::testing::{Known, context, secret, setting};
use crate::world::{World, lives, nobody_secret, until, within};
use driver::deploy::{Acted, Deployer as _, Judged, Of, Stream};
use model::environment::config::Level;
use model::environment::schema::KnownKey;
use model::environment::settings::SecretDelivery;
use model::environment::status::{Deed, Failure, Look, Seen, Status};
use scripts::Notified;
use std::time::Duration;

#[tokio::test]
async fn a_check_tells_by_its_exit() {
    let world = World::new();
    for (exit, seen) in [
        (0, Seen::Good),
        (1, Seen::Bad(Failure::Generic)),
        (2, Seen::Bad(Failure::Partial)),
        (3, Seen::Bad(Failure::TagMismatch)),
        (77, Seen::Bad(Failure::Generic)),
    ] {
        world.script("check", &format!("echo looking; echo hm >&2; exit {exit}"));
        let looked = world.look(Look::Up).await.unwrap();
        assert_eq!((looked.seen, looked.said.as_str()), (seen, "looking\nhm"));
    }
    world.script("archive_check", "kill -9 $$");
    let looked = world.look(Look::Down).await.unwrap();
    assert_eq!(looked.seen, Seen::Bad(Failure::Generic));
    assert!(
        looked.said.contains("was ended by signal 9"),
        "{}",
        looked.said
    );
}

#[tokio::test]
async fn what_cannot_be_run_is_told_with_its_code() {
    let world = World::new();
    let look = async || world.look(Look::Up).await.unwrap_err().attempted;
    assert!(look().await.contains("(SCRIPT-001)"));
    world.script("check", "");
    let file = world.path("scripts/check");
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(&file, mode(0o644)).unwrap();
    assert!(look().await.contains("is not executable (SCRIPT-002)"));
    std::fs::set_permissions(&file, mode(0o755)).unwrap();
    std::fs::write(&file, "#!/nowhere/interpreter\n").unwrap();
    assert!(look().await.contains("(SCRIPT-002)"));
    std::fs::write(&file, "no first line that says who reads it\n").unwrap();
    assert!(look().await.contains("(SCRIPT-002)"));
    std::fs::remove_dir_all(world.path("scripts")).unwrap();
    assert!(look().await.contains("(SCRIPT-003)"));
}

#[tokio::test]
async fn a_check_that_hangs_is_ended_with_all_it_started() {
    let mut world = World::new();
    world.subject.settings.patience.check = Duration::from_millis(300);
    world.script(
        "check",
        "echo before; sh -c 'trap \"\" TERM; echo $$ >\"$0/grandchild\"; while :; do sleep 1; done' \"$HERE\" & wait",
    );
    let looked = world.look(Look::Up).await.unwrap();
    assert_eq!(looked.seen, Seen::Bad(Failure::Generic));
    assert!(looked.said.starts_with("before\n"), "{}", looked.said);
    assert!(
        looked.said.contains("took longer than 0.3 s"),
        "{}",
        looked.said
    );
    until(|| !lives(&world.read("grandchild"))).await;
}

#[tokio::test]
async fn who_does_not_wait_for_a_check_ends_it() {
    let world = World::new();
    world.script("check", "echo $$ >\"$HERE/pid\"; sleep 1000 & wait");
    let cx = nobody_secret();
    let looking = world.scripts.look(&cx, &world.subject, Look::Up);
    tokio::select! {
        looked = looking => panic!("{looked:?}"),
        () = until(|| world.read("pid").ends_with('\n')) => {}
    }
    until(|| !lives(&world.read("pid"))).await;
}

#[tokio::test]
async fn a_check_that_leaves_something_behind_is_not_waited_for() {
    let world = World::new();
    world.script("check", "sleep 1000 & echo $! >\"$HERE/left\"; echo done");
    let looked = world.look(Look::Up).await.unwrap();
    assert_eq!((looked.seen, looked.said.as_str()), (Seen::Good, "done"));
    until(|| !lives(&world.read("left"))).await;
}

#[tokio::test]
async fn a_check_that_prints_without_end_is_cut() {
    let world = World::new();
    world.script("check", "yes | head -c 50000000; echo last; exit 2");
    let looked = world.look(Look::Up).await.unwrap();
    assert_eq!(looked.seen, Seen::Bad(Failure::Partial));
    assert!(looked.said.len() < 20_000);
    assert!(
        looked.said.starts_with("[49983621 bytes before"),
        "{}",
        &looked.said[..80]
    );
    assert!(looked.said.ends_with("last"));
}

#[tokio::test]
async fn defaults_and_keys_are_told_by_either_name() {
    let world = World::new();
    world
        .script("deployment_overrides", "echo chart_version,12.0.0")
        .script("app_overrides", "printf '\"args\",\"%s\"\\n' \"$*\"")
        .script(
            "deployment_keys",
            "echo chart_version; echo; echo chart_name",
        )
        .script("application_config_keys", "echo \"$1.$2\" | tr = -");
    let (cx, settings) = (nobody_secret(), &world.subject.settings);
    let told = world
        .scripts
        .defaults(&cx, settings, Of::Deployment)
        .await
        .unwrap();
    let told: Vec<_> = told
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str()))
        .collect();
    assert_eq!(told, ["chart_version=12.0.0"]);
    let deployment = [setting("chart_version", "12.1.0")];
    let told = world
        .scripts
        .defaults(&cx, settings, Of::Application(&deployment))
        .await
        .unwrap();
    let told: Vec<_> = told.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(
        told,
        [
            "--deployment-config chart_version=12.1.0 --project-name Cactus store --base-domain cactus-store.com --namespace cactus"
        ]
    );
    let keys = world
        .scripts
        .keys(&cx, settings, Of::Deployment)
        .await
        .unwrap();
    // Of what scripts tell nothing but the name is known.
    let named = |key: &str| KnownKey::named(key.to_owned());
    assert_eq!(keys, [named("chart_version"), named("chart_name")]);
    let keys = world
        .scripts
        .keys(&cx, settings, Of::Application(&deployment))
        .await
        .unwrap();
    assert_eq!(keys, [named("--deployment-config.chart_version-12.1.0")]);
}

#[tokio::test]
async fn a_script_that_does_not_tell_is_an_error_and_is_asked_again() {
    let world = World::new();
    let (cx, settings) = (nobody_secret(), &world.subject.settings);
    for (text, code) in [
        (
            "echo a,1; echo no chart >&2; exit 4",
            "ended with status 4: no chart (SCRIPT-005)",
        ),
        (
            "echo a,1; echo b",
            "line 2, column 1: one column, and there should be two: a name, a comma, and the rest (SCRIPT-006)",
        ),
        (
            "printf 'a,\\377\\n'",
            "line 1, column 3: not UTF-8 (SCRIPT-015)",
        ),
        (
            "yes a,1 | head -c 5000000",
            "printed more than 4 MiB (SCRIPT-007)",
        ),
    ] {
        world.script("deployment_config", text);
        let told = within(world.scripts.defaults(&cx, settings, Of::Deployment)).await;
        let error = told.unwrap_err().attempted;
        assert!(error.ends_with(code), "{error}");
    }
    for (text, settings_told) in [("echo a,1", 1), ("echo a,1; echo b,2", 2)] {
        // Another script counts at once, whatever the one before has told.
        world.script("deployment_config", text);
        let told = world.scripts.defaults(&cx, settings, Of::Deployment).await;
        assert_eq!(told.unwrap().iter().count(), settings_told);
    }
}

#[tokio::test]
async fn a_configuration_is_judged_in_the_words_of_the_script() {
    let world = World::new();
    let cx = nobody_secret();
    world.script("config_check", "exit 0");
    assert_eq!(
        world.scripts.judge(&cx, &world.subject).await,
        Ok(Judged::Good)
    );
    world.script(
        "config_check",
        "echo 'chart X does not exist'; echo trace >&2; exit 1",
    );
    let bad = Judged::Bad("chart X does not exist".to_owned());
    assert_eq!(world.scripts.judge(&cx, &world.subject).await, Ok(bad));
    world.script("config_check", "echo trace >&2; exit 1");
    let bad = Judged::Bad("trace".to_owned());
    assert_eq!(world.scripts.judge(&cx, &world.subject).await, Ok(bad));
}

#[tokio::test]
async fn a_check_finds_what_is_secret_and_does_not_repeat_it() {
    let mut world = World::new();
    world.subject.application = vec![secret("db.password")];
    let cx = || {
        context(Known(vec![(
            Level::Application,
            "db.password",
            b"swordfish",
        )]))
    };
    for (delivery, look) in [
        (
            SecretDelivery::File,
            "tr '\\t' ' ' <\"$SLIPWAY_SECRETS/index\"; cat \"$SLIPWAY_SECRETS/1\"; echo \"$SLIPWAY_SECRETS\" >\"$HERE/where\"",
        ),
        (
            SecretDelivery::Env,
            "echo \"$SLIPWAY_SECRET_APPLICATION_db__password\"",
        ),
        (SecretDelivery::Argv, "echo \"$@\""),
    ] {
        world.subject.settings.secret_delivery = Some(delivery);
        world.script("check", look);
        let looked = world
            .scripts
            .look(&cx(), &world.subject, Look::Up)
            .await
            .unwrap();
        assert!(looked.said.ends_with("***"), "{}", looked.said);
    }
    let place = world.read("where");
    assert!(place.starts_with(world.path("runs").to_str().unwrap()));
    assert!(!std::path::Path::new(place.trim()).exists());
}

#[tokio::test]
async fn who_does_not_end_in_time_does_not_repeat_what_is_secret_either() {
    let mut world = World::new();
    world.subject.application = vec![secret("db.password"), secret("pins")];
    world.subject.settings.secret_delivery = Some(SecretDelivery::Env);
    world.subject.settings.patience.check = Duration::from_millis(300);
    // The last is longer than what is told of a complaint: what is told begins in the middle of it.
    let long = "x-y".repeat(300);
    let known = |value: &'static [u8]| {
        let pins: &[u8] = b"abc\ndef";
        let password = (Level::Application, "db.password", value);
        context(Known(vec![password, (Level::Application, "pins", pins)]))
    };
    let long: &'static [u8] = Vec::leak(long.into_bytes());
    for value in [b"swordfish", long] {
        let cx = known(value);
        let told = "printf '%s\n' \"$SLIPWAY_SECRET_APPLICATION_pins\" \"$SLIPWAY_SECRET_APPLICATION_db__password\" >&2";
        for end in ["sleep 999", "kill -9 $$"] {
            world.script("check", &format!("{told}; {end}"));
            world.script("config_check", &format!("{told}; {end}"));
            let looked = world.scripts.look(&cx, &world.subject, Look::Up);
            let said = within(looked).await.unwrap().said;
            assert!(said.contains(": ***\n***\n*** ("), "{said}");
            let judged = within(world.scripts.judge(&cx, &world.subject)).await;
            let error = judged.unwrap_err().attempted;
            assert!(error.contains(": ***\n***\n*** ("), "{error}");
            for told in [said, error] {
                let leaks = ["abc", "def", "sword", "x-y"];
                assert!(!leaks.iter().any(|leak| told.contains(leak)), "{told}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_cut_of_a_secret_is_not_told() {
    let mut world = World::new();
    world.subject.application = vec![secret("db.password")];
    world.subject.settings.secret_delivery = Some(SecretDelivery::Env);
    let known = Known(vec![(Level::Application, "db.password", b"swordfish")]);
    let cx = context(known);
    // 16 KiB are kept, and begin or end with a part of it.
    let filler = "head -c 16379 /dev/zero | tr '\\0' .";
    let password = "printf %s \"$SLIPWAY_SECRET_APPLICATION_db__password\"";
    world.script("check", &format!("{password}; {filler}"));
    let looked = world.scripts.look(&cx, &world.subject, Look::Up);
    let said = within(looked).await.unwrap().said;
    assert!(!said.contains("dfish"), "{}", &said[..80]);
    world.script("config_check", &format!("{filler}; {password}; exit 1"));
    let judged = within(world.scripts.judge(&cx, &world.subject)).await;
    let Ok(Judged::Bad(said)) = judged else {
        panic!("{judged:?}");
    };
    assert!(!said.contains("swo"), "{}", &said[16_300..]);
}

#[tokio::test]
async fn scripts_find_their_place_and_nothing_of_ours() {
    let world = World::new();
    world.script("sibling", "echo called");
    world.script(
        "check",
        "sibling; echo \"$PROJECT_NAME|$BASE_DOMAIN|$NAMESPACE|$SLIPWAY_DATABASE|$(cat)\"",
    );
    let own = [
        ("PATH", "/usr/bin:/bin"),
        ("SLIPWAY_DATABASE", "postgres://secret"),
    ];
    let own = own.map(|(name, value)| (name.into(), value.into()));
    let surroundings = scripts::Surroundings::new(own);
    let other = scripts::Scripts::open(&world.path("other"), Vec::new(), surroundings).unwrap();
    let looked = other.look(&nobody_secret(), &world.subject, Look::Up).await;
    assert_eq!(
        looked.unwrap().said,
        "called\nCactus store|cactus-store.com|cactus||"
    );
}

#[tokio::test]
async fn scripts_find_the_cluster_that_their_project_is_placed_on() {
    let mut world = World::new();
    let script = "ls -l \"$KUBECONFIG\" | cut -c1-10; cat \"$KUBECONFIG\"; echo \"$KUBECONFIG\" >\"$HERE/where\"";
    world.script("check", script);
    world.script("create", script);
    world.subject.settings.place.cluster = Some("shed".parse().unwrap());
    let looked = world.look(Look::Up).await.unwrap();
    assert_eq!(looked.said, "-rw-------\ncluster: shed\ntoken: ***");
    let file = world.read("where");
    assert!(!std::path::Path::new(file.trim()).exists(), "{file}");

    let work = world.work(Deed::Create, &nobody_secret());
    let (acted, heard) = world.act(&nobody_secret(), &work).await;
    assert!(
        matches!(acted, Acted::Exited { status: 0, .. }),
        "{acted:?}"
    );
    let told = ["-rw-------", "cluster: shed", "token: ***"];
    assert_eq!(heard.lines(Stream::Out), told);
    let file = world.read("where");
    assert!(!std::path::Path::new(file.trim()).exists(), "{file}");

    world.subject.settings.place.cluster = Some("nowhere".parse().unwrap());
    let lost = world.look(Look::Up).await.unwrap_err();
    assert_eq!(lost.attempted, "there is no cluster nowhere (SCRIPT-014)");
}

#[tokio::test]
async fn those_who_want_to_know_are_told_and_need_not_be_there() {
    let world = World::new();
    let tell = async || {
        let told = world
            .scripts
            .notify(&world.subject, Status::Running, Status::Archived);
        told.await
    };
    assert_eq!(tell().await, Ok(Notified::Nobody));
    let init = world.scripts.init(&world.subject.settings).await;
    assert_eq!(init, Ok(Notified::Nobody));
    world.script("notification", "echo \"$@\" >\"$HERE/told\"");
    world.script("init", "echo $# >\"$HERE/init\"; exit 3");
    assert_eq!(tell().await, Ok(Notified::Told));
    assert!(
        world
            .read("told")
            .ends_with("--old-status Running --new-status Archived\n")
    );
    let failed = world
        .scripts
        .init(&world.subject.settings)
        .await
        .unwrap_err();
    assert!(
        failed
            .attempted
            .contains("init ended with status 3 (SCRIPT-005)")
    );
    assert_eq!(world.read("init"), "0\n");
}
