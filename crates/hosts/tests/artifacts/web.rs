//! A small web server on loopback, whose answers a test writes byte by byte.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use hosts::artifacts::Source;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// The path, without its first slash.
    pub(crate) path: String,
    /// The byte to begin with.
    pub(crate) from: usize,
}

/// A web server; it ends with the test.
pub(crate) struct Server {
    address: String,
    asked: Arc<Mutex<Vec<Request>>>,
    ended: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts one that answers in this way, each request on a connection of its own.
    pub(crate) fn start(answer: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let ended = Arc::new(AtomicBool::new(false));
        let answer = Arc::new(answer);
        let listening = std::thread::spawn({
            let (asked, ended) = (Arc::clone(&asked), Arc::clone(&ended));
            move || {
                for stream in listener.incoming() {
                    if ended.load(Ordering::SeqCst) {
                        return;
                    }
                    let (asked, answer) = (Arc::clone(&asked), Arc::clone(&answer));
                    let mut stream = stream.unwrap();
                    std::thread::spawn(move || {
                        // Who hangs up before asking is no request.
                        if let Some(request) = read(&stream) {
                            asked.lock().unwrap().push(request.clone());
                            answer(&request, &mut stream);
                        }
                    });
                }
            }
        });
        Self {
            address,
            asked,
            ended,
            listening: Some(listening),
        }
    }

    /// Starts one that has these files, and gives parts of them when asked to.
    pub(crate) fn of(files: &[(&str, &[u8])]) -> Self {
        let files: BTreeMap<String, Vec<u8>> = files
            .iter()
            .map(|(name, content)| ((*name).to_owned(), content.to_vec()))
            .collect();
        Self::start(move |request, stream| match files.get(&request.path) {
            Some(content) => give(request, stream, content, usize::MAX),
            None => send(
                stream,
                "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            ),
        })
    }

    pub(crate) fn source(&self) -> Source {
        format!("http://{}/", self.address).parse().unwrap()
    }

    pub(crate) fn asked(&self) -> Vec<Request> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes it up, so that it sees.
        drop(TcpStream::connect(&self.address));
        if let Some(listening) = self.listening.take() {
            drop(listening.join());
        }
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let path = first.split(' ').nth(1)?.trim_start_matches('/').to_owned();
    let mut from = 0;
    for line in lines {
        let line = line.ok()?.to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().ok()?;
        }
    }
    Some(Request { path, from })
}

/// Sends a text; who does not listen any more does not hear it.
pub(crate) fn send(stream: &mut TcpStream, text: &str) {
    drop(stream.write_all(text.as_bytes()));
}

/// The head of an answer with a whole content, or the asked part of it.
pub(crate) fn head(request: &Request, length: usize) -> String {
    let Request { from, .. } = request;
    if *from == 0 {
        return format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    }
    if *from >= length {
        return "HTTP/1.1 416 Range Not Satisfiable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            .to_owned();
    }
    format!(
        "HTTP/1.1 206 Partial Content\r\ncontent-length: {}\r\ncontent-range: bytes {from}-{}/{length}\r\nconnection: close\r\n\r\n",
        length - from,
        length - 1
    )
}

/// Gives a content, but not more than so many bytes of it, and hangs up.
pub(crate) fn give(request: &Request, stream: &mut TcpStream, content: &[u8], most: usize) {
    send(stream, &head(request, content.len()));
    let rest = content.get(request.from..).unwrap_or_default();
    drop(stream.write_all(&rest[..rest.len().min(most)]));
}

/// Says nothing until the other side hangs up.
pub(crate) fn hang(stream: &mut TcpStream) {
    let mut rest = [0; 1024];
    while stream.read(&mut rest).is_ok_and(|read| read > 0) {}
}
