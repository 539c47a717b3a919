//! Seals a stream in chunks, and opens it again: whatever is changed, moved, cut off or added is
//! noticed before a byte of it is believed.
//!
//! The construction is STREAM with XChaCha20-Poly1305: the nonce of a chunk is a random beginning,
//! its number, and whether it is the last one. A file begins with [`MAGIC`], the id of its key and
//! that beginning, which every chunk is bound to, and to the cluster.

use super::error::{Error, Kind};
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use model::id::ClusterId;
use model::secret::Secret;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use zeroize::Zeroizing;

/// What every file begins with.
const MAGIC: &[u8; 24] = b"slipway etcd snapshot 1\n";

/// How many bytes of a stream are sealed at a time.
const CHUNK: usize = 64 * 1024;

/// How many bytes the seal of a chunk has.
const TAG: usize = 16;

const KEY: usize = 32;
const KEY_ID: usize = 16;
const BEGINNING: usize = 19;
const HEAD: usize = MAGIC.len() + KEY_ID + BEGINNING;

/// A key, ready to be used for one cluster.
pub struct Sealer {
    cipher: XChaCha20Poly1305,
    id: [u8; KEY_ID],
    cluster: ClusterId,
}

/// A new key.
pub fn new_key() -> Result<Secret, Error> {
    let mut key = Zeroizing::new(vec![0; KEY]);
    random(&mut key)?;
    Ok(Secret::from(key.to_vec()))
}

impl Sealer {
    /// Takes a key that [`new_key`] has made.
    pub fn new(key: &Secret, cluster: ClusterId) -> Result<Self, Error> {
        let cipher = XChaCha20Poly1305::new_from_slice(key.expose());
        let cipher = cipher.map_err(|_| {
            let what = "what is kept as the key of snapshots is none";
            Error::new(Kind::WrongKey, what)
        })?;
        let mut hash = Sha256::new();
        hash.update(b"slipway snapshot key");
        hash.update(key.expose());
        let digest = hash.finalize();
        let mut id = [0; KEY_ID];
        id.copy_from_slice(&digest[..KEY_ID]);
        Ok(Self {
            cipher,
            id,
            cluster,
        })
    }

    /// Seals all that comes.
    pub async fn seal(
        &self,
        mut from: impl AsyncRead + Unpin + Send,
        mut into: impl AsyncWrite + Unpin + Send,
    ) -> Result<(), Error> {
        let mut beginning = [0; BEGINNING];
        random(&mut beginning)?;
        let head = self.head(&beginning);
        into.write_all(&head).await.map_err(unwritten)?;
        let bound = self.bound(&head);
        let seal = |nonce: &XNonce, msg: &[u8]| {
            let sealed = self.cipher.encrypt(nonce, Payload { msg, aad: &bound });
            sealed.map_err(|_| Error::new(Kind::Damaged, "a chunk is too large"))
        };
        let chunks = Chunks {
            size: CHUNK,
            beginning,
            unread: uncome,
        };
        chunks.change(&mut from, &mut into, seal).await
    }

    /// Opens all that comes. What was written when it ends with an error is worth nothing.
    pub async fn open(
        &self,
        mut from: impl AsyncRead + Unpin + Send,
        mut into: impl AsyncWrite + Unpin + Send,
    ) -> Result<(), Error> {
        let mut head = [0; HEAD];
        if fill(&mut from, &mut head).await.map_err(unread)? < HEAD {
            return Err(damaged("it is too short"));
        }
        let beginning = self.recognised(&head)?;
        let bound = self.bound(&head);
        let open = |nonce: &XNonce, msg: &[u8]| {
            let opened = self.cipher.decrypt(nonce, Payload { msg, aad: &bound });
            opened.map_err(|_| damaged("a part of it was changed or is missing"))
        };
        let chunks = Chunks {
            size: CHUNK + TAG,
            beginning,
            unread,
        };
        chunks.change(&mut from, &mut into, open).await
    }

    /// Whether a file that begins so was sealed with this key.
    pub async fn knows(&self, mut from: impl AsyncRead + Unpin + Send) -> Result<bool, Error> {
        let mut head = [0; HEAD];
        match fill(&mut from, &mut head).await {
            Ok(filled) => Ok(filled == HEAD && self.recognised(&head).is_ok()),
            Err(error) => Err(unread(error)),
        }
    }

    fn head(&self, beginning: &[u8; BEGINNING]) -> Vec<u8> {
        let mut head = Vec::with_capacity(HEAD);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&self.id);
        head.extend_from_slice(beginning);
        head
    }

    /// The beginning of the nonces of a file with this head.
    fn recognised(&self, head: &[u8; HEAD]) -> Result<[u8; BEGINNING], Error> {
        let (magic, rest) = head.split_at(MAGIC.len());
        let (id, beginning) = rest.split_at(KEY_ID);
        if magic != MAGIC {
            return Err(damaged("it does not begin like a snapshot"));
        }
        if id != self.id {
            let what = "the snapshot was sealed with another key than that of the cluster";
            return Err(Error::new(Kind::WrongKey, what));
        }
        let mut found = [0; BEGINNING];
        found.copy_from_slice(beginning);
        Ok(found)
    }

    /// What every chunk is bound to besides its place.
    fn bound(&self, head: &[u8]) -> Vec<u8> {
        [head, self.cluster.to_string().as_bytes()].concat()
    }
}

/// A stream that is changed chunk by chunk.
struct Chunks {
    size: usize,
    beginning: [u8; BEGINNING],
    /// What it means that no more can be read.
    unread: fn(std::io::Error) -> Error,
}

impl Chunks {
    async fn change(
        &self,
        from: &mut (impl AsyncRead + Unpin + Send),
        into: &mut (impl AsyncWrite + Unpin + Send),
        change: impl Fn(&XNonce, &[u8]) -> Result<Vec<u8>, Error> + Send + Sync,
    ) -> Result<(), Error> {
        let mut chunk = Zeroizing::new(vec![0; self.size]);
        let mut ahead = Zeroizing::new(vec![0; self.size]);
        let mut filled = fill(from, &mut chunk).await.map_err(self.unread)?;
        let mut number = 0;
        loop {
            // Only who looks ahead knows which chunk is the last.
            let next = fill(from, &mut ahead).await.map_err(self.unread)?;
            let nonce = nonce(&self.beginning, number, next == 0);
            let changed = Zeroizing::new(change(&nonce, &chunk[..filled])?);
            into.write_all(&changed).await.map_err(unwritten)?;
            if next == 0 {
                break;
            }
            number = following(number)?;
            std::mem::swap(&mut chunk, &mut ahead);
            filled = next;
        }
        into.flush().await.map_err(unwritten)
    }
}

fn nonce(beginning: &[u8; BEGINNING], number: u32, last: bool) -> XNonce {
    let mut nonce = XNonce::default();
    nonce[..BEGINNING].copy_from_slice(beginning);
    nonce[BEGINNING..BEGINNING + 4].copy_from_slice(&number.to_be_bytes());
    nonce[BEGINNING + 4] = u8::from(last);
    nonce
}

fn following(number: u32) -> Result<u32, Error> {
    let next = number.checked_add(1);
    next.ok_or_else(|| {
        Error::new(
            Kind::Unwritable,
            "the snapshot has more chunks than can be counted",
        )
    })
}

/// Reads until the chunk is full or nothing more comes; answers how much is in it.
async fn fill(from: &mut (impl AsyncRead + Unpin), chunk: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < chunk.len() {
        match from.read(&mut chunk[filled..]).await? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

fn random(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|error| {
        let what = format!("could not draw a random number: {error}");
        Error::new(Kind::Silent, what)
    })
}

fn damaged(how: &str) -> Error {
    Error::new(Kind::Damaged, format!("could not open the snapshot: {how}"))
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
fn unwritten(error: std::io::Error) -> Error {
    Error::new(
        Kind::Unwritable,
        format!("could not write the snapshot: {error}"),
    )
}

/// Whoever keeps a snapshot may know better what is wrong.
fn unread(error: std::io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(known) => known,
        Err(error) => Error::new(
            Kind::Damaged,
            format!("could not read the snapshot: {error}"),
        ),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
fn uncome(error: std::io::Error) -> Error {
    Error::new(Kind::Silent, format!("the snapshot did not come: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::Origin;

    fn cluster(name: &str) -> ClusterId {
        ClusterId::derive(Origin {
            parent: "default",
            name,
            ordinal: 0,
            incarnation: 0,
        })
    }

    fn sealer(key: u8, name: &str) -> Sealer {
        Sealer::new(&Secret::from(vec![key; KEY]), cluster(name)).unwrap()
    }

    async fn sealed(plain: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::new();
        sealer(1, "edge").seal(plain, &mut sealed).await.unwrap();
        sealed
    }

    async fn opened(by: &Sealer, sealed: &[u8]) -> Result<Vec<u8>, Kind> {
        let mut opened = Vec::new();
        let ended = by.open(sealed, &mut opened).await;
        ended.map(|()| opened).map_err(|error| error.kind)
    }

    #[tokio::test]
    async fn what_was_sealed_comes_back_whatever_its_size() {
        for size in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 7] {
            let plain: Vec<u8> = (0..size)
                .map(|at| u8::try_from(at % 251).unwrap())
                .collect();
            let sealed = sealed(&plain).await;
            let chunks = size.div_ceil(CHUNK).max(1);
            assert_eq!(sealed.len(), HEAD + size + chunks * TAG);
            assert_eq!(opened(&sealer(1, "edge"), &sealed).await.unwrap(), plain);
            assert_eq!(sealer(1, "edge").knows(&sealed[..]).await, Ok(true));
        }
    }

    #[tokio::test]
    async fn the_same_is_never_sealed_alike_and_shows_nothing() {
        let plain = b"a secret of the cluster";
        let (one, other) = (sealed(plain).await, sealed(plain).await);
        assert_ne!(one, other);
        assert!(!one.windows(6).any(|part| part == b"secret"));
    }

    #[tokio::test]
    async fn whatever_is_changed_is_noticed() {
        let plain = vec![7; 2 * CHUNK + 5];
        let whole = sealed(&plain).await;
        let sealer = sealer(1, "edge");
        let flip = |at: usize| {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            changed
        };
        let first = HEAD..HEAD + CHUNK + TAG;
        let second = first.end..first.end + CHUNK + TAG;
        let swapped = [
            &whole[..HEAD],
            &whole[second.clone()],
            &whole[first.clone()],
            &whole[second.end..],
        ];
        let without = [&whole[..HEAD], &whole[second.clone()], &whole[second.end..]];
        let longer = [&whole[..], b"x"];
        let cases = [
            (flip(0), Kind::Damaged),
            (flip(MAGIC.len()), Kind::WrongKey),
            (flip(HEAD - 1), Kind::Damaged),
            (flip(HEAD + 9), Kind::Damaged),
            (flip(whole.len() - 1), Kind::Damaged),
            (whole[..whole.len() - 1].to_vec(), Kind::Damaged),
            (whole[..second.end].to_vec(), Kind::Damaged),
            (whole[..HEAD].to_vec(), Kind::Damaged),
            (whole[..HEAD - 1].to_vec(), Kind::Damaged),
            (swapped.concat(), Kind::Damaged),
            (without.concat(), Kind::Damaged),
            (longer.concat(), Kind::Damaged),
        ];
        for (at, (changed, kind)) in cases.into_iter().enumerate() {
            assert_eq!(opened(&sealer, &changed).await, Err(kind), "case {at}");
        }
    }

    #[tokio::test]
    async fn another_key_and_another_cluster_open_nothing() {
        let whole = sealed(b"secret").await;
        let other = opened(&sealer(2, "edge"), &whole).await;
        assert_eq!(other, Err(Kind::WrongKey));
        assert_eq!(sealer(2, "edge").knows(&whole[..]).await, Ok(false));
        assert_eq!(sealer(1, "edge").knows(&whole[..9]).await, Ok(false));
        let moved = opened(&sealer(1, "west"), &whole).await;
        assert_eq!(moved, Err(Kind::Damaged));
        let no_key = Sealer::new(&Secret::from(vec![1; 31]), cluster("edge"));
        assert_eq!(no_key.err().map(|error| error.kind), Some(Kind::WrongKey));
        assert_eq!(new_key().unwrap().expose().len(), KEY);
    }
}
