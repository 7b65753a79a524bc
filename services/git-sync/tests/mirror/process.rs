//! process runs the program, reads its reports and sends it signals.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use platform_core::{name::git_sync, sync_report::SyncReport};
use rustix::process::{Pid, Signal, kill_process};

/// Longest wait for a report.
const REPORT_TIMEOUT: Duration = Duration::from_secs(30);

/// Process that mirrors a repository.
pub(crate) struct GitSync {
    pub(crate) root: PathBuf,
    pub(crate) state: PathBuf,
    child: Child,
    reports: Receiver<SyncReport>,
}

impl GitSync {
    /// Starts the program in `dir`, with a long period, and waits for no report.
    pub(crate) fn start(dir: &Path, url: &str, variables: &[(&str, &str)]) -> Self {
        let [root, state, askpass] = ["root", "state", "askpass"].map(|name| dir.join(name));
        fs::create_dir_all(&root).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_git-sync"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env(git_sync::REPO, url);
        command.env(git_sync::ROOT, &root).env(git_sync::STATE, &state).env(git_sync::ASKPASS, &askpass);
        command.env(git_sync::PERIOD, "1h").envs(variables.iter().copied());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (send, reports) = mpsc::channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let report = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
                if send.send(report).is_err() {
                    return;
                }
            }
        });
        Self { root, state, child, reports }
    }

    /// Returns the next report.
    pub(crate) fn report(&self) -> SyncReport {
        self.reports.recv_timeout(REPORT_TIMEOUT).expect("it reports")
    }

    /// Returns the next report of a sync that succeeded.
    pub(crate) fn synced(&self) -> SyncReport {
        let report = self.report();
        assert_eq!(report.error, None);
        report
    }

    /// Returns the reports that come within `wait`.
    pub(crate) fn reports_within(&self, wait: Duration) -> Vec<SyncReport> {
        let mut reports = Vec::new();
        while let Ok(report) = self.reports.recv_timeout(wait) {
            reports.push(report);
        }
        reports
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends the program by a signal, and returns whether it ended by itself.
    pub(crate) fn stop(&mut self, signal: Signal) -> bool {
        self.signal(signal);
        self.child.wait().unwrap().success()
    }

    /// Returns what a reader finds in a file of the present tree.
    pub(crate) fn shown(&self, file: &str) -> String {
        fs::read_to_string(self.root.join(git_sync::LINK).join(file)).unwrap()
    }

    /// Returns the names of all trees.
    pub(crate) fn trees(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(git_sync::WORKTREES)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for GitSync {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
