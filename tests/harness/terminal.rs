//! Runs the command line on a terminal, which the program `script` provides.

use std::{
    fs::File,
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::{
    fs::OFlags,
    process::{Pid, Signal, kill_process},
    pty::{self, OpenptFlags},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::mpsc,
    time::timeout,
};

use crate::sluice::Sluice;

/// Longest wait for the next piece of output.
const PATIENCE: Duration = Duration::from_secs(60);

/// Output of a command on a terminal.
#[derive(Debug)]
pub struct Shown {
    /// Exit code.
    pub code: Option<i32>,
    /// Pieces of stdout and stderr together, with the times of their arrival.
    pub pieces: Vec<(String, Instant)>,
}

impl Shown {
    /// Returns the whole output, escape sequences included.
    #[must_use]
    pub fn text(&self) -> String {
        self.pieces.iter().map(|(text, _)| text.as_str()).collect()
    }
}

/// Runs `command` on its own terminal, and answers each question when it is shown. Returns what the terminal shows.
///
/// # Panics
/// If it fails, is silent for long, or does not ask a question.
pub async fn converse(mut command: Command, answers: &[(&str, &str)]) -> String {
    let controller = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    pty::grantpt(&controller).unwrap();
    pty::unlockpt(&controller).unwrap();
    let name = pty::ptsname(&controller, Vec::new()).unwrap();
    let no_control = OFlags::NOCTTY.bits().cast_signed();
    let mut options = File::options();
    options.read(true).write(true).custom_flags(no_control);
    let side = || Stdio::from(options.open(name.to_str().unwrap()).unwrap());
    command.stdin(side()).stdout(side()).stderr(side()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    // It holds the terminal open.
    drop(command);
    let mut input = File::from(controller);
    let mut output = input.try_clone().unwrap();
    let (pieces, mut screen) = mpsc::channel(64);
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        // The read fails once no process has the terminal any more.
        while let Ok(length @ 1..) = output.read(&mut piece) {
            if pieces.blocking_send(piece[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut shown = String::new();
    let mut answers = answers.iter().peekable();
    while let Some(piece) =
        timeout(PATIENCE, screen.recv()).await.unwrap_or_else(|_| panic!("silence after:\n{shown}"))
    {
        shown += &String::from_utf8_lossy(&piece);
        if let Some((_, answer)) = answers.next_if(|(question, _)| shown.contains(question)) {
            input.write_all(answer.as_bytes()).unwrap();
        }
    }
    assert!(child.wait().await.unwrap().success(), "{shown}");
    assert_eq!(answers.next(), None, "a question was not asked: {shown}");
    shown
}

impl Sluice {
    /// Runs it with `arguments` on a terminal to its end.
    ///
    /// # Panics
    /// If this host has no `script` (Debian: bsdutils, essential).
    pub async fn on_terminal(self, arguments: &[&str]) -> Shown {
        self.on_terminal_until(arguments, "", async {}).await
    }

    /// Runs it with `arguments` on a terminal to its end, and awaits `then` as soon as the terminal shows `words`.
    ///
    /// # Panics
    /// If this host has no `script`, or `words` are never shown.
    pub async fn on_terminal_until(
        mut self,
        arguments: &[&str],
        words: &str,
        then: impl Future<Output = ()>,
    ) -> Shown {
        self.command.args(arguments);
        let inner = self.command.as_std();
        let command = std::iter::once(inner.get_program()).chain(inner.get_args());
        let line: Vec<_> = command.map(|word| quoted(&word.to_string_lossy())).collect();
        let mut script = Command::new("script");
        script
            .args(["--quiet", "--flush", "--return", "--command", &line.join(" "), "/dev/null"])
            .env_clear();
        script.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut script = script.spawn().unwrap();
        let (mut output, mut pieces, mut piece) = (script.stdout.take().unwrap(), Vec::new(), [0; 4096]);
        let (mut text, mut then) = (String::new(), Some(then));
        loop {
            let read =
                timeout(PATIENCE, output.read(&mut piece)).await.expect("a piece, or the end").unwrap();
            if read == 0 {
                assert!(text.contains(words), "{words} is not shown: {text}");
                return Shown { code: script.wait().await.unwrap().code(), pieces };
            }
            let piece = String::from_utf8_lossy(&piece[..read]).into_owned();
            text += &piece;
            pieces.push((piece, Instant::now()));
            if let Some(then) = then.take_if(|_| text.contains(words)) {
                then.await;
            }
        }
    }
}

/// Quotes a word so that a shell takes it literally.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A command on an interactive terminal: the test types, reads the screen, and checks the state afterwards. Ended when
/// dropped.
#[derive(Debug)]
pub struct Seat {
    script: Child,
    keys: ChildStdin,
    output: ChildStdout,
    text: String,
}

/// State of a terminal after the command on it ended.
#[derive(Debug)]
pub struct Left {
    /// Exit code as a shell reports it.
    pub code: i32,
    /// Everything that was shown.
    pub text: String,
    /// Settings of the terminal before and after: `stty -g`.
    pub modes: [String; 2],
}

impl Sluice {
    /// Runs it with `arguments` on a terminal of 40 rows and 200 columns.
    ///
    /// # Panics
    /// If this host has no `script`.
    #[must_use]
    pub fn seated(self, arguments: &[&str]) -> Seat {
        self.seated_at(200, arguments)
    }

    /// The same on a terminal of this many columns.
    ///
    /// # Panics
    /// If this host has no `script`.
    #[must_use]
    pub fn seated_at(mut self, columns: usize, arguments: &[&str]) -> Seat {
        self.command.args(arguments);
        let inner = self.command.as_std();
        let command = std::iter::once(inner.get_program()).chain(inner.get_args());
        let line: Vec<_> = command.map(|word| quoted(&word.to_string_lossy())).collect();
        let modes = "echo \"modes $(stty -g)\"";
        let line = format!(
            "stty rows 40 cols {columns}; {modes}; sh -c {}; echo \"code $?\"; {modes}",
            quoted(&format!("echo \"process $$\"; exec {}", line.join(" ")))
        );
        let mut script = Command::new("script");
        script.args(["--quiet", "--flush", "--command", &line, "/dev/null"]).env_clear();
        script.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut script = script.spawn().unwrap();
        let (keys, output) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        Seat { script, keys, output, text: String::new() }
    }
}

impl Seat {
    /// Types `keys`.
    pub async fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).await.unwrap();
    }

    /// Reads output until `wanted` accepts the screen, and returns the screen. Colours and other looks are left out.
    ///
    /// # Panics
    /// If that takes too long, with the present screen.
    pub async fn sees(&mut self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let reading = async {
            while !wanted(&self.screen()) {
                assert!(self.read_more().await, "{what}: the command has ended: {}", self.text);
            }
        };
        if timeout(PATIENCE, reading).await.is_err() {
            panic!("{what} is not shown: {}", self.screen());
        }
        self.screen()
    }

    /// Returns everything that was shown so far, with its looks.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.text
    }

    /// Returns the last screen that is drawn whole, from its top, without looks. Of a command that draws none, returns
    /// all that it printed.
    fn screen(&self) -> String {
        let mut screens = self.text.split("\x1b[H");
        let printed = screens.next().unwrap_or_default();
        let drawn: Vec<_> = screens.collect();
        if drawn.is_empty() {
            return without_looks(printed);
        }
        let whole = drawn.into_iter().rev().find_map(|screen| screen.split_once("\x1b[J"));
        without_looks(whole.map(|(screen, _)| screen).unwrap_or_default())
    }

    /// Sends a signal to the command.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.word_after("process ").parse().unwrap()).unwrap(), signal).unwrap();
    }

    /// Waits for the end, and returns the state of the terminal.
    pub async fn left(mut self) -> Left {
        if timeout(PATIENCE, async { while self.read_more().await {} }).await.is_err() {
            panic!("it does not end: {}", self.text);
        }
        self.script.wait().await.unwrap();
        let modes: Vec<_> = self.text.split("modes ").skip(1).map(first_word).collect();
        let modes = [modes[0].clone(), modes[1].clone()];
        Left { code: self.word_after("code ").parse().unwrap(), modes, text: self.text }
    }

    /// Returns the word after the last `mark`.
    fn word_after(&self, mark: &str) -> String {
        first_word(self.text.rsplit(mark).next().unwrap())
    }

    /// Reads more output; returns whether there was any.
    async fn read_more(&mut self) -> bool {
        let mut piece = [0; 4096];
        let read = self.output.read(&mut piece).await.unwrap();
        self.text += &String::from_utf8_lossy(&piece[..read]);
        read > 0
    }
}

/// Returns `text` without the sequences that change its look: `ESC [ … m`.
#[must_use]
pub fn without_looks(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_digit() && c != ';');
        match end.map(|end| piece.split_at(end)) {
            Some((_, rest)) if rest.starts_with('m') => plain += &rest[1..],
            _ => plain += &format!("\x1b[{piece}"),
        }
    }
    plain
}

fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or_default().to_owned()
}
