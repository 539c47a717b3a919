//! Somebody who is told, on this machine: answers as it was told to, and remembers what it got.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What is answered to one request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// These bytes.
    Text(String),
    /// Nothing, while the connection stays open.
    Hang,
}

impl Answer {
    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self::with(status, "", body)
    }

    pub(crate) fn busy(seconds: u32) -> Self {
        Self::with(429, &format!("retry-after: {seconds}\r\n"), "slow down")
    }

    pub(crate) fn moved(to: &str) -> Self {
        Self::with(302, &format!("location: {to}\r\n"), "")
    }

    fn with(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Text(format!(
            "HTTP/1.1 {status} so\r\ncontent-length: {length}\r\n{headers}connection: close\r\n\r\n{body}"
        ))
    }
}

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> String {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map_or_else(String::new, |(_, value)| value.clone())
    }
}

/// Listens until it is dropped. When there are no answers left, it answers 200.
pub(crate) struct Receiver {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    _listening: JoinSet<()>,
}

impl Receiver {
    pub(crate) async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let mut listening = JoinSet::new();
        let got = requests.clone();
        listening.spawn(async move {
            let mut conversations = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                conversations.spawn(converse(stream, answers.clone(), got.clone()));
            }
        });
        Self {
            port,
            requests,
            _listening: listening,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) async fn until_requested(&self, count: usize) {
        while self.requests().len() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn converse(
    mut stream: TcpStream,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    requests: Arc<Mutex<Vec<Request>>>,
) {
    let Some(request) = read(&mut stream).await else {
        return;
    };
    let answer = answers.lock().unwrap().pop_front();
    requests.lock().unwrap().push(request);
    match answer.unwrap_or_else(|| Answer::status(200, "ok")) {
        Answer::Hang => std::future::pending().await,
        Answer::Text(text) => {
            // Whoever has gone does not mind.
            drop(stream.write_all(text.as_bytes()).await);
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(Some(0), |(_, value)| value.parse().ok())?;
    while bytes.len() < end + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(bytes[end + 4..].to_vec()).ok()?;
    Some(Request {
        path,
        headers,
        body,
    })
}
