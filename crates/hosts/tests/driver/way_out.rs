//! A way out of the namespaces of a test: a proxy for hosts, through which they reach the package
//! sources of their distribution.
//!
//! Namespaces separate networks but not files, so both ends meet at a socket in the directory of the
//! test.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;

fn socket(dir: &Path) -> PathBuf {
    dir.join("way-out")
}

/// The outer end, as long as this process lives.
pub(crate) fn outer(dir: &Path) {
    let listener = UnixListener::bind(socket(dir)).unwrap();
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            // Who asks for what is not to be had sees the connection end.
            thread::spawn(move || drop(pass_on(&near)));
        }
    });
}

/// The inner end, where hosts reach it.
pub(crate) fn inner(dir: &Path, at: SocketAddr) {
    let listener = TcpListener::bind(at).unwrap();
    let socket = socket(dir);
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let Ok(far) = UnixStream::connect(&socket) else {
                continue;
            };
            let ends = (near.try_clone().unwrap(), far.try_clone().unwrap());
            thread::spawn(move || flow(near, ends.1, |far| drop(far.shutdown(Shutdown::Write))));
            thread::spawn(move || flow(far, ends.0, |near| drop(near.shutdown(Shutdown::Write))));
        }
    });
}

/// Connects to whoever the first request names; all of one connection go to the same.
fn pass_on(near: &UnixStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(near.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let tunnel = first.starts_with("CONNECT ");
    let target = first.split(' ').nth(1).unwrap_or_default();
    let authority = target.trim_start_matches("http://");
    let authority = authority.split('/').next().unwrap_or_default();
    let far = if authority.contains(':') {
        TcpStream::connect(authority)?
    } else {
        TcpStream::connect((authority, 80))?
    };
    let (mut to_far, mut to_near) = (far.try_clone()?, near.try_clone()?);
    if tunnel {
        let mut line = String::new();
        while reader.read_line(&mut line)? > 2 {
            line.clear();
        }
        to_near.write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
    } else {
        // A server takes the whole address, too.
        to_far.write_all(first.as_bytes())?;
    }
    thread::spawn(move || flow(reader, to_far, |far| drop(far.shutdown(Shutdown::Write))));
    flow(far, to_near, |near| drop(near.shutdown(Shutdown::Write)));
    Ok(())
}

fn flow<W: Write>(mut from: impl Read, mut to: W, end: impl FnOnce(&W)) {
    drop(std::io::copy(&mut from, &mut to));
    end(&to);
}
