//! Reads the messages of a conversation: from a person who edits lines on a terminal, or one a line from a pipe.
//!
//! Both are read on their own thread: a pending read must not keep the process alive.

use std::{
    io::{self, BufRead, Write},
    sync::mpsc::{Receiver as Prompts, Sender as Prompter, channel as prompts},
    thread,
};

use platform_runtime::report;
use rustix::termios::{self, OptionalActions, Termios};
use rustyline::{Behavior, Config, DefaultEditor, error::ReadlineError};
use tokio::sync::mpsc;

/// Shown before each line that a person types.
const PROMPT: &str = "> ";
/// Ends the mode in which a terminal marks what is pasted.
const PASTE_OFF: &[u8] = b"\x1b[?2004l";

/// Messages of a conversation.
pub(super) struct Messages {
    read: mpsc::Receiver<String>,
    /// The person who is asked for each, if it is not a pipe.
    person: Option<Person>,
}

/// A person at a terminal.
struct Person {
    prompter: Prompter<()>,
    /// Settings of the terminal outside of the editor.
    modes: Option<Termios>,
    /// True while the editor has the terminal.
    is_editing: bool,
}

impl Messages {
    /// Returns the messages that a person types. Pasted lines are one message, if the terminal marks them.
    ///
    /// # Errors
    /// If the terminal cannot be used.
    pub(super) fn typed() -> io::Result<Self> {
        let (prompter, prompted) = prompts();
        let read = spawn(move |read| {
            if let Err(error) = edit_lines(&prompted, read) {
                tracing::error!(error = report::chain(&error), "the terminal cannot be read");
            }
        })?;
        let modes = termios::tcgetattr(io::stdin()).ok();
        Ok(Self { read, person: Some(Person { prompter, modes, is_editing: false }) })
    }

    /// Returns the lines of standard input.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn piped() -> io::Result<Self> {
        let read = spawn(|read| {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if read.blocking_send(line).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { read, person: None })
    }

    /// Waits for the next message; `None` after the last one. A person is asked for it.
    pub(super) async fn next(&mut self) -> Option<String> {
        if let Some(person) = &mut self.person {
            person.prompter.send(()).ok()?;
            person.is_editing = true;
        }
        let message = self.read.recv().await;
        if let Some(person) = &mut self.person {
            person.is_editing = false;
        }
        message
    }
}

impl Drop for Person {
    /// Gives the terminal back as it was, if a signal ends the conversation while a line is edited.
    fn drop(&mut self) {
        if !self.is_editing {
            return;
        }
        let restored = self.modes.as_ref().map(|modes| {
            termios::tcsetattr(io::stdin(), OptionalActions::Now, modes)?;
            io::stderr().write_all(PASTE_OFF)
        });
        if let Some(Err(error)) = restored {
            tracing::debug!(error = report::chain(&error), "terminal not restored");
        }
    }
}

fn spawn(
    read_all: impl FnOnce(&mpsc::Sender<String>) + Send + 'static,
) -> io::Result<mpsc::Receiver<String>> {
    let (read, messages) = mpsc::channel(1);
    thread::Builder::new().name("stdin".to_owned()).spawn(move || read_all(&read))?;
    Ok(messages)
}

/// Edits one line for each prompt, until the person ends that with Ctrl-C or Ctrl-D.
fn edit_lines(prompted: &Prompts<()>, read: &mpsc::Sender<String>) -> Result<(), ReadlineError> {
    // Standard output carries the answers alone, so the terminal itself is asked.
    let config = Config::builder().behavior(Behavior::PreferTerm).auto_add_history(true).build();
    let mut editor = DefaultEditor::with_config(config)?;
    while prompted.recv().is_ok() {
        let line = match editor.readline(PROMPT) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => break,
            Err(error) => return Err(error),
        };
        if read.blocking_send(line).is_err() {
            break;
        }
    }
    Ok(())
}
