//! The page as a browser gets it.

use axum::http::StatusCode;
use expect_test::{Expect, expect};
use model::access::Role;
use store::Ended;

use crate::world::{Answer, HELLO, World, signed_in};

/// What a person reads on a page, line by line, without tags and empty lines.
fn read(html: &str) -> String {
    let main = html
        .split_once("<main")
        .map_or(html, |(_, rest)| rest.split_once('>').unwrap().1);
    let main = main.split("</main>").next().unwrap();
    let mut text = String::new();
    let mut inside = false;
    for c in main.replace("</th>", " | ").replace("</td>", " | ").chars() {
        match c {
            '<' => inside = true,
            '>' => inside = false,
            c if !inside => text.push(c),
            _ => {}
        }
    }
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && *line != "|");
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// One section of a page, one row of a table per line.
fn check_section(page: &Answer, anchor: &str, expected: &Expect) {
    let (_, section) = page
        .text
        .split_once(&format!("<section aria-labelledby=\"{anchor}\">"))
        .unwrap();
    let section = section.split("</section>").next().unwrap();
    let rows = section
        .replace('\n', " ")
        .replace("</tr>", "\n")
        .replace("</p>", "\n")
        .replace("</h2>", "\n");
    expected.assert_eq(&read(&rows));
}

async fn check(world: &World, path: &str, expected: &Expect) {
    let answer = world.look(path).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    expected.assert_eq(&read(&answer.text));
}

#[tokio::test]
async fn an_empty_fleet_says_how_to_begin() {
    check(&World::new(), "/projects/default", &expect![[r#"
        Fleet
        0 machines in 0 clusters, as of 2026-01-01 00:00:00 UTC
        0 all
        No cluster is declared yet. Write a manifest and run slipway apply -f FILE; what it would do is shown by slipway plan -f FILE.
    "#]]).await;
}

#[tokio::test]
async fn the_fleet_shows_every_cluster_in_one_line() {
    let world = World::with_hello().await;
    world.settle().await;
    check(
        &world,
        "/projects/default",
        &expect![[r#"
        Fleet
        5 machines in 1 cluster, as of 2026-01-01 00:00:00 UTC
        1 all
        1 ✓ done
        Cluster | State | Control | Compute | Version | Manifest | What happens | Seen |
        first |
        ✓ done |
        3/3 |
        2/2 |
        v1.34.1 |
        hello |
        as declared |
        never |
    "#]],
    )
    .await;
    check(
        &world,
        "/projects/default?state=error",
        &expect![[r#"
        Fleet
        5 machines in 1 cluster, as of 2026-01-01 00:00:00 UTC
        1 all
        0 ▲ error
        1 ✓ done
        No cluster is in this state. Show all
    "#]],
    )
    .await;
}

/// The page of a cluster of which one task is stuck and another done.
async fn troubled() -> Answer {
    let world = World::with_hello().await;
    world.plan().await;
    let mut claims = world.claim(2).await;
    let stuck = "quota <b>used up</b>; raise it".to_owned();
    world
        .end(claims.remove(0), Ended::Stuck { error: stuck })
        .await;
    world.end(claims.remove(0), Ended::Done).await;
    world.plan().await;
    world.look("/projects/default/clusters/first").await
}

#[tokio::test]
async fn a_cluster_shows_what_waits_and_for_whom() {
    let page = troubled().await;
    assert!(
        !page.text.contains("<b>used up"),
        "what drivers say is escaped"
    );
    check_section(
        &page,
        "held",
        &expect![[r#"
        Held
        create first-brain-01
        stuck: quota &#60;b&#62;used up&#60;/b&#62;; raise it
        Waits for you: correct the manifest, or mend the cause and run `slipway task retry task-485uq6scpjryn`
    "#]],
    );
    check_section(
        &page,
        "pools",
        &expect![[r#"
            Pools
            Pool | Role | Machines ready | Made with |
            brain | control |  0/3 | small, debian-12 |
            muscle | compute |  0/2 | large, debian-12 |
        "#]],
    );
    check_section(
        &page,
        "machines",
        &expect![[r#"
            Machines
            Desired is what the manifest and intents ask for; the rest is what was last seen, and how long ago. Machine | Pool | Desired | Provider sees | Serves | Address |
            first-brain-01 |  brain (control) |  to stay |  · unseen |  · unseen |  10.8.0.1 |
            first-brain-02 |  brain (control) |  to stay |  ✓ running 0s ago |  · unseen |  10.8.0.2 |
            first-brain-03 |  brain (control) |  to stay |  · unseen |  · unseen |  10.8.0.3 |
            first-muscle-01 |  muscle (compute) |  to stay |  · unseen |  · unseen |  10.8.0.4 |
            first-muscle-02 |  muscle (compute) |  to stay |  · unseen |  · unseen |  10.8.0.5 |
        "#]],
    );
}

#[tokio::test]
async fn a_cluster_shows_what_is_done_and_what_was() {
    let page = troubled().await;
    check_section(
        &page,
        "open-tasks",
        &expect![[r#"
        Open tasks
        Task | Machine | State | Attempts | Last error | Changed |
        create |  first-brain-01 |  ▲ stuck |  1 |  quota &#60;b&#62;used up&#60;/b&#62;; raise it |  0s ago |
        init |  first-brain-02 |  ○ waiting |  0 |  – |  0s ago |
        create |  first-muscle-02 |  ○ waiting |  0 |  – |  0s ago |
        create |  first-muscle-01 |  ○ waiting |  0 |  – |  0s ago |
        create |  first-brain-03 |  ○ waiting |  0 |  – |  0s ago |
    "#]],
    );
    check_section(
        &page,
        "finished-tasks",
        &expect![[r#"
        Finished tasks
        Task | Machine | State | Attempts | Last error | Changed |
        create |  first-brain-02 |  ✓ done |  1 |  – |  0s ago |
    "#]],
    );
}

#[tokio::test]
async fn a_task_shows_its_log_as_text() {
    let world = World::with_hello().await;
    world.plan().await;
    let claim = world.claim(1).await.pop().unwrap();
    let id = claim.task.id;
    world.end(claim, Ended::Done).await;
    let page = world.look(&format!("/projects/default/tasks/{id}")).await;
    assert!(
        page.text.contains("create &#60;first-brain-"),
        "{}",
        page.text
    );
    assert!(
        world
            .look("/projects/default/manifests/hello")
            .await
            .text
            .contains("kind: InputManifest")
    );
}

#[tokio::test]
async fn the_log_of_a_task_is_followed_until_the_task_has_ended() {
    let world = World::with_hello().await;
    world.plan().await;
    let claim = world.claim(1).await.pop().unwrap();
    let id = claim.task.id;
    let followed = |page: &Answer| {
        let (_, rest) = page.text.split_once("data-follow=\"")?;
        let path = rest.split('"').next()?.replace("&#38;", "&");
        Some(path.replace(&id.to_string(), "TASK"))
    };
    let page = world.look(&format!("/projects/default/tasks/{id}")).await;
    let path = "/api/v1/projects/default/tasks/TASK/log?stream=true&after=";
    assert_eq!(followed(&page), Some(format!("{path}0")));
    let script = page
        .text
        .split('"')
        .find(|text| text.starts_with("/assets/log-"))
        .unwrap();
    assert!(world.look(script).await.text.contains("EventSource"));
    let lines = (1..=501).map(|_| (world.now(), "a".to_owned())).collect();
    let recorded = world.store.append_log(&claim, lines).await.unwrap();
    assert_eq!(recorded, store::Recorded::Yes);
    let page = world.look(&format!("/projects/default/tasks/{id}")).await;
    assert_eq!(
        followed(&page),
        None,
        "there is another page to turn to first"
    );
    let page = world
        .look(&format!("/projects/default/tasks/{id}?after=500"))
        .await;
    assert_eq!(followed(&page), Some(format!("{path}501")));
    world.end(claim, Ended::Done).await;
    let page = world
        .look(&format!("/projects/default/tasks/{id}?after=500"))
        .await;
    assert_eq!(followed(&page), None, "nothing will be added");
}

#[tokio::test]
async fn a_fragment_is_the_main_part_alone() {
    let world = World::with_hello().await;
    world.plan().await;
    let task = world.get("/tasks?limit=1").await.json()["items"][0]["id"].clone();
    let task = format!("/projects/default/tasks/{}", task.as_str().unwrap());
    for path in [
        "/projects/default",
        "/projects/default/clusters/first",
        "/projects/default/manifests/hello",
        &task,
    ] {
        let whole = world.look(path).await.text;
        let fragment = world.look(&format!("{path}?fragment=1")).await.text;
        assert!(
            !fragment.contains("<html") && !fragment.contains("<main"),
            "{fragment}"
        );
        assert!(whole.contains(fragment.trim()), "{path}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_told_as_a_page() {
    let world = World::new();
    let answer = world.look("/projects/default/clusters/nobody").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    expect![[r#"
        not found
        there is no cluster `nobody`
        list what there is with `slipway get cluster` (API-002)
        Try again or go to the fleet.
    "#]]
    .assert_eq(&read(&answer.text));
    assert_eq!(
        world.look("/projects/default/clusters/NOBODY").await.status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        world.look("/projects/default?state=fine").await.status,
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test]
async fn assets_are_named_after_what_they_hold_and_kept_for_ever() {
    let world = World::new();
    let page = world.look("/projects/default").await;
    assert!(
        page.header("content-security-policy")
            .starts_with("default-src 'none'")
    );
    assert!(
        !page.text.contains("style=") && !page.text.contains("onclick"),
        "the policy forbids it"
    );
    let assets: Vec<_> = page
        .text
        .split('"')
        .filter(|text| text.starts_with("/assets/"))
        .collect();
    assert_eq!(assets.len(), 3, "{assets:?}");
    for asset in assets {
        let answer = world.look(asset).await;
        assert_eq!(answer.status, StatusCode::OK, "{asset}");
        assert!(answer.header("cache-control").contains("immutable"));
    }
    assert_eq!(
        world.look("/assets/page-000000000000.css").await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn long_lists_of_clusters_go_on_on_the_next_page() {
    let world = World::new();
    let many: Vec<String> = (0..120)
        .map(|n| format!("      - {{name: edge-{n:03}, version: v1.34.1, network: 10.9.{n}.0/24, pools: {{control: [brain], compute: []}}}}\n"))
        .collect();
    let answer = world.submit(&format!("{HELLO}{}", many.concat())).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    let first = world.look("/projects/default").await.text;
    let next = first
        .split_once("rel=\"next\" href=\"")
        .unwrap()
        .1
        .split('"')
        .next()
        .unwrap()
        .replace("&#38;", "&");
    let second = world.look(&next).await.text;
    assert_eq!(
        first.matches("<tr>").count() + second.matches("<tr>").count(),
        121 + 2
    );
}

/// The links of the switcher, and who is signed in.
fn top(page: &Answer) -> String {
    let top = page.text.split("</header>").next().unwrap();
    let words = read(&format!("<main>{}", top.split("<header").nth(1).unwrap()));
    let current = top
        .split("<a ")
        .filter(|link| link.contains("aria-current"));
    let current: Vec<_> = current.filter_map(|link| link.split('"').nth(1)).collect();
    format!("{words}current: {}\n", current.join(" "))
}

#[tokio::test]
async fn a_page_says_who_looks_at_what_and_where_else_they_may() {
    let world = World::with_hello().await;
    world.make_project("lab").await;
    let page = world.look("/projects/lab").await;
    expect![[r#"
        class="top"
        Slipway
        FleetAPI
        Project lab
        default
        lab
        Reload for the newest state
        admin, admin
        Sign out
        current: /projects/lab
    "#]]
    .assert_eq(&top(&page));
    let home = world.look("/").await;
    assert_eq!(home.header("location"), "/projects/default");
    assert!(page.text.contains("No cluster is declared yet"));

    let token = world.give("ada", Role::Viewer, Some("lab")).await;
    let seen = async |path: &str| world.send(signed_in(path, &token)).await;
    expect![[r#"
        class="top"
        Slipway
        FleetAPI
        Project lab
        lab
        Reload for the newest state
        ada, viewer
        Sign out
        current: /projects/lab
    "#]]
    .assert_eq(&top(&seen("/projects/lab").await));
    let home = seen("/").await;
    assert_eq!(home.header("location"), "/projects/lab");
    let refused = seen("/projects/default/clusters/first").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    expect![[r#"
        another project
        the token is good for another project than the one asked for
        name your own project with --project, or ask an administrator for a token of this one (AUTH-006)
        Try again or go to the fleet.
    "#]].assert_eq(&read(&refused.text));
    let refused = seen("/projects/nowhere").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(
        world.look("/projects/nowhere").await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn a_cookie_that_opens_nothing_is_taken_away_and_the_form_says_why() {
    let world = World::new();
    let token = world.give("ada", Role::Viewer, None).await;
    world.revoke(&token).await;
    let turned = world.send(signed_in("/projects/default", &token)).await;
    assert_eq!(turned.status, StatusCode::SEE_OTHER);
    assert!(turned.header("set-cookie").contains("Max-Age=0"));
    let form = turned.header("location");
    assert_eq!(form, "/sign-in?next=/projects/default&why=AUTH-003");
    let form = world.look(form).await.text;
    assert!(form.contains("This token was revoked."), "{form}");
    let form = world.look("/sign-in?why=%3Cb%3E").await.text;
    assert!(!form.contains("role=\"alert\""), "{form}");
}
