//! The command line on a terminal: `script` gives it one.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use tokio::{io::AsyncReadExt, process::Command, time::timeout};

use crate::sluice::Sluice;

/// Longest pause between two pieces.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a terminal got to show.
#[derive(Debug)]
pub struct Shown {
    /// Exit code.
    pub code: Option<i32>,
    /// Pieces as they came, stdout and stderr together, and when.
    pub pieces: Vec<(String, Instant)>,
}

impl Shown {
    /// All of it, escape sequences included.
    #[must_use]
    pub fn text(&self) -> String {
        self.pieces.iter().map(|(text, _)| text.as_str()).collect()
    }
}

impl Sluice {
    /// Runs it with `arguments` on a terminal to its end.
    ///
    /// # Panics
    /// If there is no `script` on this host (Debian: bsdutils, essential).
    pub async fn on_terminal(self, arguments: &[&str]) -> Shown {
        self.on_terminal_until(arguments, "", async {}).await
    }

    /// The same, and does `then` as soon as the terminal shows `words`.
    ///
    /// # Panics
    /// Likewise, and if they are not shown.
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

/// As a shell wants a word that means nothing to it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
