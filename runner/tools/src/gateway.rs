//! gateway puts the parts together: the catalog, its execution, and the socket.

use platform_core::{host_tools::exec::ExecAnswer, id::ToolName};
use runner_store::Store;
use tokio_util::sync::CancellationToken;

use crate::{
    catalog::{Catalog, CatalogEntry},
    execute::{Executor, TestCaller},
    parts::{GatewayParts, Parts},
    routes::router,
    server::{StartError, ToolServer},
};

/// Host tools of an installation. Clones share what is in flight.
#[derive(Debug, Clone)]
pub struct ToolGateway {
    executor: Executor,
    parts: GatewayParts,
}

impl ToolGateway {
    /// Creates the tools. Does no I/O.
    #[must_use]
    pub fn new(store: Store, parts: GatewayParts) -> Self {
        let all = Parts { store: store.clone(), gateway: parts.clone() };
        let executor = Executor::new(Catalog::built_in(&all), store, &parts.settings.tools);
        Self { executor, parts }
    }

    /// Returns all tools, in the order of their names.
    #[must_use]
    pub fn catalog(&self) -> Vec<CatalogEntry> {
        self.executor.catalog().entries()
    }

    /// Binds the tool socket, and serves it until `stop`. Then completes the calls in flight, and denies those that wait
    /// for an approval.
    ///
    /// # Errors
    /// If the socket cannot be bound.
    pub async fn serve(self, stop: CancellationToken) -> Result<(), StartError> {
        let settings = &self.parts.settings;
        let server = ToolServer::bind(&settings.tool_socket(), &settings.tools.peer_uids)?;
        let router = router(&self.executor, settings.tools.max_request);
        // The socket is this process's: no other one executes calls now.
        tokio::join!(self.executor.settle_abandoned(), server.serve(router, self.executor.clone(), stop));
        Ok(())
    }

    /// Runs a tool for an operator. Its arguments are validated as ever. No run has to exist, and nothing is stored.
    pub async fn test(&self, tool: &ToolName, args: &str, caller: &TestCaller) -> ExecAnswer {
        match self.executor.try_out(tool, args, caller).await {
            Ok(result) => ExecAnswer::done(result),
            Err(error) => ExecAnswer::failed(error.code, error.message),
        }
    }
}
