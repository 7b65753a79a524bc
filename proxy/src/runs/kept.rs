//! Stores the open runs on disk: a later proxy opens them again by itself, at the same paths.
//!
//! There is one file per run, written before its listener opens and removed after the run is closed. Another file
//! then holds its slots in quarantine. Spending is not stored here, the journal has it; secrets are not stored
//! either. A write is not synced: if the machine goes down, no container outlives it.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use platform_core::{
    budget::Budget,
    control::{Correlation, NotReady},
    grant::RunGrant,
    id::{RunId, SocketDirName},
};
use platform_runtime::{file, socket};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{claims::Owner, resting::Resting};

/// Stored state of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    pub(super) grant: RunGrant,
    /// Latest epoch in whose name it was registered.
    #[serde(default)]
    pub(super) epoch: u64,
    /// Name of its socket's directory; absent if it calls on the shared listener.
    pub(super) socket_dir: Option<SocketDirName>,
    /// Limits that replace the grant's.
    pub(super) budget: Option<Budget>,
    /// Correlations that identify its calls, besides a token.
    pub(super) correlations: BTreeSet<Correlation>,
}

impl Kept {
    /// Returns the owner of its socket directory.
    pub(super) fn owner(&self) -> Owner {
        Owner::Run(self.grant.run_id.clone())
    }
}

/// Directory of the files.
#[derive(Debug)]
pub(crate) struct KeptRuns(PathBuf);

impl KeptRuns {
    /// Opens `dir`, and makes it if it is missing.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn open(dir: &Path) -> Result<Self, socket::Error> {
        socket::private_dir(dir, 0o700)?;
        Ok(Self(dir.to_owned()))
    }

    /// Returns the path of the directory.
    pub(super) fn dir(&self) -> &Path {
        &self.0
    }

    /// Stores `run` as it is now: a crash leaves the earlier state, or this.
    pub(super) fn write(&self, run: &Kept) -> io::Result<()> {
        put(&self.path(&run.grant.run_id), run)
    }

    /// Stores the quarantined slots of a closed run, likewise.
    pub(super) fn write_resting(&self, resting: &Resting) -> io::Result<()> {
        put(&self.resting_path(&resting.run), resting)
    }

    pub(super) fn remove(&self, run: &RunId) {
        match fs::remove_file(self.path(run)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%run, %error, "what was kept of the run stays behind");
            }
            _ => {}
        }
    }

    /// Returns the stored state of `run`, if there is any.
    pub(super) fn find(&self, run: &RunId) -> io::Result<Option<Kept>> {
        match read(&self.path(run)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    /// Returns the stored runs that are `wanted`, and the runs whose files cannot be read, which are left alone.
    pub(super) fn all(&self, wanted: impl Fn(&RunId) -> bool) -> io::Result<(Vec<Kept>, Vec<NotReady>)> {
        let (mut all, mut unreadable) = (Vec::new(), Vec::new());
        for (run, path) in self.files("json")?.into_iter().filter(|(run, _)| wanted(run)) {
            match read(&path) {
                Ok(kept) => all.push(kept),
                Err(error) => {
                    let why = format!("cannot read {}: {error}", path.display());
                    unreadable.push(NotReady::RunNotOpen { run, why });
                }
            }
        }
        Ok((all, unreadable))
    }

    /// Returns the quarantined slots of closed runs. A file that cannot be read is logged and left alone.
    pub(super) fn all_resting(&self) -> io::Result<Vec<Resting>> {
        let mut all = Vec::new();
        for (run, path) in self.files("rest")? {
            match read(&path) {
                Ok(resting) => all.push(resting),
                Err(error) => {
                    tracing::error!(%run, %error, "the run's slots do not rest: their file cannot be read")
                }
            }
        }
        Ok(all)
    }

    /// Lists the files of a kind, each named after its run.
    fn files(&self, kind: &str) -> io::Result<Vec<(RunId, PathBuf)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let path = entry?.path();
            let run = path.file_stem().and_then(|name| RunId::parse(name.to_str()?).ok());
            if path.extension().is_some_and(|extension| extension == kind) {
                files.extend(run.map(|run| (run, path)));
            }
        }
        Ok(files)
    }

    fn path(&self, run: &RunId) -> PathBuf {
        self.0.join(format!("{run}.json"))
    }

    /// Returns the path of the file with the quarantined slots of `run`.
    pub(super) fn resting_path(&self, run: &RunId) -> PathBuf {
        self.0.join(format!("{run}.rest"))
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&file::own(path)?)?)
}

fn put(path: &Path, what: &impl Serialize) -> io::Result<()> {
    file::replace(path, 0o600, &serde_json::to_vec(what)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_kept_before_there_were_epochs_is_in_the_first() {
        let kept: Kept = serde_json::from_str(
            r#"{"grant":{"run_id":"r1","account":"acct-1","graph":"sandbox:agent"},
                "socket_dir":null,"budget":null,"correlations":[]}"#,
        )
        .unwrap();
        assert_eq!(kept.epoch, 0);
    }

    #[test]
    fn what_is_kept_is_found_again_and_what_is_no_run_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let runs = KeptRuns::open(dir.path()).unwrap();
        let grant =
            serde_json::from_str(r#"{"run_id":"r1","account":"acct-1","graph":"sandbox:agent"}"#).unwrap();
        let mut kept = Kept {
            grant,
            epoch: 3,
            socket_dir: Some(SocketDirName::from_random(7)),
            budget: Some(Budget { requests: Some(3), ..Budget::default() }),
            correlations: BTreeSet::from([Correlation::Trace(u128::MAX), Correlation::Slot(1)]),
        };
        runs.write(&kept).unwrap();
        fs::write(dir.path().join("r2.json"), "{\"grant\":").unwrap();
        fs::write(dir.path().join("r3.new"), "").unwrap();
        let (all, unreadable) = runs.all(|_| true).unwrap();
        assert_eq!(all, [kept.clone()]);
        assert!(matches!(&unreadable[..], [NotReady::RunNotOpen { run, .. }] if run.as_str() == "r2"));
        assert_eq!(runs.all(|_| false).unwrap(), (vec![], vec![]));
        kept.correlations.clear();
        runs.write(&kept).unwrap();
        assert_eq!(KeptRuns::open(dir.path()).unwrap().all(|_| true).unwrap().0, [kept.clone()]);
        runs.remove(&kept.grant.run_id);
        runs.remove(&kept.grant.run_id);
        assert_eq!(runs.all(|_| true).unwrap().0, []);
        assert!(dir.path().join("r2.json").exists());
    }
}
