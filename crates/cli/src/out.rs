//! The only place that writes to the outside: data on one handle, talk on the other.

use std::io::{self, BufRead, IsTerminal, Read, Write};

/// Where answers and remarks go, and who is there to read them.
pub(crate) struct Out {
    data: Box<dyn Write>,
    talk: Box<dyn Write>,
    answers: Option<Box<dyn BufRead>>,
    /// Where values are piped in; absent where a person would have to type them, seen by all.
    input: Option<Box<dyn Read>>,
    /// Whether who answers sits at a terminal, which shows what they type.
    shows: bool,
    colours: bool,
    live: bool,
}

impl Out {
    /// The handles of this process.
    pub(crate) fn standard() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let person = io::stdin().is_terminal() && io::stderr().is_terminal();
        Self {
            data: Box::new(io::stdout()),
            talk: Box::new(io::stderr()),
            answers: person.then(|| -> Box<dyn BufRead> { Box::new(io::stdin().lock()) }),
            input: (!io::stdin().is_terminal()).then(|| -> Box<dyn Read> { Box::new(io::stdin()) }),
            shows: person,
            colours: io::stdout().is_terminal() && !plain,
            live: io::stderr().is_terminal()
                && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
        }
    }

    /// Handles for tests: nobody reads along, and nobody answers.
    #[cfg(test)]
    pub(crate) fn to(data: Box<dyn Write>, talk: Box<dyn Write>) -> Self {
        Self {
            data,
            talk,
            answers: None,
            input: None,
            shows: false,
            colours: false,
            live: false,
        }
    }

    /// The same with somebody who answers.
    #[cfg(test)]
    pub(crate) fn answered(mut self, answer: &'static str) -> Self {
        self.answers = Some(Box::new(answer.as_bytes()));
        self
    }

    /// The same with something piped in.
    #[cfg(test)]
    pub(crate) fn fed(mut self, input: &'static [u8]) -> Self {
        self.input = Some(Box::new(input));
        self
    }

    /// Writes what was asked for.
    pub(crate) fn data(&mut self, text: &str) -> io::Result<()> {
        self.data.write_all(text.as_bytes())?;
        self.data.flush()
    }

    /// Writes a piece of what was asked for; it need not be text.
    pub(crate) fn bytes(&mut self, piece: &[u8]) -> io::Result<()> {
        self.data.write_all(piece)?;
        self.data.flush()
    }

    /// Says something about it, on a line of its own.
    pub(crate) fn say(&mut self, line: &str) {
        self.complain(&format!("{line}\n"));
    }

    /// Says whole lines.
    pub(crate) fn complain(&mut self, text: &str) {
        // When nobody can be told, there is nobody to tell that either.
        drop(self.talk.write_all(text.as_bytes()));
        drop(self.talk.flush());
    }

    /// Whether answers may be coloured.
    pub(crate) const fn colours(&self) -> bool {
        self.colours
    }

    /// Whether remarks may move about on a terminal.
    pub(crate) const fn live(&self) -> bool {
        self.live
    }

    /// What is piped in; nothing when nothing is, or when it was taken already.
    pub(crate) fn input(&mut self) -> Option<Box<dyn Read>> {
        self.input.take()
    }

    /// Asks for something that must not be seen; nothing when nobody is there to answer.
    pub(crate) fn ask_unseen(&mut self, question: &str) -> Option<io::Result<String>> {
        let mut answers = self.answers.take()?;
        self.complain(question);
        let answer = if self.shows {
            // The terminal is read by whoever switches its echo off, and by nobody else.
            drop(answers);
            let answer = console::Term::stderr().read_secure_line();
            answers = Box::new(io::stdin().lock());
            answer
        } else {
            let mut line = String::new();
            let read = answers.read_line(&mut line);
            read.map(|_| line.trim_end_matches(['\r', '\n']).to_owned())
        };
        self.answers = Some(answers);
        Some(answer)
    }

    /// Asks for a word; nothing when nobody is there to answer.
    pub(crate) fn ask_for(&mut self, question: &str) -> Option<String> {
        let answers = self.answers.as_mut()?;
        drop(self.talk.write_all(format!("{question} ").as_bytes()));
        drop(self.talk.flush());
        let mut answer = String::new();
        answers.read_line(&mut answer).ok()?;
        Some(answer.trim().to_owned())
    }

    /// Asks a question; nothing when nobody is there to answer.
    pub(crate) fn ask(&mut self, question: &str) -> Option<bool> {
        let answer = self.ask_for(&format!("{question} [y/N]"))?;
        Some(matches!(answer.as_str(), "y" | "Y" | "yes"))
    }
}
