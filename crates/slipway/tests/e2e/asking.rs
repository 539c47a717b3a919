//! Clients of what runs in a cluster: one that asks once, and one that asks all the time.

use model::time::Timestamp;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often somebody asks who asks all the time.
const PACE: Duration = Duration::from_millis(50);

/// How far apart failures are that are told as one.
const SPELL_MILLIS: i64 = 2_000;

/// How long something may take that happens by itself.
pub(crate) const SOON: Duration = Duration::from_mins(10);

/// Waits until something holds.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(began.elapsed() < SOON, "{what} never happens");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until a pod answers there.
#[track_caller]
pub(crate) fn answered(address: &str, port: u16) {
    let mut last = String::new();
    let began = Instant::now();
    while !last.starts_with("echo-") {
        assert!(
            began.elapsed() < SOON,
            "no pod answers at {address}:{port}: {last}"
        );
        std::thread::sleep(Duration::from_millis(100));
        last = asked(address, port).unwrap_or_else(|why| why);
    }
}

/// Asks for `/` once; answers what was sent back, or why nothing was.
pub(crate) fn asked(address: &str, port: u16) -> Result<String, String> {
    asked_for("/", address, port)
}

/// Asks for a path once.
pub(crate) fn asked_for(path: &str, address: &str, port: u16) -> Result<String, String> {
    let told = |error: std::io::Error| error.to_string();
    let at: SocketAddr = format!("{address}:{port}").parse().unwrap();
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE).map_err(told)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(told)?;
    let question = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(question.as_bytes()).map_err(told)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(told)?;
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return Err(format!("half an answer: {answer:?}"));
    };
    if head.starts_with("HTTP/1.1 200 ") {
        Ok(body.trim().to_owned())
    } else {
        Err(answer)
    }
}

/// Asks the API whether it is ready, as somebody whom it does not know may.
pub(crate) fn api(address: &str, port: u16) -> Result<String, String> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--insecure", "--fail"])
        .args(["--max-time", "5"])
        .arg(format!("https://{address}:{port}/readyz"));
    let output = curl.output().unwrap();
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// What somebody saw who asked all the time.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// How many questions were answered.
    pub(crate) answered: usize,
    /// What came instead of answers, in the order in which it came.
    pub(crate) failures: Vec<Failure>,
    /// The longest time without an answer.
    pub(crate) silence: Duration,
}

/// The same answer that was none, again and again.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    times: usize,
    /// As the logs of servers and hosts have it: the first and the last of them.
    from: Timestamp,
    until: Timestamp,
}

impl Heard {
    fn failed(&mut self, what: String) {
        let now = driver::Clock::System.now();
        match self.failures.last_mut() {
            Some(last)
                if last.what == what && now.as_millis() < last.until.as_millis() + SPELL_MILLIS =>
            {
                last.times += 1;
                last.until = now;
            }
            _ => self.failures.push(Failure {
                what,
                times: 1,
                from: now,
                until: now,
            }),
        }
    }
}

impl std::fmt::Display for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let failed: usize = self.failures.iter().map(|failure| failure.times).sum();
        let (answered, silence) = (self.answered, self.silence.as_secs_f64());
        write!(
            f,
            "answered {answered} times, failed {failed} times, longest silence {silence:.1} s"
        )?;
        for failure in &self.failures {
            let (from, until) = (failure.from.moment(), failure.until.moment());
            write!(
                f,
                "\n  {from} to {until}: {} times {}",
                failure.times, failure.what
            )?;
        }
        Ok(())
    }
}

/// Somebody who asks all the time, until told to stop.
pub(crate) struct Asking {
    whom: &'static str,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Heard>>,
}

impl Asking {
    /// Begins.
    pub(crate) fn begin(
        whom: &'static str,
        ask: impl Fn() -> Result<String, String> + Send + 'static,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut heard = Heard::default();
            let mut last = Instant::now();
            while !told.load(Ordering::Relaxed) {
                let answer = ask();
                heard.silence = heard.silence.max(last.elapsed());
                match answer {
                    Ok(_) => {
                        heard.answered += 1;
                        last = Instant::now();
                    }
                    Err(why) => heard.failed(why),
                }
                std::thread::sleep(PACE);
            }
            heard
        });
        Self {
            whom,
            stop,
            thread: Some(thread),
        }
    }

    /// Ends, and tells.
    pub(crate) fn end(mut self) -> Heard {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The story failed before its end: what was heard so far may tell why.
        if let Some(Ok(heard)) = self.thread.take().map(JoinHandle::join) {
            println!("{}: {heard}", self.whom);
        }
    }
}
