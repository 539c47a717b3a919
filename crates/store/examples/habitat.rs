//! Fills a store with environments that run, for whoever measures what they cost.
//!
//! `cargo xtask bench environments` runs it: `habitat PLACE COUNT SCRIPTS`, where the place is a data
//! directory or the address of a database, both empty, and the scripts are a directory. Each
//! environment is created, deployed by nobody, and was looked at once; the next look is due.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use model::environment::config::{Edit, Edits};
use model::environment::settings::{Patience, Place, Settings};
use model::environment::status::Seen;
use model::name::Name;
use model::time::Timestamp;
use store::{
    About, ActionEnd, ActionEnded, Effective, EnvironmentDraft, LookRecord, Recorded, Store,
};
use tokio::task::JoinSet;

/// How many are made at once.
const AT_ONCE: usize = 64;

/// How many are taken at once of what waits.
const BATCH: u32 = 500;

type Failed = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failed> {
    let mut words = std::env::args().skip(1);
    let usage = "usage: habitat PLACE COUNT SCRIPTS";
    let place = words.next().ok_or(usage)?;
    let count: usize = words.next().ok_or(usage)?.parse()?;
    let scripts = words.next().ok_or(usage)?;
    let store = if place.starts_with("postgres://") {
        Store::connect(&place)?
    } else {
        Store::open(Path::new(&place))?
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(fill(store, count, scripts))
}

async fn fill(store: Store, count: usize, scripts: String) -> Result<(), Failed> {
    let project = Name::default_project();
    let put = store.put_environment_settings(&project, settings(scripts)?, "bench".into(), now());
    put.await?;
    let store = Arc::new(store);
    let mut making = JoinSet::new();
    for number in 0..count {
        if making.len() >= AT_ONCE
            && let Some(made) = making.join_next().await
        {
            made??;
        }
        making.spawn(make(Arc::clone(&store), number));
    }
    while let Some(made) = making.join_next().await {
        made??;
    }
    deploy(&store).await?;
    look(&store).await
}

/// As usual, but nobody looks twice while somebody measures.
fn settings(scripts: String) -> Result<Settings, Failed> {
    let place = Place {
        project_name: "Shop".to_owned(),
        base_domain: "shop.example.org".to_owned(),
        namespace: "shop".parse()?,
        cluster: None,
    };
    Ok(Settings {
        patience: Patience {
            every: Duration::from_hours(6),
            ..Patience::default()
        },
        ..Settings::usual(place, scripts)
    })
}

async fn make(store: Arc<Store>, number: usize) -> Result<(), Failed> {
    let project = Name::default_project();
    let name = format!("e{number:05}").parse()?;
    let mut edits = Edits::default();
    for (key, value) in [
        ("image.tag", "v1"),
        ("replicas", "2"),
        ("feature.new", "on"),
    ] {
        edits
            .application
            .insert(key.parse()?, Edit::Set(value.parse()?));
    }
    let about = About {
        owner: format!("owner{:02}", number % 50),
        labels: [("team".to_owned(), format!("t{:02}", number % 20))].into(),
        ..About::default()
    };
    let draft = EnvironmentDraft {
        id: store.environment_to_be(&project, &name).await?,
        project,
        name,
        about,
        edits,
        sealed: Vec::new(),
        effective: Effective::default(),
        actor: "bench".into(),
        origin: None,
        step: None,
    };
    store.create_environment(draft, now()).await?;
    Ok(())
}

/// Says of all that waits that it was done.
async fn deploy(store: &Arc<Store>) -> Result<(), Failed> {
    loop {
        let lease = Duration::from_mins(10);
        let claims = store.claim_actions(("bench", "bench"), BATCH, lease, now());
        let claims = claims.await?;
        if claims.is_empty() {
            return Ok(());
        }
        let mut ending = JoinSet::new();
        for claim in claims {
            let store = Arc::clone(store);
            ending.spawn(async move {
                store.set_out_action(&claim, "bench", now()).await?;
                let end = ActionEnd {
                    ended: ActionEnded::Done,
                    exit: Some(0),
                    error: None,
                    links: None,
                    look_at: now(),
                };
                store.end_action(&claim, end, Vec::new(), now()).await
            });
        }
        while let Some(ended) = ending.join_next().await {
            let ended = ended??;
            if ended != Recorded::Yes {
                return Err("somebody else works on this store".into());
            }
        }
    }
}

/// Looks at all of them once, so that they run.
async fn look(store: &Store) -> Result<(), Failed> {
    // Whoever is looked at now is due in a second, when nobody fills any more.
    let until = now();
    loop {
        let due = store.due_checks(BATCH, until).await?.checks;
        if due.is_empty() {
            return Ok(());
        }
        let looks = due.iter().map(|check| LookRecord {
            environment: check.id,
            held: check.held,
            seen: Some(Seen::Good),
            said: String::new(),
            due: until.plus(Duration::from_secs(1)),
        });
        store.record_looks(looks.collect(), until).await?;
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}
