//! A question on its way to a thread, and its answer on the way back.

use crate::body::{Scope, Tx};
use crate::error::Error;
use tokio::sync::{mpsc, oneshot};

/// A question on its way to a thread.
pub(super) trait Asked: Send {
    /// What it must have for itself.
    fn scope(&self) -> Scope;
    /// Runs it and keeps the answer; says whether it was refused.
    fn run(&mut self, tx: &mut dyn Tx) -> Ran;
    /// Tells the caller, once it is known whether the transaction stands.
    fn reply(self: Box<Self>, stands: Result<(), Error>);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ran {
    Answered,
    Refused,
}

struct Question<F, T, E> {
    scope: Scope,
    ask: F,
    answer: Option<Result<T, E>>,
    caller: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Asked for Question<F, T, E>
where
    F: Fn(&mut dyn Tx) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn scope(&self) -> Scope {
        self.scope
    }

    fn run(&mut self, tx: &mut dyn Tx) -> Ran {
        let answer = (self.ask)(tx);
        let ran = if answer.is_ok() {
            Ran::Answered
        } else {
            Ran::Refused
        };
        self.answer = Some(answer);
        ran
    }

    fn reply(self: Box<Self>, stands: Result<(), Error>) {
        let answer = match (stands, self.answer) {
            // What was refused is refused, whether or not the others could be kept.
            (Err(_) | Ok(()), Some(Err(refused))) => Err(refused),
            (Ok(()), Some(answer)) => answer,
            (Err(error), _) => Err(error.into()),
            (Ok(()), None) => Err(Error::unanswered().into()),
        };
        // A caller that went away does not need the answer.
        drop(self.caller.send(answer));
    }
}

/// Hands a question to a thread and waits for the answer.
pub(super) async fn ask<T, E>(
    queue: Option<&mpsc::Sender<Box<dyn Asked>>>,
    scope: Scope,
    question: impl Fn(&mut dyn Tx) -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let (caller, receiver) = oneshot::channel();
    let asked: Box<dyn Asked> = Box::new(Question {
        scope,
        ask: question,
        answer: None,
        caller,
    });
    let queue = queue.ok_or_else(Error::unanswered)?;
    queue.send(asked).await.map_err(|_| Error::unanswered())?;
    receiver.await.map_err(|_| Error::unanswered())?
}
