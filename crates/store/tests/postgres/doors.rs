//! Databases that nobody prepared, that others prepared differently, or that keep us out.

use crate::fixture::{at, cluster, submit, text};
use crate::{LONG, database};
use model::secret::Secret;
use sha2::{Digest as _, Sha256};
use std::error::Error as _;
use std::net::TcpListener;
use store::{Error, FORMAT, Store};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

/// A word that must not be seen anywhere.
const PASSWORD: &str = "hunter2-und-mehr";

/// Everything that an error says to anybody.
fn told(error: &Error) -> String {
    let mut told = format!(
        "{}: {error}\nhint: {}\n{error:?}\n",
        error.code(),
        error.hint()
    );
    let mut cause = error.source();
    while let Some(next) = cause {
        told += &format!("{next}\n{next:?}\n");
        cause = next.source();
    }
    told
}

/// Connects where that cannot be; answers the code, if all is said and nothing betrayed.
#[track_caller]
fn refused(url: &str, password: Option<&str>) -> &'static str {
    let password = password.map(|text| Secret::from_text(text.to_owned()));
    let connected = Store::connect_as(url, password.as_ref()).map(drop);
    let migrated = Store::migrate(url, password.as_ref()).map(drop);
    let (connected, migrated) = (connected.unwrap_err(), migrated.unwrap_err());
    for error in [&connected, &migrated] {
        let told = told(error);
        assert!(!told.contains(PASSWORD), "{told}");
        assert!(!error.hint().is_empty());
    }
    assert_eq!(connected.code(), migrated.code());
    connected.code()
}

#[tokio::test]
async fn an_empty_database_is_prepared_once() {
    let Some((server, url)) = database("an_empty_database_is_prepared_once") else {
        return;
    };
    let stores: Vec<_> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| Store::connect(&url).unwrap()))
            .collect();
        starting
            .into_iter()
            .map(|started| started.join().unwrap())
            .collect()
    });
    let formats = server
        .psql(&url, "SELECT version FROM schema_version ORDER BY version")
        .unwrap();
    let formats: Vec<_> = formats.lines().collect();
    let all: Vec<_> = (1..=FORMAT).map(|number| number.to_string()).collect();
    assert_eq!(formats, all);
    for (number, store) in stores.iter().enumerate() {
        let name = format!("c{number}");
        submit(store, &text(&name, &[&name], 1, 1)).await.unwrap();
    }
    assert_eq!(stores[0].live_clusters().await.unwrap().len(), 4);
    assert_eq!(Store::migrate(&url, None).unwrap(), (FORMAT, FORMAT));
}

#[test]
fn a_database_of_a_later_version_is_not_touched() {
    let Some((server, url)) = database("a_database_of_a_later_version_is_not_touched") else {
        return;
    };
    drop(Store::connect(&url).unwrap());
    server
        .psql(&url, "INSERT INTO schema_version VALUES (99)")
        .unwrap();
    assert_eq!(refused(&url, None), "STORE-007");
}

#[test]
fn whoever_may_not_come_in_is_told_why() {
    let Some((server, url)) = database("whoever_may_not_come_in_is_told_why") else {
        return;
    };
    let (address, own) = (
        format!("127.0.0.1:{}", server.port()),
        url.rsplit_once('/').unwrap().1,
    );
    server
        .psql(&url, &format!("CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'; GRANT CREATE ON SCHEMA public TO guest"))
        .unwrap();
    let rules = server.directory().join("data/pg_hba.conf");
    let before = std::fs::read_to_string(&rules).unwrap();
    std::fs::write(
        &rules,
        format!("host all guest 127.0.0.1/32 scram-sha-256\n{before}"),
    )
    .unwrap();
    server.psql(&url, "SELECT pg_reload_conf()").unwrap();

    let guest = format!("postgres://guest@{address}/{own}");
    // A wrong password in the address, or handed over apart; none at all.
    assert_eq!(
        refused(
            &format!("postgres://guest:{PASSWORD}-wrong@{address}/{own}"),
            None
        ),
        "STORE-013"
    );
    assert_eq!(
        refused(&guest, Some(&format!("{PASSWORD}-wrong"))),
        "STORE-013"
    );
    assert_eq!(refused(&guest, None), "STORE-013");
    // The right one, either way.
    drop(Store::connect(&format!("postgres://guest:{PASSWORD}@{address}/{own}")).unwrap());
    let right = Secret::from_text(PASSWORD.to_owned());
    drop(Store::connect_as(&guest, Some(&right)).unwrap());
    // Somebody or something that is not there.
    assert_eq!(
        refused(
            &format!("postgres://nobody-here:{PASSWORD}@{address}/{own}"),
            None
        ),
        "STORE-013"
    );
    assert_eq!(
        refused(
            &format!("postgres://postgres:{PASSWORD}@{address}/not-there"),
            None
        ),
        "STORE-013"
    );
    // Somebody who may come in and not make tables.
    let other = server.create_database().unwrap();
    let other = other.rsplit_once('/').unwrap().1;
    assert_eq!(
        refused(
            &format!("postgres://guest@{address}/{other}"),
            Some(PASSWORD)
        ),
        "STORE-013"
    );
}

#[test]
fn an_address_that_leads_nowhere_is_said_to_be_so() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free.local_addr().unwrap();
    drop(free);
    assert_eq!(
        refused(&format!("postgres://me:{PASSWORD}@{nobody}/mine"), None),
        "STORE-010"
    );
    // Somebody takes the call and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let refused = Store::connect(&format!("postgres://me:{PASSWORD}@{address}/mine"));
    let refused = refused.map(drop).unwrap_err();
    assert_eq!(refused.code(), "STORE-010");
    assert!(!told(&refused).contains(PASSWORD));
    drop(silent);
}

#[test]
fn an_address_that_is_none_is_not_repeated() {
    for address in [
        format!("postgres://me:{PASSWORD}@127.0.0.1:port/mine"),
        format!("postgres://me:{PASSWORD}@/mine"),
        format!("postgres://me:{PASSWORD}@127.0.0.1/mine?sslmode=require"),
        format!("postgres://me:{PASSWORD}@127.0.0.1/mine?sslmode=whatever"),
        format!("postgres://me@127.0.0.1/mine?pasword={PASSWORD}"),
        format!("postgres://me@127.0.0.1/mine?connect_timeout={PASSWORD}"),
        format!("postgre://me:{PASSWORD}@127.0.0.1/mine?sslmode=disable"),
        format!("mysql://me:{PASSWORD}@127.0.0.1/mine"),
        format!("host=127.0.0.1 password={PASSWORD} user"),
        format!("{PASSWORD}=x"),
        PASSWORD.to_owned(),
        String::new(),
    ] {
        assert_eq!(refused(&address, None), "STORE-012", "{address}");
    }
}

/// The number of the lock that everybody needs who changes names, shapes and limits.
fn whole() -> i64 {
    let digest = Sha256::digest("slipway/whole");
    i64::from_be_bytes(digest[..8].try_into().unwrap())
}

/// A writer that waits for a lock and is sent away has begun a transaction already. It ends
/// that, and asks again.
#[tokio::test]
async fn a_wait_that_was_cut_short_spoils_nothing() {
    let Some((_, url)) = database("a_wait_that_was_cut_short_spoils_nothing") else {
        return;
    };
    let store = Store::connect(&url).unwrap();
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let mut running = JoinSet::new();
    running.spawn(async move { connection.await.unwrap() });
    client
        .execute("SELECT pg_advisory_lock($1)", &[&whole()])
        .await
        .unwrap();

    let mut asking = JoinSet::new();
    let asked = store.clone();
    asking.spawn(async move { submit(&asked, &text("east", &["east"], 1, 1)).await });
    let cut_short = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
                     WHERE datname = current_database() AND wait_event = 'advisory'";
    for _ in 0..3 {
        loop {
            let cancelled = client.query(cut_short, &[]).await.unwrap();
            assert!(asking.try_join_next().is_none(), "it does not give up");
            if !cancelled.is_empty() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    client
        .execute("SELECT pg_advisory_unlock($1)", &[&whole()])
        .await
        .unwrap();
    let submitted = tokio::time::timeout(LONG, asking.join_next())
        .await
        .unwrap();
    submitted.unwrap().unwrap().unwrap();
    cluster(&store, "west", 1).await;
    assert_eq!(store.sweep(at(1)).await.unwrap(), store::Swept::default());
}
