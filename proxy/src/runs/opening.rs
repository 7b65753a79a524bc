//! Opens each run once, however many clients register it at the same time. A request waits while the run is being
//! opened. After a successful answer, agents can connect.
//!
//! A worker that takes a run over registers it again, with its grant and a later epoch. From then on the proxy
//! refuses requests in an earlier one.

use std::{collections::BTreeSet, sync::Arc};

use dashmap::Entry;
use platform_core::{
    control::{Register, Registered},
    grant::Listener,
    id::{RunId, SocketDirName},
    name::path::SOCKET_FILE,
};
use platform_runtime::random;

use super::{
    Error, LiveRun, OpenOutcome, Runs,
    claims::{Claim, DirOwner},
    persisted_run::PersistedRun,
    run_listener::RunListener,
};
use crate::run::{Run, RunAndAccountBudgets, UNATTRIBUTED};

impl Runs {
    /// Opens a run, or confirms that it is open with this very grant, and sets its epoch to that of `register`. When
    /// this returns, agents can connect. Not cancel safe: other requests may wait for the opening.
    pub(crate) async fn register(&self, register: Register) -> Result<Registered, Error> {
        let run_id = &register.grant.run_id;
        loop {
            let Some(live) = self.find(run_id) else {
                fence(run_id, self.closed.epoch(run_id), register.epoch)?;
                let persisted = self
                    .state_dir
                    .find(run_id)
                    .map_err(|source| Error::NotPersisted { run_id: run_id.clone(), source })?;
                let Some(persisted) = persisted else {
                    return Ok(self.registered(&*self.open_new(register).await?));
                };
                // The stored run could not be opened again so far. Its stored state, such as its limits, still applies.
                let restored = self.restore_one(persisted).await;
                let another_was_faster =
                    matches!(restored, Err(Error::Conflict { .. })) && self.find(run_id).is_some();
                if !another_was_faster {
                    restored?;
                }
                continue;
            };
            // A failed opening has removed the run before it is reported.
            if *live.opened.wait().await == OpenOutcome::Open {
                self.confirm(&live, &register)?;
                return Ok(self.registered(&live));
            }
        }
    }

    async fn open_new(&self, register: Register) -> Result<Arc<LiveRun>, Error> {
        let Register { grant, socket_dir, epoch } = register;
        let run_id = grant.run_id.clone();
        if self.closed.contains(&run_id, grant.attempt) {
            return Err(Error::Closed { run_id });
        }
        // The state of an earlier attempt must not be dropped later, and take the registry's entry with it.
        self.closed.drop_view(&run_id);
        let socket_dir = matches!(grant.listener, Listener::Unix { .. })
            .then(|| socket_dir.unwrap_or_else(|| SocketDirName::from_random(random::bits())));
        let persisted =
            PersistedRun { grant, epoch, socket_dir, budget: None, correlations: BTreeSet::new() };
        let live = self.list_opening(persisted.clone())?;
        let opened = match self.state_dir.write(&persisted) {
            Ok(()) => self.open(&live).await,
            Err(source) => Err(Error::NotPersisted { run_id: run_id.clone(), source }),
        };
        if opened.is_err() {
            self.state_dir.remove(&run_id);
        }
        self.finish_opening(&live, &opened);
        opened.map(|()| live)
    }

    fn confirm(&self, live: &LiveRun, register: &Register) -> Result<(), Error> {
        // A close in the name of an epoch holds this lock, too.
        let mut persisted = live.persisted();
        let run_id = &live.run.grant.run_id;
        fence(run_id, persisted.as_ref().map_or(0, |persisted| persisted.epoch), register.epoch)?;
        if self.closed.contains(run_id, live.run.grant.attempt) {
            return Err(Error::Closed { run_id: run_id.clone() });
        }
        if live.run.grant != register.grant || live.run.closing().is_some() {
            return Err(Error::Conflict { run_id: run_id.clone() });
        }
        match &mut persisted {
            Some(persisted) => self.persist(persisted, |persisted| persisted.epoch = register.epoch),
            None => Ok(()),
        }
    }

    /// Lists a run as being opened. [`Runs::open`] and [`Runs::finish_opening`] have to follow.
    pub(super) fn list_opening(&self, persisted: PersistedRun) -> Result<Arc<LiveRun>, Error> {
        let grant = persisted.grant.clone();
        let run_id = grant.run_id.clone();
        if run_id.as_str() == UNATTRIBUTED || (grant.listener == Listener::Shared && self.shared.is_none()) {
            return Err(Error::NoSuchListener { run_id });
        }
        let spent = RunAndAccountBudgets {
            by_run: self.budget(&run_id),
            by_account: self.accounts.of(&grant.account),
        };
        let new = Run::new(grant, &self.run_defaults.load(), spent)
            .map_err(|source| Error::Unwritable { run_id: run_id.clone(), source })?;
        if let Some(budget) = &persisted.budget {
            new.spending.set_limits(budget);
        }
        let claim =
            persisted.socket_dir.as_ref().map(|name| self.claim(name, persisted.owner())).transpose()?;
        let live = Arc::new(LiveRun::new_registered(new, self.run_listener(&persisted), claim, persisted));
        match self.live.entry(run_id.clone()) {
            Entry::Occupied(_) => Err(Error::Conflict { run_id }),
            Entry::Vacant(entry) => Ok(Arc::clone(&entry.insert(live))),
        }
    }

    /// Opens the listener of a run. If that fails, a directory that was created for it is removed; an earlier one may
    /// be mounted in a container.
    pub(super) async fn open(&self, live: &LiveRun) -> Result<(), Error> {
        let had_dir = live.listener.dir_exists();
        let opened = self.bind(live).await;
        if opened.is_err() && !had_dir {
            live.listener.remove();
        }
        opened
    }

    async fn bind(&self, live: &LiveRun) -> Result<(), Error> {
        let socket = match &live.listener {
            RunListener::Directory(dir) => self.reserve(&dir.name)?.path.join(SOCKET_FILE),
            RunListener::Path(path) => path.clone(),
            RunListener::Shared => {
                self.registry.add(&live.run);
                return Ok(());
            }
        };
        self.least_loaded_thread()?.open(Arc::clone(&live.run), socket).await?;
        self.registry.add(&live.run);
        Ok(())
    }

    /// Reports the result of an opening to those that wait for it. After a failure the run leaves the list.
    pub(super) fn finish_opening(&self, live: &LiveRun, opened: &Result<(), Error>) {
        let run_id = &live.run.grant.run_id;
        let opened = if opened.is_ok() {
            OpenOutcome::Open
        } else {
            self.live.remove(run_id);
            self.registry.forget(run_id);
            OpenOutcome::Failed
        };
        // The result is set only here.
        drop(live.opened.set(opened));
    }

    /// Claims a socket directory, which has to be free or `owner`'s already.
    pub(super) fn claim(&self, name: &SocketDirName, owner: DirOwner) -> Result<Claim, Error> {
        let taken = |owner| Error::SocketInUse { path: self.socket_dir(name).path, owner };
        self.claims.claim(name, owner).map_err(taken)
    }

    pub(super) fn run_listener(&self, persisted: &PersistedRun) -> RunListener {
        persisted
            .socket_dir
            .as_ref()
            .map_or(RunListener::Shared, |name| RunListener::Directory(self.socket_dir(name)))
    }

    fn registered(&self, live: &LiveRun) -> Registered {
        Registered { socket: live.listener.dir().cloned(), shared: self.shared }
    }
}

/// Refuses a request in an epoch earlier than the one that is `known`.
pub(super) fn fence(run_id: &RunId, known: u64, asked: u64) -> Result<(), Error> {
    if asked < known {
        tracing::warn!(run = %run_id, epoch = known, asked, "request refused: the run is in a later epoch");
        return Err(Error::Fenced { run_id: run_id.clone(), epoch: known, asked });
    }
    Ok(())
}
