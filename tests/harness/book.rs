//! Plays pages of the book: the commands of a page are one shell session.

use std::{fs, process::Output, time::Duration};

use platform_runtime::config::Environment;
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

use crate::process::binary;

/// Longest that a page may take. `sluice doctor` starts a container, and so does each run.
const PAGE_TIMEOUT: Duration = Duration::from_secs(110);

/// A page of the documents, with its own host paths and ports.
#[derive(Debug)]
pub struct Page {
    /// Directory in which it is played.
    pub root: TempDir,
    /// The whole text.
    pub text: String,
}

impl Page {
    /// Reads the page at `path` in the repository.
    ///
    /// # Panics
    /// If the page does not exist.
    #[must_use]
    pub fn read(path: &str) -> Self {
        let root = tempfile::Builder::new().prefix("sw-book-").tempdir_in("/tmp").unwrap();
        let path = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { root, text }
    }

    /// Returns the path of its directory.
    #[must_use]
    pub fn root(&self) -> String {
        self.root.path().display().to_string()
    }

    /// Writes `to` for `from` in all that is executed.
    ///
    /// # Panics
    /// If the page does not say `from`.
    #[must_use]
    pub fn with(mut self, from: &str, to: &str) -> Self {
        assert!(self.text.contains(from), "the page does not say {from}");
        self.text = self.text.replace(from, to);
        self
    }

    /// Returns whether the page has this text.
    #[must_use]
    pub fn says(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// Returns the text below a heading, up to the next one.
    ///
    /// # Panics
    /// If the page has no such heading.
    #[must_use]
    pub fn section(&self, heading: &str) -> &str {
        let below = self.text.split_once(&format!("\n{heading}\n")).unwrap().1;
        below.split_once("\n#").map_or(below, |(section, _)| section)
    }

    /// Returns the commands below a heading.
    ///
    /// # Panics
    /// If the page lacks the heading.
    #[must_use]
    pub fn commands(&self, heading: &str) -> String {
        let blocks = self.section(heading).split("```sh\n").skip(1);
        blocks.map(|block| block.split_once("```").unwrap().0).collect()
    }

    /// Moves a directory of the host below the page's own.
    #[must_use]
    pub fn moved(self, path: &str) -> Self {
        let to = format!("{}{path}", self.root());
        self.with(path, &to)
    }

    /// Returns the contents of the blocks in `language`, in order.
    ///
    /// # Panics
    /// If a block does not end.
    #[must_use]
    pub fn blocks(&self, language: &str) -> Vec<String> {
        let begin = format!("\n```{language}\n");
        let blocks = self.text.split(&begin).skip(1);
        blocks.map(|block| block.split_once("\n```").unwrap().0.to_owned() + "\n").collect()
    }

    /// Returns outputs that the page shows whole, in one line.
    fn outputs(&self) -> Vec<String> {
        let outputs = self.blocks("text").into_iter().map(|output| output.trim_end().to_owned());
        outputs.filter(|output| !output.contains(['\n', '…'])).collect()
    }

    /// Runs all commands of the page in one shell, as a reader would, and ends what it leaves running.
    async fn play(&self, environment: &[(&str, &str)]) -> Output {
        let script = format!(
            "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n{}",
            self.blocks("sh").join("\n")
        );
        let programs = binary("sluice").parent().unwrap().display().to_string();
        let path = format!("{programs}:{}", Environment::capture().get("PATH").unwrap_or_default());
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).env("PATH", path).env_remove("SLUICE_CONFIG");
        shell.envs(environment.iter().copied()).current_dir(self.root.path()).kill_on_drop(true);
        let played = timeout(PAGE_TIMEOUT, shell.output()).await;
        played.unwrap_or_else(|_| panic!("the page hangs:\n{script}")).unwrap()
    }

    /// Runs the page, which has to succeed and to print what it shows.
    ///
    /// # Panics
    /// If it fails, hangs, or prints something else.
    pub async fn succeeds(&self, environment: &[(&str, &str)]) -> String {
        let output = self.play(environment).await;
        let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success(), "{}\n--- stdout\n{stdout}\n--- stderr\n{stderr}", output.status);
        for shown in self.outputs() {
            assert!(stdout.contains(&shown), "the page shows {shown:?}\n--- stdout\n{stdout}");
        }
        stdout
    }
}

/// Environment that moves all state, which the page leaves at its defaults, below `root`.
#[must_use]
pub fn own_state(root: &str) -> [(&'static str, String); 7] {
    [
        ("SLUICE_CONFIG", format!("{root}/etc/sluicegate/sluice.toml")),
        ("SLUICE_PROXY_RUN_DIR", format!("{root}/run")),
        ("SLUICE_PROXY_STATE_DIR", format!("{root}/state")),
        ("SLUICE_SANDBOX_STATE_DIR", format!("{root}/runner")),
        ("SLUICE_SANDBOX_WORKSPACE_DIR", format!("{root}/workspaces")),
        ("SLUICE_SANDBOX_INSTALLATION", "book".to_owned()),
        ("SLUICE_STORE_URL", format!("sqlite://{root}/store/sluice.db")),
    ]
}
