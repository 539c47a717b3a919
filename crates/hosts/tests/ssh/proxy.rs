//! A wire that can be cut or fall silent: between us and a real SSH server.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hosts::ssh::Door;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::server::Server;

/// Which wires no longer work: all that were laid before a number.
#[derive(Clone, Copy, Default)]
struct Broken {
    /// Nothing goes through, and nobody is told.
    silent: usize,
    /// Ended on both sides.
    cut: usize,
}

#[derive(Clone)]
struct Counts {
    laid: Arc<AtomicUsize>,
    budget: Arc<AtomicUsize>,
}

pub(crate) struct Proxy {
    broken: watch::Sender<Broken>,
    counts: Counts,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// A wire to a server, and the door at its near end.
    pub(crate) async fn before(server: &Server) -> (Self, Door) {
        let port = server.port;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let here = listener.local_addr().unwrap().port();
        let (broken, seen) = watch::channel(Broken::default());
        let counts = Counts {
            laid: Arc::default(),
            budget: Arc::new(AtomicUsize::new(usize::MAX)),
        };
        let of_wires = counts.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut wires = JoinSet::new();
            loop {
                let (near, _) = listener.accept().await.unwrap();
                wires.spawn(carry(near, port, seen.clone(), of_wires.clone()));
            }
        });
        let proxy = Self {
            broken,
            counts,
            _tasks: tasks,
        };
        let door = Door {
            port: here,
            ..server.door("root")
        };
        (proxy, door)
    }

    /// Nothing goes through the wires that there are.
    pub(crate) fn silence(&self) {
        let laid = self.counts.laid.load(Ordering::SeqCst);
        self.broken.send_modify(|broken| broken.silent = laid);
    }

    /// Ends the wires that there are.
    pub(crate) fn cut(&self) {
        let laid = self.counts.laid.load(Ordering::SeqCst);
        self.broken.send_modify(|broken| broken.cut = laid);
    }

    /// How many bytes may go to the server before the wire is cut.
    pub(crate) fn allow(&self, bytes: usize) {
        self.counts.budget.store(bytes, Ordering::SeqCst);
    }
}

async fn carry(
    mut near: TcpStream,
    port: u16,
    mut broken: watch::Receiver<Broken>,
    counts: Counts,
) {
    let number = counts.laid.fetch_add(1, Ordering::SeqCst);
    let mut far = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .unwrap();
    let (mut up, mut down) = (vec![0; 65536], vec![0; 65536]);
    loop {
        let Broken { silent, cut } = *broken.borrow();
        if number < cut {
            return;
        }
        tokio::select! {
            changed = broken.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            read = near.read(&mut up), if number >= silent => {
                let read = read.unwrap_or(0);
                let left = counts.budget.load(Ordering::SeqCst);
                let goes = read.min(left);
                if read == 0 || far.write_all(&up[..goes]).await.is_err() {
                    return;
                }
                if left != usize::MAX {
                    counts.budget.store(left - goes, Ordering::SeqCst);
                    if left == goes {
                        return;
                    }
                }
            }
            read = far.read(&mut down), if number >= silent => {
                let read = read.unwrap_or(0);
                if read == 0 || near.write_all(&down[..read]).await.is_err() {
                    return;
                }
            }
        }
    }
}
