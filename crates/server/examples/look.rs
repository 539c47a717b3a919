//! Temporary.
#[path = "../tests/http/world.rs"]
#[allow(dead_code, unused)]
mod world;
use store::Ended;
use std::time::Duration;
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut world = world::World::new();
    let mut server = world.server.clone();
    world.submit(world::HELLO).await;
    world.settle().await;
    for n in 0..12 {
        let text = world::HELLO.replace("name: hello", &format!("name: team-{n:02}")).replace("name: first", &format!("name: edge-{n:02}"));
        world.submit(&text).await;
        if n % 3 == 0 { world.settle().await; }
    }
    for live in world.store.live_clusters().await.unwrap() {
        world.store.observe(live.id, vec![], world.now()).await.unwrap();
    }
    world.pass(Duration::from_secs(75));
    world.plan().await;
    let mut claims = world.claim(14).await;
    world.end(claims.remove(0), Ended::Stuck { error: "the provider refused: quota of region north is used up; raise it or choose another region".to_owned() }).await;
    world.end(claims.remove(0), Ended::Retry { error: "timeout after 30 s; the provider is slow".to_owned(), not_before: world.now().plus(Duration::from_secs(20)) }).await;
    for _ in 0..6 { world.end(claims.remove(0), Ended::Done).await; }
    let c = claims.remove(0);
    let id = c.task.id;
    let _ = world.store.append_log(&c, (0..8).map(|n| (world.now(), format!("step {n}: waiting for the machine to answer on port 22"))).collect()).await.unwrap();
    world.plan().await;
    world.submit(&world::HELLO.replace("count: 2", "count: 3").replace("v1.34.1","v1.34.2")).await;
    world.plan().await;
    world.post_json("/intents", &serde_json::json!({"cluster":"edge-07","wish":{"pause":{}},"reason":"freeze for the audit"})).await;
    world.plan().await;
    world.pass(Duration::from_secs(40));
    println!("task {id}");
    let w = world.now(); let start = std::time::Instant::now();
    server.clock = std::sync::Arc::new(move || w.plus(start.elapsed()));
    server.metrics = server::metrics::builder().unwrap().install_recorder().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:7099").await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let ticker = async {
        if std::env::args().nth(1).as_deref() != Some("tick") { std::future::pending::<()>().await }
        let mut n = 0;
        loop { tokio::time::sleep(Duration::from_secs(3)).await; n += 1; world.submit(&world::HELLO.replace("name: hello", &format!("name: live-{n:02}")).replace("name: first", &format!("name: live-{n:02}"))).await; }
    };
    tokio::select! { r = server::run(listener, server, stop) => r.unwrap(), () = ticker => {} }
}
