//! launch opens links to servers, each in its way.

use platform_core::id::{AccountId, ToolServerName};
use platform_runtime::settings::{Sandbox, ServerTransport, ToolServer};
use runner_connections::ConnectionBroker;

use crate::{
    containers::ServerContainers,
    error::ServerError,
    http::{Bearer, HttpLink},
    session::Link,
    stdio::LinkBounds,
};

/// Bytes of a message besides the result in it. A list of tools may be as long.
const MAX_ENVELOPE: usize = 1 << 20;

/// Starter of servers.
pub(crate) struct Launcher {
    pub(crate) containers: ServerContainers,
    connections: ConnectionBroker,
}

impl Launcher {
    pub(crate) fn new(sandbox: &Sandbox, connections: ConnectionBroker) -> Self {
        Self { containers: ServerContainers::new(sandbox), connections }
    }

    /// Opens a link to a server, for an account.
    pub(crate) async fn link(
        &self,
        name: &ToolServerName,
        server: &ToolServer,
        account: &AccountId,
    ) -> Result<Link, ServerError> {
        let message = usize::try_from(server.max_result.0).unwrap_or(usize::MAX).saturating_add(MAX_ENVELOPE);
        match &server.transport {
            ServerTransport::Http(url) => {
                let bearer = self.bearer(server, account);
                Ok(Link::Http(Box::new(HttpLink::new(url.clone(), bearer, message)?)))
            }
            ServerTransport::Stdio(stdio) => {
                let bounds = LinkBounds { message, idle: server.idle_timeout.duration() };
                Ok(Link::Stdio(self.containers.start(name, stdio, bounds).await?))
            }
        }
    }

    fn bearer(&self, server: &ToolServer, account: &AccountId) -> Option<Bearer> {
        let provider = server.connection.clone()?;
        Some(Bearer::new(self.connections.clone(), account.clone(), provider))
    }
}
