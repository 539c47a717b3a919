//! What becomes of snapshots when a store, or the way to it, is in trouble.

use crate::site::{self, PART, Site, bytes, id};
use driver::Clock;
use kube::snapshot::{Error, Kind};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// How a store as it is now refuses to be listed.
async fn refused(site: &Site) -> Error {
    site.shelf(None).list().await.unwrap_err()
}

#[tokio::test]
async fn who_must_act_is_told() {
    let Some(mut site) = Site::new("who_must_act_is_told") else {
        return;
    };
    let friend = site.user.clone();
    site.user.secret_key = "not-the-key".to_owned();
    let wrong = refused(&site).await;
    assert_eq!(wrong.kind, Kind::Unsigned, "{wrong}");
    assert!(!wrong.to_string().contains("not-the-key"));
    site.user.access_key = "AKIAUNKNOWN".to_owned();
    assert_eq!(refused(&site).await.kind, Kind::StoreRefuses);
    site.user = site.store.stranger.clone();
    assert_eq!(refused(&site).await.kind, Kind::StoreRefuses);
    let begun = site.shelf(None).begin(site::task(1)).await.unwrap_err();
    assert_eq!(begun.kind, Kind::StoreRefuses);
    site.user.access_key = "two words".to_owned();
    let unusable = site.client().unwrap_err();
    assert_eq!(unusable.kind, Kind::StoreRefuses);
    site.user = friend;
    site.bucket.bucket = "another".to_owned();
    assert_eq!(refused(&site).await.kind, Kind::NoBucket);
    assert_eq!(
        site.lines.0.lock().unwrap().len(),
        0,
        "nobody was asked twice"
    );
}

#[tokio::test]
async fn nobody_who_does_not_speak_s3_is_believed() {
    let Some(mut site) = Site::new("nobody_who_does_not_speak_s3_is_believed") else {
        return;
    };
    let mut tasks = JoinSet::new();
    for (answer, kind) in [
        (
            "200 OK\r\ncontent-length: 9\r\n\r\nit works!",
            Kind::Strange,
        ),
        ("404 Not Found\r\ncontent-length: 0\r\n\r\n", Kind::Strange),
        ("503 Busy\r\ncontent-length: 0\r\n\r\n", Kind::StoreAway),
        (
            "200 OK\r\ncontent-length: 99\r\n\r\n<ListBu",
            Kind::StoreAway,
        ),
        (
            "403 Forbidden\r\ncontent-length: 55\r\n\r\n<Error><Code>RequestTimeTooSkewed</Code><A></A></Error>",
            Kind::Unsigned,
        ),
    ] {
        site.bucket.endpoint = answering(&mut tasks, answer).await;
        let error = refused(&site).await;
        assert_eq!(error.kind, kind, "{answer:?}: {error}");
    }
}

#[tokio::test]
async fn a_store_that_is_away_is_asked_again_and_then_told_of() {
    let Some(mut site) = Site::new("a_store_that_is_away_is_asked_again_and_then_told_of") else {
        return;
    };
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = port.local_addr().unwrap();
    drop(port);
    site.bucket.endpoint = format!("http://{nobody}");
    let away = refused(&site).await;
    assert_eq!(away.kind, Kind::StoreAway, "{away}");
    let lines = site.lines.0.lock().unwrap().clone();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("asks http://127.0.0.1:"), "{lines:?}");
    site.cancel.cancel();
    let stopped = refused(&site).await;
    assert!(stopped.what.ends_with("stopped as told"), "{stopped}");
}

/// A way that breaks in the middle, as when the process is killed: what was sent stays in the
/// store until the next attempt, which ends in the same world as if nothing had happened.
#[tokio::test]
async fn what_was_cut_off_is_taken_away_by_the_next() {
    let Some(mut site) = Site::new("what_was_cut_off_is_taken_away_by_the_next") else {
        return;
    };
    let mut tasks = JoinSet::new();
    let direct = site.bucket.endpoint.clone();
    let way = Way::to(&direct);
    site.bucket.endpoint = way.open(&mut tasks).await;
    // One part comes through, and the second does not.
    way.left
        .store(u64::try_from(PART + PART / 2).unwrap(), Ordering::SeqCst);
    let large = bytes(3 * PART);
    let cut = site::put(&site.shelf(None), 1, &large, None).await;
    assert_eq!(cut.unwrap_err().kind, Kind::StoreAway);
    let uploads = site.store.uploads().unwrap();
    assert_eq!((uploads.len(), uploads[0].1), (1, 1), "{uploads:?}");
    // What is not ours is left alone.
    site.bucket.endpoint = direct;
    site::put(&site.shelf(Some("other")), 1, b"other", None)
        .await
        .unwrap();
    assert_eq!(site.store.uploads().unwrap(), uploads);
    let shelf = site.shelf(None);
    assert_eq!(shelf.list().await.unwrap(), []);
    site::put(&shelf, 1, &large, None).await.unwrap();
    assert_eq!(site.store.uploads().unwrap(), []);
    let kept = shelf.find(&id(1)).await.unwrap();
    assert_eq!(kept.snapshot.size, u64::try_from(large.len()).unwrap());
}

#[tokio::test]
async fn an_upload_that_is_refused_leaves_nothing() {
    let Some(mut site) = Site::new("an_upload_that_is_refused_leaves_nothing") else {
        return;
    };
    // Stores take no such small parts.
    site.limits.part = 1024;
    let refused = site::put(&site.shelf(None), 1, &bytes(3_000), None).await;
    assert_eq!(refused.unwrap_err().kind, Kind::Strange);
    assert_eq!(site.store.uploads().unwrap(), []);
    assert_eq!(site.store.objects().unwrap(), []);
}

#[tokio::test]
async fn one_that_breaks_off_while_it_is_read_is_not_damaged() {
    let Some(mut site) = Site::new("one_that_breaks_off_while_it_is_read_is_not_damaged") else {
        return;
    };
    let key = kube::snapshot::seal::new_key().unwrap();
    let sealer = kube::snapshot::seal::Sealer::new(&key, site.cluster).unwrap();
    let mut sealed = Vec::new();
    let plain = bytes(PART);
    sealer.seal(&plain[..], &mut sealed).await.unwrap();
    site::put(&site.shelf(None), 1, &sealed, None)
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    let way = Way::to(&site.bucket.endpoint);
    site.bucket.endpoint = way.open(&mut tasks).await;
    let shelf = site.shelf(None);
    let kept = shelf.find(&id(1)).await.unwrap();
    way.left.store(1_000_000, Ordering::SeqCst);
    let open = shelf.open(&kept).await.unwrap();
    let broken = sealer.open(open, tokio::io::sink()).await.unwrap_err();
    assert_eq!(broken.kind, Kind::StoreAway, "{broken}");
}

#[tokio::test]
async fn a_store_is_believed_if_somebody_vouches_for_it() {
    let Some(mut site) = Site::new("a_store_is_believed_if_somebody_vouches_for_it") else {
        return;
    };
    let issuer = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (ours, other) = (issuer("ours"), issuer("other"));
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let paper = params.signed_by(&key, &ours).unwrap();
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(
            vec![paper.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    let mut way = Way::to(&site.bucket.endpoint);
    way.tls = Some(TlsAcceptor::from(Arc::new(config)));
    let mut tasks = JoinSet::new();
    let open = way.open(&mut tasks).await;
    site.bucket.endpoint = open.replace("http://", "https://");
    let unknown = refused(&site).await;
    assert_eq!(unknown.kind, Kind::Untrusted, "{unknown}");
    site.bucket.ca = Some(other.pem());
    assert_eq!(refused(&site).await.kind, Kind::Untrusted);
    site.bucket.ca = Some("-----BEGIN CERTIFICATE-----\nnone\n".to_owned());
    assert_eq!(site.client().unwrap_err().kind, Kind::Untrusted);
    site.bucket.ca = Some(ours.pem());
    site::put(&site.shelf(None), 1, b"sealed", None)
        .await
        .unwrap();
    assert_eq!(site.shelf(None).list().await.unwrap().len(), 1);
    // Who speaks in the open where TLS is expected is not believed either.
    site.bucket.endpoint = site.store.endpoint.replace("http://", "https://");
    let open = refused(&site).await;
    assert_eq!(open.kind, Kind::Untrusted, "{open}");
}

#[tokio::test]
async fn the_clock_of_the_context_signs() {
    let Some(mut site) = Site::new("the_clock_of_the_context_signs") else {
        return;
    };
    // A signature is made of the moment that is sent with it, whatever that is.
    site.clock = Clock::starting_at(model::time::Timestamp::from_millis(1_767_225_600_000));
    assert_eq!(site.shelf(None).list().await.unwrap(), []);
}

/// Somebody who says the same to everybody.
async fn answering(tasks: &mut JoinSet<()>, answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 4096];
            drop(stream.read(&mut asked).await);
            let said = format!("HTTP/1.1 {answer}");
            drop(stream.write_all(said.as_bytes()).await);
        }
    });
    format!("http://{at}")
}

/// A way to a store that lets so many bytes through, and then none.
struct Way {
    to: String,
    left: Arc<AtomicU64>,
    tls: Option<TlsAcceptor>,
}

impl Way {
    fn to(endpoint: &str) -> Self {
        Self {
            to: endpoint.strip_prefix("http://").unwrap().to_owned(),
            left: Arc::new(AtomicU64::new(u64::MAX)),
            tls: None,
        }
    }

    async fn open(&self, tasks: &mut JoinSet<()>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (to, left, tls) = (self.to.clone(), self.left.clone(), self.tls.clone());
        tasks.spawn(async move {
            let mut streams = JoinSet::new();
            loop {
                let (near, _) = listener.accept().await.unwrap();
                if left.load(Ordering::SeqCst) == 0 {
                    continue;
                }
                let far = TcpStream::connect(&to).await.unwrap();
                let (left, tls) = (left.clone(), tls.clone());
                streams.spawn(async move {
                    match tls {
                        None => carry(near, far, &left).await,
                        // Who does not believe us hangs up.
                        Some(tls) => {
                            if let Ok(near) = tls.accept(near).await {
                                carry(near, far, &left).await;
                            }
                        }
                    }
                });
            }
        });
        format!("http://{at}")
    }
}

/// Carries bytes both ways until one side ends, or no more may pass.
async fn carry(near: impl AsyncRead + AsyncWrite, far: TcpStream, left: &AtomicU64) {
    let (mut near_in, mut near_out) = tokio::io::split(near);
    let (mut far_in, mut far_out) = far.into_split();
    tokio::select! {
        () = through(&mut near_in, &mut far_out, left) => {}
        () = through(&mut far_in, &mut near_out, left) => {}
    }
}

async fn through(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    left: &AtomicU64,
) {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(read) = from.read(&mut piece).await {
        let count = u64::try_from(read).unwrap();
        let passes = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            Some(left.saturating_sub(count))
        });
        if read == 0 || passes.unwrap() < count || to.write_all(&piece[..read]).await.is_err() {
            return;
        }
    }
}
