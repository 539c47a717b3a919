//! Requests as others send them, and somebody who takes what others are sent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Sends a request to a server; answers the status and the body. In the old way of HTTP the body
/// ends with the connection.
pub(super) fn send(
    address: &str,
    (method, path): (&str, &str),
    headers: &[(&str, String)],
    body: &str,
) -> (u16, String) {
    let host = address.strip_prefix("http://").unwrap();
    let host = host.trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    let limit = Some(Duration::from_mins(1));
    stream.set_read_timeout(limit).unwrap();
    let mut request = format!(
        "{method} {path} HTTP/1.0\r\nhost: {host}\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// What somebody was sent.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) path: String,
    /// In lower case.
    pub(super) headers: Vec<String>,
    pub(super) body: serde_json::Value,
}

/// The API of a service, which takes all that it is sent.
pub(super) struct Service {
    pub(super) address: String,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Service {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::<Mutex<Vec<Sent>>>::default();
        let taken = Arc::clone(&sent);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever was killed in the middle of a sentence has said nothing.
                if let Some(sent) = take(&stream) {
                    taken.lock().unwrap().push(sent);
                    let answer =
                        b"HTTP/1.1 201 Created\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
                    drop((&stream).write_all(answer));
                }
            }
        });
        Self { address, sent }
    }

    pub(super) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
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
    })
}
