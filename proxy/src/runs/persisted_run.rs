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
    json::{self, Bounds},
};
use platform_runtime::{file, report, socket};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{claims::DirOwner, quarantine::QuarantinedSlots};

/// Stored state of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PersistedRun {
    pub(super) grant: RunGrant,
    /// Latest epoch that registered it.
    #[serde(default)]
    pub(super) epoch: u64,
    /// Name of its socket's directory; absent if it calls on the shared listener.
    pub(super) socket_dir: Option<SocketDirName>,
    /// Limits that replace the grant's.
    pub(super) budget: Option<Budget>,
    /// Correlations that identify its calls, besides a token.
    pub(super) correlations: BTreeSet<Correlation>,
}

impl PersistedRun {
    /// Returns the owner of its socket directory.
    pub(super) fn owner(&self) -> DirOwner {
        DirOwner::Run(self.grant.run_id.clone())
    }
}

/// Directory of the files, one per run.
#[derive(Debug)]
pub(crate) struct RunStateDir(PathBuf);

impl RunStateDir {
    /// Opens `dir`, and creates it if it is missing.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) fn open(dir: &Path) -> Result<Self, socket::Error> {
        socket::private_dir(dir, 0o700)?;
        Ok(Self(dir.to_owned()))
    }

    /// Returns the path of the directory.
    pub(super) fn dir(&self) -> &Path {
        &self.0
    }

    /// Stores `run` as it is now: a crash leaves the earlier state, or this.
    pub(super) fn write(&self, run: &PersistedRun) -> io::Result<()> {
        write(&self.path(&run.grant.run_id), run)
    }

    /// Stores the quarantined slots of a closed run: a crash leaves the earlier file, or this one.
    pub(super) fn write_quarantined(&self, quarantined: &QuarantinedSlots) -> io::Result<()> {
        write(&self.quarantine_path(&quarantined.run_id), quarantined)
    }

    pub(super) fn remove(&self, run_id: &RunId) {
        match fs::remove_file(self.path(run_id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(run = %run_id, error = report::chain(&error), "stored state of the run not removed");
            }
            _ => {}
        }
    }

    /// Returns the stored state of the run `run_id`, if there is any.
    pub(super) fn find(&self, run_id: &RunId) -> io::Result<Option<PersistedRun>> {
        match read(&self.path(run_id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    /// Returns the stored runs that are `wanted`, and the runs with unreadable files, which are left alone.
    pub(super) fn all(
        &self,
        wanted: impl Fn(&RunId) -> bool,
    ) -> io::Result<(Vec<PersistedRun>, Vec<NotReady>)> {
        let mut all = Vec::new();
        let mut unreadable = Vec::new();
        for (run_id, path) in self.files("json")?.into_iter().filter(|(run_id, _)| wanted(run_id)) {
            match read(&path) {
                Ok(persisted) => all.push(persisted),
                Err(error) => {
                    let why = format!("cannot read {}: {error}", path.display());
                    unreadable.push(NotReady::RunNotOpen { run_id, why });
                }
            }
        }
        Ok((all, unreadable))
    }

    /// Returns the quarantined slots of closed runs. A file that cannot be read is logged and left alone.
    pub(super) fn all_quarantined(&self) -> io::Result<Vec<QuarantinedSlots>> {
        let mut all = Vec::new();
        for (run_id, path) in self.files("rest")? {
            match read(&path) {
                Ok(quarantined) => all.push(quarantined),
                Err(error) => {
                    let error = report::chain(&error);
                    tracing::error!(run = %run_id, error, "quarantine not resumed: its file cannot be read");
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
            let run_id = path.file_stem().and_then(|name| RunId::parse(name.to_str()?).ok());
            if path.extension().is_some_and(|extension| extension == kind) {
                files.extend(run_id.map(|run_id| (run_id, path)));
            }
        }
        Ok(files)
    }

    fn path(&self, run_id: &RunId) -> PathBuf {
        self.0.join(format!("{run_id}.json"))
    }

    /// Returns the path of the file with the quarantined slots of the run `run_id`.
    pub(super) fn quarantine_path(&self, run_id: &RunId) -> PathBuf {
        self.0.join(format!("{run_id}.rest"))
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    json::from_slice(&file::own(path)?, Bounds::STORED)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    file::replace(path, 0o600, &serde_json::to_vec(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_stored_without_an_epoch_is_in_epoch_0() {
        let persisted: PersistedRun = serde_json::from_str(
            r#"{"grant":{"run_id":"r1","account":"acct-1","graph":"sandbox:agent"},
                "socket_dir":null,"budget":null,"correlations":[]}"#,
        )
        .unwrap();
        assert_eq!(persisted.epoch, 0);
    }

    #[test]
    fn a_stored_run_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let runs = RunStateDir::open(dir.path()).unwrap();
        let grant =
            serde_json::from_str(r#"{"run_id":"r1","account":"acct-1","graph":"sandbox:agent"}"#).unwrap();
        let mut persisted = PersistedRun {
            grant,
            epoch: 3,
            socket_dir: Some(SocketDirName::from_random(7)),
            budget: Some(Budget { requests: Some(3), ..Budget::default() }),
            correlations: BTreeSet::from([Correlation::Trace(u128::MAX), Correlation::Slot(1)]),
        };
        runs.write(&persisted).unwrap();
        fs::write(dir.path().join("r2.json"), "{\"grant\":").unwrap();
        fs::write(dir.path().join("r3.new"), "").unwrap();
        let (all, unreadable) = runs.all(|_| true).unwrap();
        assert_eq!(all, [persisted.clone()]);
        assert!(matches!(&unreadable[..], [NotReady::RunNotOpen { run_id, .. }] if run_id.as_str() == "r2"));
        assert_eq!(runs.all(|_| false).unwrap(), (vec![], vec![]));
        persisted.correlations.clear();
        runs.write(&persisted).unwrap();
        assert_eq!(RunStateDir::open(dir.path()).unwrap().all(|_| true).unwrap().0, [persisted.clone()]);
        runs.remove(&persisted.grant.run_id);
        runs.remove(&persisted.grant.run_id);
        assert_eq!(runs.all(|_| true).unwrap().0, []);
        assert!(dir.path().join("r2.json").exists());
    }
}
