//! gateway puts the parts together: the catalog, its execution, the socket, and the servers of third parties.

use std::{fmt, sync::Arc};

use platform_core::{
    host_tools::exec::ExecAnswer,
    id::{AccountId, ToolName, ToolServerName},
};
use runner_mcp::ToolServers;
use runner_store::{Error as StoreError, Store};
use tokio_util::sync::CancellationToken;

use crate::{
    catalog::Catalog,
    catalog_entry::CatalogEntry,
    execute::{Executor, TestCaller},
    parts::{GatewayParts, Parts},
    routes::router,
    server::{StartError, ToolServer},
    servers::{AcceptError, ReviewedServer, ReviewedTool, ServerCatalog},
};

/// Host tools of an installation. Clones share what is in flight.
#[derive(Clone)]
pub struct ToolGateway {
    executor: Executor,
    servers: Arc<ServerCatalog>,
    parts: GatewayParts,
}

impl fmt::Debug for ToolGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolGateway").field("executor", &self.executor).finish_non_exhaustive()
    }
}

impl ToolGateway {
    /// Creates the tools. Does no I/O.
    #[must_use]
    pub fn new(store: Store, parts: GatewayParts) -> Self {
        let all = Parts { store: store.clone(), gateway: parts.clone() };
        let servers = ToolServers::new(&parts.settings, parts.connections.clone());
        let servers = Arc::new(ServerCatalog::new(store.clone(), servers));
        let catalog = Catalog::new(&all, Arc::clone(&servers));
        let executor = Executor::new(catalog, store, &parts.settings.tools);
        Self { executor, servers, parts }
    }

    /// Returns all tools, in the order of their names. Starts no server.
    pub async fn catalog(&self) -> Vec<CatalogEntry> {
        self.executor.catalog().entries().await
    }

    /// Binds the tool socket, and serves it until `stop`. Then completes the calls in flight, denies those that wait
    /// for an approval, and ends the servers of third parties.
    ///
    /// # Errors
    /// If the socket cannot be bound.
    pub async fn serve(self, stop: CancellationToken) -> Result<(), StartError> {
        let settings = &self.parts.settings;
        let server = ToolServer::bind(&settings.tool_socket(), &settings.tools.peer_uids)?;
        let router = router(&self.executor, settings.tools.max_request);
        // The socket is this process's: no other one executes calls now.
        tokio::join!(self.executor.settle_abandoned(), server.serve(router, self.executor.clone(), stop));
        self.close().await;
        Ok(())
    }

    /// Runs a tool for an operator. Its arguments are validated as ever. No run has to exist, and nothing is stored.
    pub async fn test(&self, tool: &ToolName, args: &str, caller: &TestCaller) -> ExecAnswer {
        match self.executor.try_out(tool, args, caller).await {
            Ok(result) => ExecAnswer::done(result),
            Err(error) => ExecAnswer::failed(error.code, error.message),
        }
    }

    /// Asks all third-party servers for their tools, or one, and compares these with what was accepted. Starts those that
    /// do not run.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn review(
        &self,
        only: Option<&ToolServerName>,
        account: &AccountId,
    ) -> Result<Vec<ReviewedServer>, StoreError> {
        self.servers.review(only, account).await
    }

    /// Accepts the description of a tool that a review found, for `by`.
    ///
    /// # Errors
    /// [`AcceptError`].
    pub async fn accept(
        &self,
        server: &ToolServerName,
        reviewed: &ReviewedTool,
        by: &str,
    ) -> Result<(), AcceptError> {
        self.servers.accept(server, reviewed, by).await
    }

    /// Ends the sessions with third-party servers, and waits until their containers are gone.
    pub async fn close(&self) {
        self.servers.close().await;
    }
}
