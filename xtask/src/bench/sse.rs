//! Reads a stream of server-sent events without ever waiting for it.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;

use anyhow::{Context, Result, bail, ensure};

/// One stream and the ids of the events it told.
pub(super) struct Follower {
    stream: TcpStream,
    /// What came and does not make a whole line yet.
    rest: Vec<u8>,
    head: Head,
    events: Vec<u64>,
}

/// How much of the answer's head has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    Awaited,
    Begun,
    Passed,
}

impl Follower {
    /// Follows on a connection on which the stream was asked for.
    pub(super) fn new(stream: TcpStream) -> Result<Self> {
        stream
            .set_nonblocking(true)
            .context("could not keep a stream from blocking")?;
        Ok(Self {
            stream,
            rest: Vec::new(),
            head: Head::Awaited,
            events: Vec::new(),
        })
    }

    /// Whether the server has answered.
    pub(super) fn has_begun(&self) -> bool {
        self.head == Head::Passed
    }

    /// The events so far.
    pub(super) fn events(&self) -> &[u64] {
        &self.events
    }

    /// The newest event; 0 when there was none.
    pub(super) fn last(&self) -> u64 {
        self.events.last().copied().unwrap_or(0)
    }

    /// Takes in what has come, by way of a buffer that many can share.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<()> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => bail!("a stream ended"),
                Ok(count) => self.take_in(buffer.get(..count).unwrap_or_default())?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("could not read a stream"),
            }
        }
    }

    fn take_in(&mut self, bytes: &[u8]) -> Result<()> {
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else {
            self.rest = rest;
            return Ok(());
        };
        let (lines, rest) = rest.split_at(end + 1);
        self.rest = rest.to_vec();
        let lines = std::str::from_utf8(lines).context("a stream is no text")?;
        lines.lines().try_for_each(|line| self.line(line))
    }

    /// Takes one line. What frames the parts of the body stands on lines of its own, and none of
    /// them looks like an id.
    fn line(&mut self, line: &str) -> Result<()> {
        match self.head {
            Head::Awaited => {
                ensure!(line.starts_with("HTTP/1.1 200 "), "a stream began: {line}");
                self.head = Head::Begun;
            }
            Head::Begun if line.is_empty() => self.head = Head::Passed,
            Head::Begun => {}
            Head::Passed => {
                if let Some(id) = line.strip_prefix("id:") {
                    let id = id.trim().parse();
                    self.events.push(id.context("the id of an event is none")?);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::Follower;

    /// Both ends of a connection.
    fn connected() -> (Follower, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Follower::new(near).unwrap(), listener.accept().unwrap().0)
    }

    #[test]
    fn ids_are_read_however_the_bytes_come() {
        let (mut follower, mut server) = connected();
        follower.read(&mut [0; 10]).unwrap();
        assert!(!follower.has_begun());
        let text = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                    9\r\nretry: 1\n\n\r\n15\r\nevent: a\nid: 7\ndata: x\n\n\r\n10\r\nid:8\ndata: id:9\n\n\r\n";
        for byte in text.as_bytes() {
            server.write_all(&[*byte]).unwrap();
            follower.read(&mut [0; 10]).unwrap();
        }
        while follower.last() < 8 {
            follower.read(&mut [0; 10]).unwrap();
        }
        assert!(follower.has_begun());
        assert_eq!(follower.events(), [7, 8]);
    }

    #[test]
    fn a_refusal_is_told() {
        let (mut follower, mut server) = connected();
        server
            .write_all(b"HTTP/1.1 503 Service Unavailable\r\n")
            .unwrap();
        let error = loop {
            if let Err(error) = follower.read(&mut [0; 10]) {
                break error;
            }
        };
        assert!(error.to_string().contains("503"), "{error}");
    }
}
