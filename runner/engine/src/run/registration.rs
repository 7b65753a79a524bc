//! Registers a run at the data plane: its grant, and the socket or listener where its calls arrive.

use std::path::PathBuf;

use platform_core::{
    control::{Register, Registered, RunState},
    grant::{Listener, RunGrant},
    id::SocketDirName,
};
use platform_runtime::report;
use runner_control_client::{self as data_plane, Lines};
use runner_model::failpoint::Point;
use runner_store::{ResourceKind, ResourceState};

use super::{context::RunContext, error::Error, executor::RunExecutor};

/// Socket of a run that is open at the data plane.
pub(super) struct RunSocket {
    /// Directory of the socket.
    pub(super) dir: PathBuf,
    pub(super) tap: Lines,
}

/// A grant that is open at the data plane, and the data plane's answer.
pub(super) struct OpenGrant {
    pub(super) grant: RunGrant,
    pub(super) registered: Registered,
}

impl RunExecutor<'_> {
    /// Opens the run at the data plane, for the first time in this attempt.
    pub(super) async fn open_socket(&mut self) -> Result<RunSocket, Error> {
        let socket = match self.register_socket().await {
            Err(error) if error.is_refusal() => {
                self.disown(&[ResourceKind::Grant, ResourceKind::Listener]).await?;
                return Err(error);
            }
            registered => registered?,
        };
        Point::Registered.reach();
        Ok(socket)
    }

    /// Opens the run at the data plane, or confirms that it is open, for this worker's epoch.
    pub(super) async fn register_socket(&self) -> Result<RunSocket, Error> {
        let ctx = self.ctx;
        let name = self.socket_dir();
        let unexpected = || data_plane::Error::Unexpected("a run without a socket of its own".to_owned());
        let open = ctx.register(Listener::default(), name.clone()).await?;
        let socket = open.registered.socket.ok_or_else(unexpected)?;
        if Some(&socket.name) != name.as_ref() {
            return Err(Error::RunIdTaken);
        }
        Ok(RunSocket { dir: socket.path, tap: ctx.open_tap().await? })
    }

    /// Records that another owner has the resources of these `kinds`, so that this run does not remove them.
    pub(super) async fn disown(&mut self, kinds: &[ResourceKind]) -> Result<(), Error> {
        if kinds.contains(&ResourceKind::Listener)
            && let Some(dir) = self.socket_dir()
            && let Err(error) = self.ctx.engine.data_plane.release(&dir).await
        {
            // A warm container's listener existed before its run and belongs to the run in any case.
            tracing::warn!(error = report::chain(&error), "socket directory not released");
        }
        let rows = kinds.iter().filter_map(|kind| self.resources.last(*kind));
        let removed = rows.map(|row| row.to(ResourceState::Removed)).collect();
        self.store_changes(removed).await
    }

    /// Returns the name of the run's socket directory.
    fn socket_dir(&self) -> Option<SocketDirName> {
        self.resources.last(ResourceKind::Listener).and_then(|row| SocketDirName::parse(&row.name).ok())
    }
}

impl RunContext<'_> {
    /// Registers the run with the grant that is open at the data plane, or with a new one.
    pub(super) async fn register(
        &self,
        listener: Listener,
        socket_dir: Option<SocketDirName>,
    ) -> Result<OpenGrant, Error> {
        let data_plane = &self.engine.data_plane;
        let registered_before = match self.run.epoch() {
            // No worker held the run before.
            1 => None,
            _ => match self.run.retry(async || data_plane.run(self.run_id()).await).await {
                Err(Error::DataPlane(error)) if error.is_unknown_run() => None,
                view => Some(view?),
            },
        };
        let grant = match registered_before {
            // The grant must be exactly the registered one: previous workers chose its expiry.
            Some(view) if view.state == RunState::Open && view.grant.attempt == self.run.attempt() => {
                view.grant
            }
            _ => self.grant(listener),
        };
        let register = Register { grant, socket_dir, epoch: self.run.epoch() };
        let registered = self.run.retry(async || data_plane.register(&register).await).await?;
        Ok(OpenGrant { grant: register.grant, registered })
    }

    /// Opens the run's tap, after the last line that was recorded.
    pub(super) async fn open_tap(&self) -> Result<Lines, Error> {
        let after = self.events.tap_position();
        self.run.retry(async || self.engine.data_plane.tap(self.run_id(), after).await).await
    }
}
