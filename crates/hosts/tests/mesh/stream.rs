//! A TCP stream over the mesh that must not break: numbered lines until it is told to end.

use crate::world::Host;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A stream from one host to another.
pub(crate) struct Stream {
    sender: Child,
    receiver: Child,
    /// How many lines have arrived, each the right one.
    arrived: Arc<AtomicU64>,
    reading: JoinHandle<()>,
    sent: u64,
}

impl Stream {
    pub(crate) fn start(from: &Host, to: &Host) -> Self {
        let mut receiver = to
            .command("socat", &["-u", "TCP-LISTEN:7000,reuseaddr", "STDOUT"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let target = format!("TCP:{}:7000,retry=100,interval=0.1", to.address());
        let sender = from
            .command("socat", &["-u", "STDIN", &target])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let arrived = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&arrived);
        let lines = BufReader::new(receiver.stdout.take().unwrap()).lines();
        let reading = std::thread::spawn(move || {
            for line in lines {
                let expected = count.load(Ordering::SeqCst);
                assert_eq!(line.unwrap(), format!("{expected:01000}"));
                count.store(expected + 1, Ordering::SeqCst);
            }
        });
        let mut stream = Self {
            sender,
            receiver,
            arrived,
            reading,
            sent: 0,
        };
        stream.flows();
        stream
    }

    /// Sends on until what is sent from now on has arrived.
    pub(crate) fn flows(&mut self) {
        let goal = self.sent + 500;
        while self.sent < goal {
            let line = format!("{:01000}\n", self.sent);
            let pipe = self.sender.stdin.as_mut().unwrap();
            pipe.write_all(line.as_bytes()).expect("the stream broke");
            self.sent += 1;
        }
        while self.arrived.load(Ordering::SeqCst) < goal {
            assert!(!self.reading.is_finished(), "the stream broke");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends on for as long as something is done.
    pub(crate) fn during<T: Send>(&mut self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let working = scope.spawn(work);
            while !working.is_finished() {
                self.flows();
            }
            working.join().unwrap()
        })
    }

    /// Ends it; everything that was sent must have arrived.
    pub(crate) fn end(mut self) -> u64 {
        drop(self.sender.stdin.take());
        assert!(self.sender.wait().unwrap().success());
        assert!(self.receiver.wait().unwrap().success());
        self.reading.join().unwrap();
        assert_eq!(self.arrived.load(Ordering::SeqCst), self.sent);
        self.sent
    }
}
