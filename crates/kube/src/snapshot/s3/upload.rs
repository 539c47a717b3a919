//! How objects come into a bucket: small ones at once, others in parts, and what nobody finished
//! is taken away again.

use super::{Element, Error, Kind, Question, Refusal, Store, xml};
use http::{Method, header};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

/// What the body that ends an upload is.
const ENDING: &str = "CompleteMultipartUpload";

/// What the answer to it is.
const ENDED: &str = "CompleteMultipartUploadResult";

impl Store {
    /// Writes an object of all that is in a file.
    pub async fn write(&self, key: &str, file: &mut File) -> Result<(), Error> {
        let size = file.metadata().await.map_err(unread)?.len();
        file.rewind().await.map_err(unread)?;
        let mut part = self.part(file).await?;
        if u64::try_from(part.len()).is_ok_and(|read| read == size) {
            let put = Question::of(Method::PUT, key).with(part);
            let put = self.asked(&put).await;
            return put.map(drop).map_err(|refusal| self.failed(&refusal));
        }
        let upload = self.begin(key).await?;
        let mut tags = Vec::new();
        let sent = async {
            while !part.is_empty() {
                let number = tags.len().saturating_add(1).to_string();
                let put = Question::of(Method::PUT, key)
                    .asking("partNumber", number)
                    .asking("uploadId", &upload)
                    .with(part);
                let answered = self.asked(&put).await;
                let (headers, _) = answered.map_err(|refusal| self.failed(&refusal))?;
                let tag = headers.get(header::ETAG);
                let tag = tag.and_then(|tag| tag.to_str().ok()).ok_or_else(|| {
                    let what = format!("{} names no part", self.bucket.endpoint);
                    Error::new(Kind::Strange, what)
                })?;
                tags.push(tag.to_owned());
                part = self.part(file).await?;
            }
            self.finish(key, &upload, &tags, size).await
        };
        let sent = sent.await;
        if sent.is_err()
            && let Err(error) = self.abort(key, &upload).await
        {
            self.cx
                .log(&format!("an upload is left for the next time: {error}"));
        }
        sent
    }

    /// Takes away what nobody finished below a prefix; answers how many that were.
    pub async fn tidy(&self, prefix: &str) -> Result<usize, Error> {
        let mut aborted = 0;
        let mut after: Option<(String, String)> = None;
        for _ in 0..super::PAGES_MAX {
            let mut question = Question::list(vec![("uploads", String::new())])
                .asking("max-uploads", self.limits.page.to_string())
                .asking("prefix", prefix);
            if let Some((key, upload)) = after {
                question = question
                    .asking("key-marker", key)
                    .asking("upload-id-marker", upload);
            }
            let list = self
                .document(&question, "ListMultipartUploadsResult")
                .await?;
            for upload in list.all("Upload") {
                let (key, id) = (upload.text("Key"), upload.text("UploadId"));
                // Stores that do not know prefixes tell of those of others, too.
                if let (Some(key), Some(id)) = (key, id)
                    && key.starts_with(prefix)
                {
                    self.abort(key, id).await?;
                    aborted += 1;
                }
            }
            let next = list
                .text("NextKeyMarker")
                .zip(list.text("NextUploadIdMarker"));
            after = next.map(|(key, upload)| (key.to_owned(), upload.to_owned()));
            if list.text("IsTruncated") != Some("true") || after.is_none() {
                return Ok(aborted);
            }
        }
        Err(self.endless())
    }

    /// The next part of a file; at its end an empty one.
    async fn part(&self, file: &mut File) -> Result<Vec<u8>, Error> {
        let most = u64::try_from(self.limits.part).unwrap_or(u64::MAX);
        let mut part = Vec::with_capacity(self.limits.part);
        let read = file.take(most).read_to_end(&mut part).await;
        read.map_err(unread)?;
        Ok(part)
    }

    async fn begin(&self, key: &str) -> Result<String, Error> {
        let question = Question::of(Method::POST, key).asking("uploads", "");
        let begun = self
            .document(&question, "InitiateMultipartUploadResult")
            .await?;
        let id = begun.text("UploadId").filter(|id| !id.is_empty());
        id.map(str::to_owned).ok_or_else(|| {
            let what = format!("{} begins an upload without a name", self.bucket.endpoint);
            Error::new(Kind::Strange, what)
        })
    }

    /// Makes an object of its parts. An answer that was lost on its way is no trouble: then the
    /// object is there.
    async fn finish(
        &self,
        key: &str,
        upload: &str,
        tags: &[String],
        size: u64,
    ) -> Result<(), Error> {
        let parts = tags.iter().zip(1_u32..).map(|(tag, number)| {
            let tag = xml::written(tag);
            format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>")
        });
        let parts: String = parts.collect();
        let body = format!(
            "<{ENDING} xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{parts}</{ENDING}>"
        );
        let question = Question::of(Method::POST, key)
            .asking("uploadId", upload)
            .with(body.into_bytes());
        let refusal = match self.asked(&question).await {
            // Stores begin to answer before they know how it ends.
            Ok((_, text)) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                if Element::read(&text).is_some_and(|document| document.name == ENDED) {
                    return Ok(());
                }
                Refusal::of_answer(http::StatusCode::INTERNAL_SERVER_ERROR, &text)
            }
            Err(refusal) => refusal,
        };
        if refusal.is("NoSuchUpload") || refusal.kind == Kind::StoreAway {
            let found = self.list(key).await?;
            let whole = |object: &super::Object| object.key == key && object.size == size;
            if found.iter().any(whole) {
                return Ok(());
            }
        }
        Err(self.failed(&refusal))
    }

    /// Takes away what was sent of an object; what is gone already is no trouble.
    async fn abort(&self, key: &str, upload: &str) -> Result<(), Error> {
        let question = Question::of(Method::DELETE, key).asking("uploadId", upload);
        match self.asked(&question).await {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.is("NoSuchUpload") => Ok(()),
            Err(refusal) => Err(self.failed(&refusal)),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by it")]
fn unread(error: std::io::Error) -> Error {
    let what = format!("could not read the sealed snapshot: {error}");
    Error::new(Kind::Unwritable, what)
}
