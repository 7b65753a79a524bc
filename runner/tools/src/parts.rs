//! parts holds what the tools use: the store, the settings, and credentials.

use std::{fmt, sync::Arc};

use platform_runtime::settings::Settings;
use runner_connections::ConnectionBroker;
use runner_github::CredentialSource;
use runner_repos::Refresher;
use runner_store::Store;

/// Parts of the control plane that tools use besides the store. A tool is unavailable if its part is missing.
#[derive(Clone)]
pub struct GatewayParts {
    /// Settings of this installation.
    pub settings: Arc<Settings>,
    /// Source of credentials for repositories.
    pub github: Option<Arc<CredentialSource>>,
    /// Credentials of accounts, which come before those of this installation.
    pub connections: ConnectionBroker,
    /// Refreshes of mirrored repositories, shared with other callers in this process.
    pub refresher: Refresher,
}

impl fmt::Debug for GatewayParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayParts").field("github", &self.github).finish_non_exhaustive()
    }
}

/// Everything that the built-in tools use.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) gateway: GatewayParts,
}
