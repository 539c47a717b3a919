//! Fills a part from one source after the other, until it is what was promised.

use super::part::Part;
use super::source::{self, Source};
use super::trouble::{Trouble, verdict};
use super::web::{Answer, Web};
use super::{Artifact, Digest, Name, blocking, index};
use crate::error::{Error, Kind};
use reqwest::Url;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

/// How much is written at once.
const PIECE: usize = 1024 * 1024;

/// How often one answer after the other may be cut off, when each brings something.
const CUTS_MAX: usize = 16;

/// What happens while an artifact is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A source is asked.
    Asking(&'a Name, &'a Source),
    /// So many bytes are there, of so many where that is known.
    Bytes(&'a Name, u64, Option<u64>),
    /// A source could not give it, and why; the next one is asked.
    Passed(&'a Name, &'a Source, &'a str),
    /// All of it is there and is what was promised.
    Whole(&'a Name, u64),
    /// A program that fetches for us says something.
    Said(&'a str),
}

/// Is told what happens.
pub type Tell<'a> = &'a (dyn Fn(Progress<'_>) + Send + Sync);

/// Tells nobody.
pub fn quiet(_: Progress<'_>) {}

/// What must be in a file, where its name alone does not say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Promise {
    pub(super) sha256: Digest,
    pub(super) size: Option<u64>,
}

impl Promise {
    /// Refuses a length that was not promised.
    fn judge(self, found: u64) -> Result<(), Trouble> {
        match self.size {
            Some(size) if size != found => {
                Err(Trouble::size(size, self.sha256, &found.to_string()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses to read on past what was promised.
    fn bound(self, length: u64) -> Result<(), Trouble> {
        let most = self.size.unwrap_or(index::SIZE_MAX);
        if length > most {
            let found = format!("more than {most}");
            return Err(Trouble::size(most, self.sha256, &found));
        }
        Ok(())
    }
}

/// What must be in an artifact: what we know, or what the first mirror says that lists it.
pub(super) async fn promised(
    artifact: &Artifact,
    sources: &[Source],
    web: &Web,
) -> Result<Promise, Error> {
    if let Some(sha256) = artifact.sha256 {
        return Ok(Promise {
            sha256,
            size: artifact.size,
        });
    }
    let (mut met, mut others) = (Vec::new(), false);
    for source in sources {
        match source.sum(&artifact.name, web).await {
            Some(Ok(sha256)) => return Ok(Promise { sha256, size: None }),
            Some(Err(trouble)) => {
                met.push((source, trouble));
                continue;
            }
            None => {}
        }
        let trouble = match source.index(web).await {
            Ok(Some(index)) => {
                if let Some(entry) = index.get(&artifact.name) {
                    return Ok(Promise {
                        sha256: entry.sha256,
                        size: Some(entry.size),
                    });
                }
                others |= index.iter().any(|(name, _)| name.kin(&artifact.name));
                Trouble::Absent("its index does not list it".to_owned())
            }
            Ok(None) => Trouble::Absent("it has no index that vouches for it".to_owned()),
            Err(trouble) => trouble,
        };
        met.push((source, trouble));
    }
    let error = verdict(&artifact.name, &met);
    let published = met
        .iter()
        .any(|(source, _)| source.publishes(&artifact.name));
    // Who has a mirror for other versions, and does not reach who publishes them all, waits in vain.
    let away = |(source, trouble): &(&Source, Trouble)| {
        matches!(trouble, Trouble::Away(_)) && !source.publishes(&artifact.name)
    };
    let gap = error.kind == Kind::SourceAway && others && !met.iter().any(away);
    if published && (error.kind == Kind::NoArtifact || gap) {
        return Err(Error::new(Kind::NoVersion, error.what));
    }
    Err(error)
}

/// A part on its way to what was promised.
pub(super) struct Filling<'a> {
    pub(super) name: &'a Name,
    pub(super) promise: Promise,
    pub(super) web: &'a Web,
    pub(super) tell: Tell<'a>,
    /// Is elsewhere only while a thread works on it.
    pub(super) part: Option<Part>,
}

impl Filling<'_> {
    /// Asks the sources in order; answers the part when all of it is there.
    pub(super) async fn fill(mut self, sources: &[Source]) -> Result<Part, Error> {
        let mut met = Vec::new();
        if self.check().await.is_ok_and(|()| self.length() > 0) {
            // An earlier process was killed just before the end.
            return self.done();
        }
        for source in sources {
            (self.tell)(Progress::Asking(self.name, source));
            self.on(|part| {
                part.pass_on();
                Ok(())
            })
            .await
            .map_err(Trouble::into_error)?;
            let mut given = self.ask(source).await;
            if matches!(given, Err(Trouble::Wrong(_))) && self.is_inherited() {
                // What was there before may be what is wrong.
                self.on(Part::restart).await.map_err(Trouble::into_error)?;
                given = self.ask(source).await;
            }
            match given {
                Ok(()) => return self.done(),
                Err(Trouble::Ours(error)) => return Err(error),
                Err(trouble) => {
                    if matches!(trouble, Trouble::Wrong(_)) {
                        self.on(Part::restart).await.map_err(Trouble::into_error)?;
                    }
                    (self.tell)(Progress::Passed(self.name, source, trouble.why()));
                    met.push((source, trouble));
                }
            }
        }
        Err(verdict(self.name, &met))
    }

    fn done(self) -> Result<Part, Error> {
        (self.tell)(Progress::Whole(self.name, self.length()));
        self.part.ok_or_else(lost)
    }

    /// Gets all of it from one source.
    async fn ask(&mut self, source: &Source) -> Result<(), Trouble> {
        if self.promise.size.is_some_and(|size| self.length() > size) {
            self.on(Part::restart).await?;
        }
        match source {
            Source::Directory(directory) => {
                self.copy(directory.clone()).await?;
            }
            Source::Url(base) => {
                let url = source::address(base, self.name);
                self.download(&url).await?;
            }
            Source::Upstream(base) => {
                let url = source::address_upstream(base, self.name)?;
                self.download(&url).await?;
            }
        }
        self.check().await
    }

    /// Whether all of it is there and is what was promised.
    async fn check(&mut self) -> Result<(), Trouble> {
        let promise = self.promise;
        self.on(move |part| {
            promise.judge(part.length())?;
            let found = part.digest();
            if found == promise.sha256 {
                Ok(())
            } else {
                Err(Trouble::digest(promise.sha256, found))
            }
        })
        .await
    }

    async fn copy(&mut self, directory: PathBuf) -> Result<(), Trouble> {
        let path = directory.join(self.name.as_str());
        let from = self.length();
        let promise = self.promise;
        let opened = blocking(move || {
            source::must_be(&directory)?;
            let (mut file, size) = source::open(&path)?;
            promise.judge(size)?;
            let sought = file.seek(SeekFrom::Start(from));
            sought.map_err(|error| Trouble::Away(format!("cannot read it: {error}")))?;
            Ok::<_, Trouble>(file)
        });
        let mut file = opened.await??;
        loop {
            let (back, read) = blocking(move || {
                let mut piece = Vec::new();
                let most = u64::try_from(PIECE).unwrap_or(u64::MAX);
                let read = (&mut file).take(most).read_to_end(&mut piece);
                (file, read.map(|_| piece))
            })
            .await?;
            file = back;
            let piece = read.map_err(|error| Trouble::Away(format!("cannot read it: {error}")))?;
            if piece.is_empty() {
                return Ok(());
            }
            self.add(piece).await?;
        }
    }

    async fn download(&mut self, url: &Url) -> Result<(), Trouble> {
        for _ in 0..CUTS_MAX {
            let before = self.length();
            let mut answer = self.web.get(url, before).await?;
            if answer.from != before {
                self.on(Part::restart).await?;
            }
            if let Some(size) = answer.size {
                self.promise.judge(size)?;
            }
            let begun = self.length();
            match self.drink(&mut answer).await {
                // Cut off, but not in vain: go on where it ended.
                Err(Trouble::Away(_)) if self.length() > begun => {}
                ended => return ended,
            }
        }
        Err(Trouble::Away(format!(
            "it broke off {CUTS_MAX} times one after the other"
        )))
    }

    /// Writes an answer to its end, or to where it was cut off.
    async fn drink(&mut self, answer: &mut Answer) -> Result<(), Trouble> {
        let mut piece = Vec::new();
        loop {
            let next = answer.next().await;
            if let Ok(Some(bytes)) = &next {
                piece.extend_from_slice(bytes);
                if piece.len() < PIECE {
                    continue;
                }
            }
            self.add(std::mem::take(&mut piece)).await?;
            if next?.is_none() {
                return Ok(());
            }
        }
    }

    async fn add(&mut self, piece: Vec<u8>) -> Result<(), Trouble> {
        let more = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.promise.bound(self.length().saturating_add(more))?;
        self.on(move |part| part.add(&piece)).await?;
        let bytes = Progress::Bytes(self.name, self.length(), self.promise.size);
        (self.tell)(bytes);
        Ok(())
    }

    fn length(&self) -> u64 {
        self.part.as_ref().map_or(0, Part::length)
    }

    fn is_inherited(&self) -> bool {
        self.part.as_ref().is_some_and(Part::is_inherited)
    }

    /// Works on the part in a thread for files. When we are dropped meanwhile, the thread ends
    /// what it does, and lets go of the part.
    async fn on<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Part) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Trouble> {
        let mut part = self.part.take().ok_or_else(lost)?;
        let (part, done) = blocking(move || {
            let done = work(&mut part);
            (part, done)
        })
        .await?;
        self.part = Some(part);
        done
    }
}

fn lost() -> Error {
    Error::new(Kind::CacheBroken, "the part of a file was lost")
}
