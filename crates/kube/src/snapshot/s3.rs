//! A bucket of a store that speaks S3: objects are listed, written, read and removed.
//!
//! Addresses have the bucket in their path, which every store understands. Each request is signed,
//! bounded in time, and asked again where only the way to the store was in trouble: all of them
//! may be asked twice.

mod answer;
mod sign;
mod upload;
mod xml;

use super::error::{Error, Kind};
use answer::Refusal;
use bytes::Bytes;
use driver::Context;
use futures_util::stream::{self, Stream};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube_client::client::ConfigExt as _;
use model::secret::Secret;
use model::snapshot::Bucket;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use sign::{Signed, Signer};
use std::time::Duration;
use tower::{BoxError, ServiceExt as _};
use xml::Element;

/// The bytes of an object on their way here.
pub type Pieces = std::pin::Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>;

/// An answer whose body is on its way.
type Answer = Response<hyper::body::Incoming>;

/// Carries requests to a store, and its answers back.
type Carrier = tower::util::BoxCloneSyncService<Request<Full<Bytes>>, Answer, BoxError>;

/// How long a connection is kept that nobody uses: less than stores keep it.
const IDLE_MAX: Duration = Duration::from_secs(15);

/// How large an answer is that is no object.
const ANSWER_MAX: usize = 8 * 1024 * 1024;

/// How many pages a list has, at most.
const PAGES_MAX: usize = 1_000;

/// How long we wait, how often we ask, and how much is sent at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For a connection, with its handshake.
    pub connect: Duration,
    /// For one answer, with all that is sent for it.
    pub answer: Duration,
    /// For the next piece of an object.
    pub silence: Duration,
    /// How often one question is asked.
    pub attempts: u32,
    /// Before it is asked for the second time; then twice as long, and so on.
    pub pause: Duration,
    /// How many bytes one part of an object has. Stores take none below 5 MiB.
    pub part: usize,
    /// How many objects one list has, at most.
    pub page: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_mins(2),
            silence: Duration::from_secs(30),
            attempts: 4,
            pause: Duration::from_millis(500),
            part: 8 * 1024 * 1024,
            page: 1_000,
        }
    }
}

/// What opens a bucket.
pub struct Keys {
    /// Who we are.
    pub access: Secret,
    /// What requests are signed with.
    pub secret: Secret,
}

/// A bucket, and the right to ask for what is in it.
pub struct Store {
    bucket: Bucket,
    host: String,
    access: String,
    secret: Secret,
    carrier: Carrier,
    limits: Limits,
    cx: Context,
}

/// An object as lists have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its whole name.
    pub key: String,
    /// How many bytes it has.
    pub size: u64,
}

/// A question to a store.
struct Question {
    method: Method,
    /// The object that it is about; none where it is about the bucket.
    key: Option<String>,
    query: Vec<(&'static str, String)>,
    body: Bytes,
}

impl Question {
    fn of(method: Method, key: &str) -> Self {
        Self {
            method,
            key: Some(key.to_owned()),
            query: Vec::new(),
            body: Bytes::new(),
        }
    }

    fn list(query: Vec<(&'static str, String)>) -> Self {
        Self {
            method: Method::GET,
            key: None,
            query,
            body: Bytes::new(),
        }
    }

    fn asking(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    fn with(mut self, body: Vec<u8>) -> Self {
        self.body = body.into();
        self
    }
}

impl Store {
    /// Prepares to ask; nothing is asked yet.
    pub fn new(bucket: &Bucket, keys: Keys, limits: Limits, cx: &Context) -> Result<Self, Error> {
        let Keys { access, secret } = keys;
        let unusable = |which: &str| {
            let what = format!("{which} of the store of snapshots is no line of text");
            Error::new(Kind::StoreRefuses, what)
        };
        // People's files end with a line break; no key does.
        let access = trimmed(&access).ok_or_else(|| unusable("the access key"))?;
        let secret = trimmed(&secret).ok_or_else(|| unusable("the secret key"))?;
        let (scheme, host) = bucket.endpoint.split_once("://").unwrap_or_default();
        let usual = if scheme == "https" { ":443" } else { ":80" };
        let host = host.strip_suffix(usual).unwrap_or(host).to_owned();
        Ok(Self {
            carrier: carrier(bucket, limits)?,
            bucket: bucket.clone(),
            host,
            access,
            secret: Secret::from_text(secret),
            limits,
            cx: cx.clone(),
        })
    }

    /// All objects whose names begin so.
    pub async fn list(&self, prefix: &str) -> Result<Vec<Object>, Error> {
        let mut objects = Vec::new();
        let mut token: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut question = Question::list(vec![("list-type", "2".to_owned())])
                .asking("max-keys", self.limits.page.to_string())
                .asking("prefix", prefix);
            if let Some(token) = token {
                question = question.asking("continuation-token", token);
            }
            let list = self.document(&question, "ListBucketResult").await?;
            objects.extend(list.all("Contents").filter_map(|object| {
                Some(Object {
                    key: object.text("Key")?.to_owned(),
                    size: object.text("Size")?.parse().ok()?,
                })
            }));
            token = list.text("NextContinuationToken").map(str::to_owned);
            if list.text("IsTruncated") != Some("true") || token.is_none() {
                return Ok(objects);
            }
        }
        Err(self.endless())
    }

    /// Removes an object; one that is gone already is no trouble.
    pub async fn remove(&self, key: &str) -> Result<(), Error> {
        match self.asked(&Question::of(Method::DELETE, key)).await {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.is("NoSuchKey") => Ok(()),
            Err(refusal) => Err(self.failed(&refusal)),
        }
    }

    /// The bytes of an object, piece by piece.
    pub async fn read(&self, key: &str) -> Result<Pieces, Error> {
        let question = Question::of(Method::GET, key);
        let response = self.begun(&question).await;
        let response = response.map_err(|refusal| self.failed(&refusal))?;
        let (silence, cx) = (self.limits.silence, self.cx.clone());
        let endpoint = self.bucket.endpoint.clone();
        let broken = move |why: &str| {
            let what = format!("{endpoint} broke off in the middle of a snapshot: {why}");
            std::io::Error::other(Error::new(Kind::StoreAway, what))
        };
        let body = response.into_body();
        let pieces = stream::try_unfold(
            (body, cx, broken),
            move |(mut body, cx, broken)| async move {
                loop {
                    let next = tokio::select! {
                        biased;
                        () = cx.cancelled() => return Err(broken("stopped as told")),
                        next = tokio::time::timeout(silence, body.frame()) => next,
                    };
                    match next {
                        Err(_) => return Err(broken("it says nothing more")),
                        Ok(None) => return Ok(None),
                        Ok(Some(Err(error))) => return Err(broken(&answer::causes(&error))),
                        Ok(Some(Ok(frame))) => {
                            if let Ok(data) = frame.into_data() {
                                return Ok(Some((data, (body, cx, broken))));
                            }
                        }
                    }
                }
            },
        );
        Ok(Box::pin(pieces))
    }

    /// Asks until the store has answered; the answer is a document of this name.
    async fn document(&self, question: &Question, name: &str) -> Result<Element, Error> {
        let (_, text) = self
            .asked(question)
            .await
            .map_err(|refusal| self.failed(&refusal))?;
        let document = String::from_utf8(text).ok();
        let document = document.and_then(|text| Element::read(&text));
        let document = document.filter(|document| document.name == name);
        document.ok_or_else(|| {
            let what = format!("{} answers no {name}", self.bucket.endpoint);
            Error::new(Kind::Strange, what)
        })
    }

    /// Asks until the store has answered, as often as we may; answers headers and the whole body.
    async fn asked(&self, question: &Question) -> Result<(http::HeaderMap, Vec<u8>), Refusal> {
        let asking = async {
            let mut asked = 1;
            loop {
                let once = async {
                    let response = self.sent(question).await?;
                    let headers = response.headers().clone();
                    Ok((headers, within(self.limits.answer, whole(response)).await?))
                };
                match once.await {
                    Err(refusal) => self.again(refusal, &mut asked).await?,
                    Ok(answered) => return Ok(answered),
                }
            }
        };
        self.unless_stopped(asking).await
    }

    /// Asks until the store begins to answer.
    async fn begun(&self, question: &Question) -> Result<Answer, Refusal> {
        let asking = async {
            let mut asked = 1;
            loop {
                match self.sent(question).await {
                    Err(refusal) => self.again(refusal, &mut asked).await?,
                    Ok(response) => return Ok(response),
                }
            }
        };
        self.unless_stopped(asking).await
    }

    /// Whether to ask again, after a moment: where only the way was in trouble, and not too often.
    async fn again(&self, refusal: Refusal, asked: &mut u32) -> Result<(), Refusal> {
        if refusal.kind != Kind::StoreAway || *asked >= self.limits.attempts {
            return Err(refusal);
        }
        let (what, endpoint) = (&refusal.what, &self.bucket.endpoint);
        self.cx.log(&format!("asks {endpoint} again: {what}"));
        let longer = 2_u32.saturating_pow(asked.saturating_sub(1));
        tokio::time::sleep(self.limits.pause.saturating_mul(longer)).await;
        *asked += 1;
        Ok(())
    }

    async fn unless_stopped<T>(
        &self,
        asking: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        tokio::select! {
            biased;
            () = self.cx.cancelled() => Err(Refusal::away("stopped as told")),
            answered = asking => answered,
        }
    }

    /// Asks once; what is no success is a refusal.
    async fn sent(&self, question: &Question) -> Result<Answer, Refusal> {
        let request = self.request(question)?;
        let sending = self.carrier.clone().oneshot(request);
        let sending = async {
            sending
                .await
                .map_err(|error| Refusal::of_transport(&*error))
        };
        let response = within(self.limits.answer, sending).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = within(self.limits.answer, whole(response)).await;
        // Who refuses without a word has refused all the same.
        let text = text.unwrap_or_default();
        Err(Refusal::of_answer(status, &String::from_utf8_lossy(&text)))
    }

    /// A question, signed.
    fn request(&self, question: &Question) -> Result<Request<Full<Bytes>>, Refusal> {
        let Question {
            method,
            key,
            query,
            body,
        } = question;
        let bucket = &self.bucket.bucket;
        let path = key.as_ref().map_or_else(
            || format!("/{bucket}"),
            |key| format!("/{bucket}/{}", sign::path(key)),
        );
        let query: Vec<_> = query
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let query = sign::query(&query);
        let (at, payload) = (sign::moment(self.cx.now()), sign::digest(body));
        let signer = Signer {
            access_key: &self.access,
            secret_key: &self.secret,
            region: &self.bucket.region,
            service: "s3",
        };
        let headers = [
            ("host", self.host.as_str()),
            ("x-amz-content-sha256", payload.as_str()),
            ("x-amz-date", at.as_str()),
        ];
        let proof = signer.authorization(&Signed {
            method: method.as_str(),
            path: &path,
            query: &query,
            headers: &headers,
            payload: &payload,
            at: &at,
        });
        let unsendable = || Refusal::new(Kind::StoreRefuses, "its keys cannot be sent");
        let proof = proof.ok_or_else(unsendable)?;
        let mut proof = HeaderValue::from_str(&proof).map_err(|_| unsendable())?;
        proof.set_sensitive(true);
        let mut address = format!("{}{path}", self.bucket.endpoint);
        if !query.is_empty() {
            address = format!("{address}?{query}");
        }
        let mut request = Request::builder()
            .method(method)
            .uri(address)
            .header(header::AUTHORIZATION, proof)
            .header(header::CONTENT_LENGTH, body.len());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body.clone()));
        request.map_err(|_| Refusal::new(Kind::Strange, "its address cannot be asked"))
    }

    /// Where it is, in words.
    pub fn told(&self) -> String {
        let Bucket {
            endpoint, bucket, ..
        } = &self.bucket;
        format!("bucket {bucket} at {endpoint}")
    }

    /// Nobody keeps so many snapshots of one cluster.
    fn endless(&self) -> Error {
        let what = format!("a list of {} does not end", self.told());
        Error::new(Kind::Strange, what)
    }

    /// A refusal, with whom it is of.
    fn failed(&self, refusal: &Refusal) -> Error {
        let what = format!("could not use {}: {}", self.told(), refusal.what);
        Error::new(refusal.kind, what)
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Store").field(&self.bucket).finish()
    }
}

/// One line of text, without what stands around it.
fn trimmed(secret: &Secret) -> Option<String> {
    let text = secret.expose_text()?.trim();
    let usable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    usable.then(|| text.to_owned())
}

/// The whole body of an answer that is no object.
async fn whole(response: Answer) -> Result<Vec<u8>, Refusal> {
    let body = Limited::new(response.into_body(), ANSWER_MAX)
        .collect()
        .await;
    let body = body.map_err(|error| Refusal::of_transport(&*error))?;
    Ok(body.to_bytes().to_vec())
}

/// Waits no longer than we may.
async fn within<T>(
    limit: Duration,
    asking: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Refusal> {
    let silent = |_| Refusal::away(&format!("no answer within {} s", limit.as_secs()));
    tokio::time::timeout(limit, asking).await.map_err(silent)?
}

/// What carries requests to a store, and believes those who should vouch for it.
fn carrier(bucket: &Bucket, limits: Limits) -> Result<Carrier, Error> {
    let untrusted = |why: &str| {
        let what = format!("could not prepare to ask {}: {why}", bucket.endpoint);
        Error::new(Kind::Untrusted, what)
    };
    let address = bucket.endpoint.parse::<Uri>();
    let address = address.map_err(|_| untrusted("that is no address"))?;
    // Nobody vouches for a store that is asked in the open.
    let open = address.scheme_str() == Some("http");
    let mut config = kube_client::Config::new(address);
    config.proxy_url = None;
    config.root_cert = match &bucket.ca {
        _ if open => Some(Vec::new()),
        None => None,
        Some(ca) => {
            let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(ca.as_bytes()).collect();
            let found = found.map_err(|_| untrusted("the ca in the manifest cannot be read"))?;
            let found = found.iter().map(|certificate| certificate.to_vec());
            Some(found.collect())
        }
    };
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_connect_timeout(Some(limits.connect));
    connector.set_nodelay(true);
    let https = config
        .rustls_https_connector_with_connector(connector)
        .map_err(|error| untrusted(&answer::causes(&error)))?;
    let https = tower::ServiceBuilder::new()
        .map_future(Box::pin)
        .timeout(limits.connect)
        .service(https);
    let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_MAX)
        .build(https);
    Ok(Carrier::new(client.map_err(BoxError::from)))
}

/// Whether a status says that it may be different in a moment.
fn passing(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
        )
}
