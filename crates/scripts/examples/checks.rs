//! What a check costs: runs many trivial ones and prints our own time for each.
//!
//! `cargo run --release -p scripts --example checks [COUNT] [AT_ONCE]`

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints, and ends when something is wrong"
)]

#[path = "../src/testing.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod testing;

use driver::deploy::Deployer as _;
use model::environment::status::{Look, Seen};
use scripts::{Scripts, Surroundings};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testing::{Known, context, setting, subject};
use tokio::task::JoinSet;

/// Our own time so far, in the program and in the system, without that of children.
fn spent() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let fields: Vec<_> = rest.split_ascii_whitespace().collect();
    let ticks: u64 = fields[11..13]
        .iter()
        .map(|field| field.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(ticks * 10)
}

#[tokio::main]
async fn main() {
    let mut words = std::env::args()
        .skip(1)
        .map(|word| word.parse::<usize>().unwrap());
    let count = words.next().unwrap_or(5000);
    let at_once = words.next().unwrap_or(16);
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("check");
    std::fs::copy("/bin/true", &file).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    let mut subject = subject();
    subject.settings.scripts = home.path().to_string_lossy().into_owned();
    subject.application = (0..20)
        .map(|at| setting(&format!("key.{at}"), "value"))
        .collect();
    let surroundings = Surroundings::new(std::env::vars_os());
    let scripts = Scripts::open(&home.path().join("runs"), Vec::new(), surroundings);
    let (scripts, subject) = (Arc::new(scripts.unwrap()), Arc::new(subject));
    let (before, began) = (spent(), Instant::now());
    let mut looks = JoinSet::new();
    for at in 0..count {
        if at >= at_once {
            looks.join_next().await.unwrap().unwrap();
        }
        let (scripts, subject) = (Arc::clone(&scripts), Arc::clone(&subject));
        looks.spawn(async move {
            let cx = context(Known(Vec::new()));
            let looked = scripts.look(&cx, &subject, Look::Up).await.unwrap();
            assert_eq!(looked.seen, Seen::Good);
        });
    }
    while looks.join_next().await.is_some() {}
    let own = spent().saturating_sub(before);
    let each = own / u32::try_from(count).unwrap();
    println!(
        "{count} checks in {:.1} s, {:.1} s of our own time, {} µs each",
        began.elapsed().as_secs_f64(),
        own.as_secs_f64(),
        each.as_micros()
    );
}
