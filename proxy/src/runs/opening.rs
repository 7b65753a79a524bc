//! Opens each run once, however many clients ask at the same time. A request waits while the run is being opened.
//! After a successful answer, agents can connect.
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
    Error, Live, NOBODY, Opened, Runs,
    claims::{Claim, Owner},
    door::Door,
    kept::Kept,
};
use crate::run::{Run, Spent};

impl Runs {
    /// Opens a run, or confirms that it is open with this very grant, and moves it to the epoch in `register`. When
    /// this returns, agents can connect. Not cancel safe: other requests may wait for the opening.
    pub(crate) async fn register(&self, register: Register) -> Result<Registered, Error> {
        let run = &register.grant.run_id;
        loop {
            let Some(live) = self.find(run) else {
                fence(run, self.closed.epoch(run), register.epoch)?;
                let kept = self.kept.find(run).map_err(|source| Error::Keep { run: run.clone(), source })?;
                let Some(kept) = kept else {
                    return Ok(self.registered(&*self.open_new(register).await?));
                };
                // It could not be opened again so far. Its stored state, such as its limits, still holds.
                let restored = self.restore_one(kept).await;
                let another_was_faster =
                    matches!(restored, Err(Error::Conflict { .. })) && self.find(run).is_some();
                if !another_was_faster {
                    restored?;
                }
                continue;
            };
            // A failed opening has removed the run before it is reported.
            if *live.opened.wait().await == Opened::Open {
                self.confirm(&live, &register)?;
                return Ok(self.registered(&live));
            }
        }
    }

    async fn open_new(&self, register: Register) -> Result<Arc<Live>, Error> {
        let Register { grant, socket_dir, epoch } = register;
        let run = grant.run_id.clone();
        if self.closed.contains(&run) {
            return Err(Error::Closed { run });
        }
        let socket_dir = matches!(grant.listener, Listener::Unix { .. })
            .then(|| socket_dir.unwrap_or_else(|| SocketDirName::from_random(random::bits())));
        let kept = Kept { grant, epoch, socket_dir, budget: None, correlations: BTreeSet::new() };
        let live = self.place(kept.clone())?;
        let opened = match self.kept.write(&kept) {
            Ok(()) => self.open(&live).await,
            Err(source) => Err(Error::Keep { run: run.clone(), source }),
        };
        if opened.is_err() {
            self.kept.remove(&run);
        }
        self.settle(&live, &opened);
        opened.map(|()| live)
    }

    fn confirm(&self, live: &Live, register: &Register) -> Result<(), Error> {
        // A close in the name of an epoch holds this lock, too.
        let mut kept = live.kept();
        let run = &live.run.grant.run_id;
        fence(run, kept.as_ref().map_or(0, |kept| kept.epoch), register.epoch)?;
        if self.closed.contains(run) {
            return Err(Error::Closed { run: run.clone() });
        }
        if live.run.grant != register.grant || live.run.closing().is_some() {
            return Err(Error::Conflict { run: run.clone() });
        }
        match &mut kept {
            Some(kept) => self.keep(kept, |kept| kept.epoch = register.epoch),
            None => Ok(()),
        }
    }

    /// Lists a run as being opened. [`Runs::open`] and [`Runs::settle`] have to follow.
    pub(super) fn place(&self, kept: Kept) -> Result<Arc<Live>, Error> {
        let grant = kept.grant.clone();
        let run = grant.run_id.clone();
        if run.as_str() == NOBODY || (grant.listener == Listener::Shared && self.shared.is_none()) {
            return Err(Error::NoSuchListener { run });
        }
        let spent = Spent { by_run: self.purse(&run), by_account: self.accounts.of(&grant.account) };
        let new = Run::new(grant, &self.terms.load(), spent)
            .map_err(|source| Error::Unwritable { run: run.clone(), source })?;
        if let Some(budget) = &kept.budget {
            new.spending.allow(budget);
        }
        let claim = kept.socket_dir.as_ref().map(|name| self.claim(name, kept.owner())).transpose()?;
        let live = Arc::new(Live::registered(new, self.door(&kept), claim, kept));
        match self.live.entry(run.clone()) {
            Entry::Occupied(_) => Err(Error::Conflict { run }),
            Entry::Vacant(place) => Ok(Arc::clone(&place.insert(live))),
        }
    }

    /// Opens the listener of a run. If that fails, a directory that was made for it is removed; one that was there before
    /// may be mounted in a container.
    pub(super) async fn open(&self, live: &Live) -> Result<(), Error> {
        let was_there = live.door.is_there();
        let opened = self.bind(live).await;
        if opened.is_err() && !was_there {
            live.door.remove();
        }
        opened
    }

    async fn bind(&self, live: &Live) -> Result<(), Error> {
        let socket = match &live.door {
            Door::Directory(dir) => self.reserve(&dir.name)?.path.join(SOCKET_FILE),
            Door::Path(path) => path.clone(),
            Door::Shared => {
                self.directory.add(&live.run);
                return Ok(());
            }
        };
        self.next_worker().open(Arc::clone(&live.run), socket).await?;
        self.directory.add(&live.run);
        Ok(())
    }

    /// Reports the result of an opening to those that wait for it. After a failure the run is no longer listed.
    pub(super) fn settle(&self, live: &Live, opened: &Result<(), Error>) {
        let run = &live.run.grant.run_id;
        let opened = if opened.is_ok() {
            Opened::Open
        } else {
            self.live.remove(run);
            self.directory.forget(run);
            Opened::Failed
        };
        // It is set only here.
        drop(live.opened.set(opened));
    }

    /// Claims a socket directory, which has to be free or `owner`'s already.
    pub(super) fn claim(&self, name: &SocketDirName, owner: Owner) -> Result<Claim, Error> {
        let taken = |owner| Error::SocketInUse { path: self.socket_dir(name).path, owner };
        self.claims.claim(name, owner).map_err(taken)
    }

    pub(super) fn door(&self, kept: &Kept) -> Door {
        kept.socket_dir.as_ref().map_or(Door::Shared, |name| Door::Directory(self.socket_dir(name)))
    }

    fn registered(&self, live: &Live) -> Registered {
        Registered { socket: live.door.dir().cloned(), shared: self.shared }
    }
}

/// Refuses a request in an epoch earlier than the one that is `known`.
pub(super) fn fence(run: &RunId, known: u64, asked: u64) -> Result<(), Error> {
    if asked < known {
        tracing::warn!(%run, epoch = known, asked, "refused who does not hold the run any more");
        return Err(Error::Fenced { run: run.clone(), epoch: known, asked });
    }
    Ok(())
}
