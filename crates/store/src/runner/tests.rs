//! Questions that are refused, panic or find no room, alone and beside others.

use super::Runner;
use crate::body::{Scope, Tx, Value, first};
use crate::error::Error;
use std::sync::{Arc, Barrier};

const INSERT: &str = "INSERT INTO journeys (project, id, at, body) VALUES ('p', $1, 0, $2)";

fn insert(tx: &mut dyn Tx, id: u32, bytes: usize) -> Result<(), Error> {
    tx.execute(
        INSERT,
        &[Value::Text(id.to_string()), "x".repeat(bytes).into()],
    )
    .map(drop)
}

async fn count(runner: &Runner) -> u64 {
    let question = |tx: &mut dyn Tx| {
        first(tx, "SELECT COUNT(*) FROM journeys", &[])?.map_or(Ok(0), |mut row| row.take())
    };
    runner.read::<u64, Error>(question).await.unwrap()
}

/// Allows the database so many pages more than it has; the last resort of a test that
/// may not fill a real disk.
async fn leave_room(runner: &Runner, pages: u64) {
    let question = move |tx: &mut dyn Tx| {
        let used =
            first(tx, "PRAGMA page_count", &[])?.map_or(Ok(0), |mut row| row.take::<u64>())?;
        tx.query(&format!("PRAGMA max_page_count = {}", used + pages), &[])
            .map(drop)
    };
    runner
        .write::<(), Error>(Scope::Rows, question)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    for runner in [
        Runner::open(directory.path()).unwrap(),
        Runner::in_memory().unwrap(),
    ] {
        runner
            .write(Scope::Rows, |tx| insert(tx, 1, 10))
            .await
            .unwrap();
        leave_room(&runner, 4).await;
        let refused = runner
            .write(Scope::Rows, |tx| insert(tx, 2, 1_000_000))
            .await
            .unwrap_err();
        assert!(matches!(refused, Error::Full), "{refused:?}");
        assert_eq!(count(&runner).await, 1, "reading goes on");
        leave_room(&runner, 1_000).await;
        runner
            .write(Scope::Rows, |tx| insert(tx, 2, 1_000_000))
            .await
            .unwrap();
        assert_eq!(count(&runner).await, 2);
    }
}

/// Keeps the writer busy, hands it questions, and lets it take them all at once.
async fn batched(runner: &Runner, questions: Vec<Question>) -> Vec<Result<(), Error>> {
    let gates = Arc::new((Barrier::new(2), Barrier::new(2)));
    let busy = {
        let gates = Arc::clone(&gates);
        runner.write::<(), Error>(Scope::Rows, move |_| {
            gates.0.wait();
            gates.1.wait();
            Ok(())
        })
    };
    let mut busy = Box::pin(busy);
    assert!(futures_poll(busy.as_mut()).is_none());
    // The writer has taken that one question, so those that follow wait together.
    gates.0.wait();
    let mut asked: Vec<_> = questions
        .into_iter()
        .map(|question| Box::pin(runner.write(Scope::Rows, question)))
        .collect();
    for question in &mut asked {
        assert!(futures_poll(question.as_mut()).is_none());
    }
    gates.1.wait();
    busy.await.unwrap();
    let mut answers = Vec::new();
    for question in asked {
        answers.push(question.await);
    }
    answers
}

type Question = Box<dyn Fn(&mut dyn Tx) -> Result<(), Error> + Send>;

fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.poll(&mut context) {
        std::task::Poll::Ready(answer) => Some(answer),
        std::task::Poll::Pending => None,
    }
}

#[tokio::test]
async fn a_refused_question_undoes_nothing_but_itself() {
    let directory = tempfile::tempdir().unwrap();
    let runner = Runner::open(directory.path()).unwrap();
    let answers = batched(
        &runner,
        vec![
            Box::new(|tx| insert(tx, 1, 10)),
            Box::new(|tx| {
                insert(tx, 2, 10)?;
                Err(Error::Cursor {
                    found: "refused".to_owned(),
                })
            }),
            Box::new(|tx| insert(tx, 3, 10)),
        ],
    )
    .await;
    assert!(answers[0].is_ok() && answers[1].is_err() && answers[2].is_ok());
    assert_eq!(count(&runner).await, 2);
}

#[tokio::test]
async fn a_question_that_panics_is_nobody_elses_trouble() {
    let directory = tempfile::tempdir().unwrap();
    let runner = Runner::open(directory.path()).unwrap();
    let answers = batched(
        &runner,
        vec![
            Box::new(|tx| insert(tx, 1, 10)),
            Box::new(|tx| {
                insert(tx, 2, 10)?;
                panic!("a defect");
            }),
            Box::new(|tx| insert(tx, 3, 10)),
        ],
    )
    .await;
    assert!(answers[0].is_ok() && answers[1].is_err() && answers[2].is_ok());
    assert_eq!(count(&runner).await, 2);

    let read = runner.read::<(), Error>(|_| panic!("a defect")).await;
    assert!(read.is_err());
    assert_eq!(count(&runner).await, 2);
}

#[tokio::test]
async fn a_reader_cannot_write() {
    let directory = tempfile::tempdir().unwrap();
    let runner = Runner::open(directory.path()).unwrap();
    assert!(matches!(
        runner.read(|tx| insert(tx, 1, 10)).await,
        Err(Error::ReadOnly)
    ));
}
