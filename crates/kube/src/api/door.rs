//! The way in: a client with the kubeconfig of a cluster, over streams that somebody else opens.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube_client::client::ConfigExt;
use kube_client::config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig};
use model::secret::Secret;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower::{BoxError, Service, ServiceBuilder};

use super::answer;
use crate::error::{Error, Kind};

/// A way to the API server and back, byte by byte.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A stream on its way.
pub type Dialling = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

/// Opens a stream to the port of the API server; it is asked once per connection.
///
/// A closure that gives a [`Dialling`] is one.
pub trait Dial: Send + Sync + 'static {
    /// Opens another stream.
    fn dial(&self) -> Dialling;
}

impl<F> Dial for F
where
    F: Fn() -> Dialling + Send + Sync + 'static,
{
    fn dial(&self) -> Dialling {
        self()
    }
}

/// How long we wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For a connection, with its handshake.
    pub connect: Duration,
    /// For one answer, the connection included.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            answer: Duration::from_secs(40),
        }
    }
}

/// The name that every API server has in its certificate, wherever it is reached.
const SERVER_NAME: &str = "kubernetes";

/// How long a connection is kept that nobody uses.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// How many connections are kept that nobody uses.
const IDLE_CONNECTIONS: usize = 4;

/// A cluster's API server, and the right to ask it.
#[derive(Clone)]
pub struct Door {
    pub(super) client: kube_client::Client,
    limits: Limits,
}

impl Door {
    /// Makes a client of a kubeconfig; nothing is dialled before something is asked.
    ///
    /// The address in the kubeconfig does not matter: all goes where `dial` leads, and whoever
    /// answers there must prove to be `kubernetes` of the kubeconfig's authority.
    pub async fn open(kubeconfig: &Secret, dial: impl Dial, limits: Limits) -> Result<Self, Error> {
        let config = config(kubeconfig).await?;
        let dialler = Dialler(Arc::new(dial));
        let https = config
            .rustls_https_connector_with_connector(dialler)
            .map_err(|_| bad("its certificates or its key cannot be read"))?;
        let connector = ServiceBuilder::new()
            .map_future(Box::pin)
            .timeout(limits.connect)
            .service(https);
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .build(connector);
        let auth = config
            .auth_layer()
            .map_err(|_| bad("its token cannot be read"))?;
        let service = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .option_layer(auth)
            .map_err(BoxError::from)
            .service(http);
        Ok(Self {
            client: kube_client::Client::new(service, "default"),
            limits,
        })
    }

    /// Waits for an answer as long as we may; `what` says what is attempted ("list nodes").
    pub(super) async fn ask<T>(
        &self,
        what: &str,
        question: impl Future<Output = kube_client::Result<T>>,
    ) -> Result<T, Error> {
        match tokio::time::timeout(self.limits.answer, question).await {
            Ok(answer) => answer.map_err(|error| answer::told(what, &error)),
            Err(_) => Err(self.silent(what)),
        }
    }

    /// How long we wait.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// No answer came in time.
    pub(super) fn silent(&self, what: &str) -> Error {
        Error::new(
            Kind::Unreachable,
            format!(
                "could not {what}, the API server did not answer within {} s",
                self.limits.answer.as_secs()
            ),
        )
    }
}

/// A kubeconfig that we do not follow; what it contains is never told.
fn bad(why: &str) -> Error {
    Error::new(
        Kind::BadKubeconfig,
        format!("cannot use the kubeconfig, {why}"),
    )
}

/// What the kubeconfig says of us and of the authority, and nothing else that it says.
///
/// A kubeconfig may name programs to run and files to read on the machine of whoever uses it.
/// Ours comes from a host, so neither is done, and the address in it is not followed either.
async fn config(kubeconfig: &Secret) -> Result<kube_client::Config, Error> {
    let text = kubeconfig
        .expose_text()
        .ok_or_else(|| bad("it is no text"))?;
    // The reader's own words could quote what they stumble upon.
    let parsed = Kubeconfig::from_yaml(text).map_err(|_| bad("it is no kubeconfig"))?;
    for user in &parsed.auth_infos {
        if let Some(user) = &user.auth_info {
            refuse_user(user)?;
        }
    }
    for cluster in &parsed.clusters {
        if let Some(cluster) = &cluster.cluster {
            refuse_cluster(cluster)?;
        }
    }
    let mut config =
        kube_client::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
            .await
            .map_err(|_| {
                bad("its context, cluster or user is missing or its data cannot be read")
            })?;
    if config.root_cert.is_none() {
        return Err(bad("it has no authority"));
    }
    config.cluster_url = http::Uri::from_static("https://kubernetes:6443");
    config.tls_server_name = Some(SERVER_NAME.to_owned());
    config.proxy_url = None;
    Ok(config)
}

fn refuse_user(user: &AuthInfo) -> Result<(), Error> {
    if user.exec.is_some() || user.auth_provider.is_some() {
        return Err(bad("it names a command"));
    }
    if user.token_file.is_some() || user.client_certificate.is_some() || user.client_key.is_some() {
        return Err(bad("it names a file"));
    }
    if user.impersonate.is_some()
        || user.impersonate_uid.is_some()
        || user.impersonate_groups.is_some()
    {
        return Err(bad("it acts as somebody else"));
    }
    Ok(())
}

fn refuse_cluster(cluster: &Cluster) -> Result<(), Error> {
    if cluster.certificate_authority.is_some() {
        return Err(bad("it names a file"));
    }
    if cluster.proxy_url.is_some() {
        return Err(bad("it names a proxy"));
    }
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Err(bad("it does not check the server"));
    }
    Ok(())
}

/// Dials where hyper would connect.
#[derive(Clone)]
struct Dialler(Arc<dyn Dial>);

impl Service<http::Uri> for Dialler {
    type Response = TokioIo<Line>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Line>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        let dialling = self.0.dial();
        Box::pin(async move { Ok(TokioIo::new(Line(dialling.await?))) })
    }
}

/// A stream that hyper may use.
struct Line(Box<dyn Stream>);

impl Connection for Line {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
