//! instances keeps the sessions of all servers: one for each account that calls, or one for all if they share it.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use platform_core::id::{AccountId, ToolServerName};
use platform_runtime::{
    report,
    retry::Backoff,
    settings::{ServerTransport, Settings, ToolServer},
    sync::Mutex,
    task,
};
use runner_connections::ConnectionBroker;
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, sleep_until, timeout},
};

use crate::{error::ServerError, launch::Launcher, session::ServerSession};

/// Longest start of a server.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Delays before a server that broke off is started again.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
/// Age from which on the end of a session is not a sign of a server that cannot run.
const MIN_STABLE_AGE: Duration = Duration::from_secs(60);
/// Time between two looks at a session with a last call that began long ago, and may go on.
const IDLE_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait for the removal of containers at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Servers of an installation. Clones share their sessions.
#[derive(Clone)]
pub struct ToolServers {
    shared: Arc<ServerRegistry>,
}

struct ServerRegistry {
    servers: BTreeMap<ToolServerName, ToolServer>,
    launcher: Launcher,
    instances: Mutex<BTreeMap<InstanceKey, Arc<Instance>>>,
}

/// Server, and the account that it serves; none if all share it.
type InstanceKey = (ToolServerName, Option<AccountId>);

/// Instance of a server.
struct Instance {
    state: Arc<AsyncMutex<InstanceState>>,
    last_use: Mutex<Instant>,
}

/// State of an instance.
struct InstanceState {
    session: Option<Arc<ServerSession>>,
    started: Instant,
    backoff: Backoff,
    /// Time before which it is not started, and the reason of its last end.
    blocked: Option<(Instant, ServerError)>,
}

impl fmt::Debug for ToolServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.shared.servers.keys()).finish()
    }
}

impl ToolServers {
    /// Creates the servers of `settings`. Starts none.
    #[must_use]
    pub fn new(settings: &Settings, connections: ConnectionBroker) -> Self {
        let launcher = Launcher::new(&settings.sandbox, connections);
        let servers = settings.tools.servers.clone();
        Self { shared: Arc::new(ServerRegistry { servers, launcher, instances: Mutex::default() }) }
    }

    /// Returns the settings of all servers.
    #[must_use]
    pub fn settings(&self) -> &BTreeMap<ToolServerName, ToolServer> {
        &self.shared.servers
    }

    /// Returns the session of `account` with a server. Starts the server if it does not run, unless it broke off a moment
    /// ago. A caller that leaves does not stop the start.
    ///
    /// # Errors
    /// [`ServerError`]. The server was sent no call.
    pub async fn session(
        &self,
        name: &ToolServerName,
        account: &AccountId,
    ) -> Result<Arc<ServerSession>, ServerError> {
        let unknown = || ServerError::Unknown { name: name.to_string() };
        let server = self.shared.servers.get(name).ok_or_else(unknown)?;
        let instance = self.instance(name, server, account).await?;
        let mut state = Arc::clone(&instance.state).lock_owned().await;
        if let Some(session) = state.alive()? {
            return Ok(session);
        }
        let shared = Arc::clone(&self.shared);
        let name = name.clone();
        let server = server.clone();
        let account = account.clone();
        let starting = task::spawn("start of a tool server", async move {
            let opened = async {
                ServerSession::open(shared.launcher.link(&name, &server, &account).await?, &server).await
            };
            let opened = match timeout(START_TIMEOUT, opened).await {
                Ok(opened) => opened,
                Err(_elapsed) => Err(ServerError::TimedOut { seconds: START_TIMEOUT.as_secs() }),
            };
            let session = state.begin(&name, opened)?;
            if matches!(server.transport, ServerTransport::Http(_)) {
                let ending = instance.end_when_idle(Arc::downgrade(&session), server.idle_timeout.duration());
                drop(task::spawn("idle session of a tool server", ending));
            }
            Ok(session)
        });
        starting.await.unwrap_or(Err(ServerError::Stopped))
    }

    /// Ends all sessions, and waits until their containers are gone.
    pub async fn close(&self) {
        let instances = std::mem::take(&mut *self.shared.instances.lock());
        for instance in instances.into_values() {
            instance.end().await;
        }
        self.shared.launcher.containers.tasks.close();
        if timeout(CLOSE_TIMEOUT, self.shared.launcher.containers.tasks.wait()).await.is_err() {
            tracing::warn!("containers of tool servers not removed in time; left for gc");
        }
        self.shared.launcher.containers.tasks.reopen();
    }

    /// Returns the instance for `account`. Makes room for it if there are too many.
    async fn instance(
        &self,
        name: &ToolServerName,
        server: &ToolServer,
        account: &AccountId,
    ) -> Result<Arc<Instance>, ServerError> {
        let key = (name.clone(), (!server.is_shared).then(|| account.clone()));
        let (instance, surplus) = self.shared.find_or_add(key, server)?;
        if let Some(surplus) = surplus {
            surplus.end().await;
        }
        *instance.last_use.lock() = Instant::now();
        Ok(instance)
    }
}

impl ServerRegistry {
    /// Returns the instance of `key`, and the one that has to go for it.
    fn find_or_add(
        &self,
        key: InstanceKey,
        server: &ToolServer,
    ) -> Result<(Arc<Instance>, Option<Arc<Instance>>), ServerError> {
        let mut instances = self.instances.lock();
        if let Some(found) = instances.get(&key) {
            return Ok((Arc::clone(found), None));
        }
        let of_server = instances.iter().filter(|((name, _), _)| *name == key.0);
        let count = of_server.clone().count();
        let mut surplus = None;
        if count >= server.max_instances as usize {
            let idle = of_server.filter(|(_, instance)| instance.is_idle());
            let oldest =
                idle.min_by_key(|(_, instance)| *instance.last_use.lock()).map(|(key, _)| key.clone());
            let oldest = oldest.ok_or(ServerError::Busy { count: server.max_instances })?;
            surplus = instances.remove(&oldest);
        }
        let instance = Arc::new(Instance::new());
        instances.insert(key, Arc::clone(&instance));
        Ok((instance, surplus))
    }
}

impl Instance {
    fn new() -> Self {
        let state = InstanceState { session: None, started: Instant::now(), backoff: BACKOFF, blocked: None };
        Self { state: Arc::new(AsyncMutex::new(state)), last_use: Mutex::new(Instant::now()) }
    }

    /// Returns whether no call uses it.
    fn is_idle(&self) -> bool {
        let Ok(state) = self.state.try_lock() else { return false };
        state.session.as_ref().is_none_or(|session| Arc::strong_count(session) == 1)
    }

    /// Ends a session that has had no call for `idle`. A session over stdio ends by itself.
    async fn end_when_idle(self: Arc<Self>, session: Weak<ServerSession>, idle: Duration) {
        let mut due = *self.last_use.lock() + idle;
        let instance = Arc::downgrade(&self);
        drop(self);
        while session.strong_count() > 0 {
            sleep_until(due).await;
            let Some(instance) = instance.upgrade() else { return };
            if let Some(session) = instance.take_idle(idle) {
                return session.close().await;
            }
            due = (*instance.last_use.lock() + idle).max(Instant::now() + IDLE_POLL_INTERVAL);
        }
    }

    /// Takes the session, if no call uses it and the last one began `idle` ago.
    fn take_idle(&self, idle: Duration) -> Option<Arc<ServerSession>> {
        let mut state = self.state.try_lock().ok()?;
        let is_used = Arc::strong_count(state.session.as_ref()?) > 1;
        if is_used || self.last_use.lock().elapsed() < idle { None } else { state.session.take() }
    }

    async fn end(&self) {
        let session = self.state.lock().await.session.take();
        if let Some(session) = session {
            session.close().await;
        }
    }
}

impl InstanceState {
    /// Returns the session if it goes on; `None` if a new one may begin.
    ///
    /// # Errors
    /// [`ServerError::Restarting`] if the server broke off a moment ago.
    fn alive(&mut self) -> Result<Option<Arc<ServerSession>>, ServerError> {
        if let Some(session) = &self.session {
            match session.ended() {
                None => return Ok(Some(Arc::clone(session))),
                Some(reason) => {
                    self.session = None;
                    if self.started.elapsed() >= MIN_STABLE_AGE {
                        self.backoff.reset();
                    }
                    // Ended here, for lack of calls.
                    if reason != ServerError::Stopped {
                        self.block(reason);
                    }
                }
            }
        }
        match &self.blocked {
            Some((until, reason)) if *until > Instant::now() => {
                let wait_s = until.saturating_duration_since(Instant::now()).as_secs() + 1;
                Err(ServerError::Restarting { wait_s, reason: Box::new(reason.clone()) })
            }
            _ => Ok(None),
        }
    }

    fn block(&mut self, reason: ServerError) {
        self.blocked = Some((Instant::now() + self.backoff.next_delay(), reason));
    }

    fn begin(
        &mut self,
        name: &ToolServerName,
        opened: Result<ServerSession, ServerError>,
    ) -> Result<Arc<ServerSession>, ServerError> {
        match opened {
            Ok(session) => {
                let session = Arc::new(session);
                self.session = Some(Arc::clone(&session));
                self.started = Instant::now();
                self.blocked = None;
                Ok(session)
            }
            Err(error) => {
                tracing::warn!(server = %name, error = report::chain(&error), "tool server not started");
                // The account may get a credential at any time.
                if !matches!(error, ServerError::Credential { .. }) {
                    self.block(error.clone());
                }
                Err(error)
            }
        }
    }
}
