//! Requests as others send them, and somebody who takes what others are sent.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Sends a request to a server; answers the status and the body. In the old way of HTTP the body
/// ends with the connection.
pub(super) fn send(
    address: &str,
    way: (&str, &str),
    headers: &[(&str, String)],
    body: &str,
) -> (u16, String) {
    try_send(address, way, headers, body).unwrap()
}

/// The same to a server that may be killed meanwhile.
pub(super) fn try_send(
    address: &str,
    way: (&str, &str),
    headers: &[(&str, String)],
    body: &str,
) -> std::io::Result<(u16, String)> {
    let mut answer = Vec::new();
    asked(address, way, headers, body)?.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Ok((status, body.to_owned()))
}

/// What a live stream tells from now on, one event after the other, for some time: it has no end.
pub(super) fn events(
    address: &str,
    path: &str,
    headers: &[(&str, String)],
) -> impl Iterator<Item = serde_json::Value> + use<> {
    let stream = asked(address, ("GET", path), headers, "").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    // Whoever has read the head is told all that happens after it.
    let head: Vec<_> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    assert!(head[0].contains(" 200 "), "{head:?}");
    assert!(
        head.contains(&"content-type: text/event-stream".to_owned()),
        "{head:?}"
    );
    let began = Instant::now();
    lines
        .take_while(move |_| began.elapsed() < Duration::from_mins(2))
        .filter_map(|line| Some(serde_json::from_str(line.strip_prefix("data: ")?).unwrap()))
}

fn asked(
    address: &str,
    (method, path): (&str, &str),
    headers: &[(&str, String)],
    body: &str,
) -> std::io::Result<TcpStream> {
    let host = address.strip_prefix("http://").unwrap();
    let host = host.trim_end_matches('/');
    let mut stream = TcpStream::connect(host)?;
    let limit = Some(Duration::from_mins(1));
    stream.set_read_timeout(limit)?;
    let mut request = format!(
        "{method} {path} HTTP/1.0\r\nhost: {host}\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("\r\n{body}");
    stream.write_all(request.as_bytes())?;
    Ok(stream)
}

/// What proves that a text comes from somebody who knows the secret, in hexadecimal digits.
pub(super) fn signed(secret: &str, text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(text.as_bytes());
    let digits = mac.finalize().into_bytes();
    digits.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What somebody was sent.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) path: String,
    /// In lower case.
    pub(super) headers: Vec<String>,
    pub(super) body: serde_json::Value,
    /// The same as it came.
    pub(super) text: String,
}

/// The API of a service, which takes all that it is sent unless it is told not to.
pub(super) struct Service {
    pub(super) address: String,
    sent: Arc<Mutex<Vec<Sent>>>,
    refusal: Arc<Mutex<Option<&'static str>>>,
}

impl Service {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::<Mutex<Vec<Sent>>>::default();
        let refusal = Arc::<Mutex<Option<&'static str>>>::default();
        let (taken, refused) = (Arc::clone(&sent), Arc::clone(&refusal));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever was killed in the middle of a sentence has said nothing.
                let Some(sent) = take(&stream) else {
                    continue;
                };
                let refusal = *refused.lock().unwrap();
                let (head, body) = match refusal {
                    // As many do, it tells whoever it refuses where that was.
                    Some(head) => (head, format!("no room at {}", sent.path)),
                    None => ("201 Created", "{}".to_owned()),
                };
                if refusal.is_none() {
                    taken.lock().unwrap().push(sent);
                }
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
                );
                drop((&stream).write_all(answer.as_bytes()));
            }
        });
        Self {
            address,
            sent,
            refusal,
        }
    }

    /// All that it took.
    pub(super) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// Has it take nothing, and answer this status, with the headers behind it; or take all again.
    pub(super) fn refuse(&self, head: Option<&'static str>) {
        *self.refusal.lock().unwrap() = head;
    }
}

fn take(stream: &TcpStream) -> Option<Sent> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ")?;
        headers.push(format!("{}: {value}", name.to_ascii_lowercase()));
    }
    let length = headers
        .iter()
        .find_map(|header| header.strip_prefix("content-length: "));
    let mut body = vec![0; length?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Sent {
        path: first.split(' ').nth(1)?.to_owned(),
        headers,
        body: serde_json::from_slice(&body).ok()?,
        text: String::from_utf8(body).ok()?,
    })
}
