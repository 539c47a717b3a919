//! Targets that answer, and callers that notice when nobody does.

use crate::host::target;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::task::JoinSet;

/// No answer takes this long, except from nobody.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A target that answers every line with its number. Dropping it is its death: it is gone with
/// everything it held.
pub(crate) struct Target {
    _running: JoinSet<()>,
}

impl Target {
    /// A target of connections.
    pub(crate) fn start(number: u8) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket
            .bind(SocketAddr::from((target(number), 9000)))
            .unwrap();
        let listener = socket.listen(1024).unwrap();
        let mut running = JoinSet::new();
        running.spawn(serve(number, listener));
        Self { _running: running }
    }

    /// A target of datagrams.
    pub(crate) async fn start_datagrams(number: u8) -> Self {
        let socket = UdpSocket::bind((target(number), 9000)).await.unwrap();
        let mut running = JoinSet::new();
        running.spawn(async move {
            let mut buffer = [0; 16];
            while let Ok((_, from)) = socket.recv_from(&mut buffer).await {
                socket.send_to(&[number], from).await.unwrap();
            }
        });
        Self { _running: running }
    }
}

/// Answers until it is dropped, and everybody it answers with it.
async fn serve(number: u8, listener: TcpListener) {
    let mut callers = JoinSet::new();
    loop {
        tokio::select! {
            caller = listener.accept() => {
                let (stream, _) = caller.unwrap();
                callers.spawn(answer(number, stream));
            }
            Some(_ended) = callers.join_next() => {}
        }
    }
}

/// Answers every line with a number.
pub(crate) async fn answer(number: u8, stream: TcpStream) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while let Ok(1..) = stream.read_line(&mut line).await {
        if stream
            .write_all(format!("{number}\n").as_bytes())
            .await
            .is_err()
        {
            return;
        }
        line.clear();
    }
}

/// A connection through the load balancer.
pub(crate) struct Caller {
    stream: BufReader<TcpStream>,
}

impl Caller {
    /// Connects from an address.
    pub(crate) async fn from(from: Ipv4Addr, port: u16) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((from, 0)))?;
        let stream = socket
            .connect(SocketAddr::from(([127, 0, 0, 1], port)))
            .await?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Connects.
    pub(crate) async fn new(port: u16) -> io::Result<Self> {
        Self::from(Ipv4Addr::LOCALHOST, port).await
    }

    /// Asks who answers.
    pub(crate) async fn ask(&mut self) -> io::Result<u8> {
        let mut line = String::new();
        let asking = async {
            self.stream.write_all(b"who\n").await?;
            self.stream.read_line(&mut line).await
        };
        let read = tokio::time::timeout(PATIENCE, asking).await;
        match read.map_err(|_elapsed| io::ErrorKind::TimedOut)?? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => line.trim().parse().map_err(io::Error::other),
        }
    }
}

/// Connects, asks once, and hangs up.
pub(crate) async fn ask_once(port: u16) -> io::Result<u8> {
    Caller::new(port).await?.ask().await
}

/// New connections without pause.
pub(crate) struct Load {
    callers: JoinSet<()>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    served: AtomicU64,
    failed: AtomicU64,
    enough: AtomicBool,
}

impl Load {
    /// Begins to call a port.
    pub(crate) fn start(port: u16, callers: usize) -> Self {
        let counts = Arc::<Counts>::default();
        let mut running = JoinSet::new();
        for _ in 0..callers {
            let counts = Arc::clone(&counts);
            running.spawn(async move {
                while !counts.enough.load(Ordering::Relaxed) {
                    let count = match ask_once(port).await {
                        Ok(_) => &counts.served,
                        Err(error) => {
                            println!("a connection failed: {error}");
                            &counts.failed
                        }
                    };
                    count.fetch_add(1, Ordering::Relaxed);
                    // Leaves the machine some room: this is about many, not about most.
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            });
        }
        Self {
            callers: running,
            counts,
        }
    }

    /// How many failed until now.
    pub(crate) fn failed(&self) -> u64 {
        self.counts.failed.load(Ordering::Relaxed)
    }

    /// How many were served until now.
    pub(crate) fn served(&self) -> u64 {
        self.counts.served.load(Ordering::Relaxed)
    }

    /// Goes on until that many more were tried.
    pub(crate) async fn more(&self, count: u64) {
        let goal = self.served() + self.failed() + count;
        while self.served() + self.failed() < goal {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Lets everybody finish: how many were served, how many failed.
    pub(crate) async fn finish(mut self) -> (u64, u64) {
        self.counts.enough.store(true, Ordering::Relaxed);
        while self
            .callers
            .join_next()
            .await
            .transpose()
            .unwrap()
            .is_some()
        {}
        (self.served(), self.failed())
    }
}
