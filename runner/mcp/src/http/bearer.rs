//! bearer gives requests the credential of an account, and keeps answers with that credential from going on.

use std::{collections::VecDeque, fmt, sync::Arc};

use http::HeaderValue;
use platform_core::{
    connection::{ConnectionId, ConnectionProvider, ConnectionScope},
    host_tools::ToolCode,
    id::AccountId,
    secret::Secret,
};
use platform_runtime::{report, sync::Mutex};
use runner_connections::ConnectionBroker;

use super::echo::has_secret;
use crate::error::ServerError;

/// Most credentials of a session that are looked for: it gets a new one at each refresh.
const MAX_SENT: usize = 8;

/// Credential that is sent with each request.
pub(crate) struct Bearer {
    connections: ConnectionBroker,
    account: AccountId,
    provider: ConnectionProvider,
    /// Credentials that were sent, the last one at the end.
    sent: Mutex<VecDeque<Arc<Secret>>>,
    /// Connection of the last credential; none if there was no credential for the last request.
    connection: Mutex<Option<ConnectionId>>,
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bearer").field("provider", &self.provider).finish_non_exhaustive()
    }
}

impl Bearer {
    /// Creates the credential of an account at a provider. It is resolved for each request.
    pub(crate) fn new(
        connections: ConnectionBroker,
        account: AccountId,
        provider: ConnectionProvider,
    ) -> Self {
        Self { connections, account, provider, sent: Mutex::default(), connection: Mutex::default() }
    }

    /// Returns the connection with the credential of the last request.
    pub(super) fn connection(&self) -> Option<ConnectionId> {
        self.connection.lock().clone()
    }

    /// Returns the value of the header with the credential.
    pub(super) async fn header(&self) -> Result<HeaderValue, ServerError> {
        let everything = ConnectionScope::everything();
        let resolved = self.connections.credential(&self.account, &self.provider, &everything).await;
        *self.connection.lock() = resolved.as_ref().ok().map(|credential| credential.connection.clone());
        let credential = resolved.map_err(|error| ServerError::Credential {
            code: error.tool_code(),
            message: error.message_for_agent(),
            detail: report::chain(&error),
        })?;
        let value = HeaderValue::try_from(format!("Bearer {}", credential.token.expose()));
        let odd = "the credential fits no header";
        let mut value = value.map_err(|_odd| ServerError::Credential {
            code: ToolCode::ProviderRefused,
            message: odd.to_owned(),
            detail: odd.to_owned(),
        })?;
        value.set_sensitive(true);
        self.remember(credential.token);
        Ok(value)
    }

    fn remember(&self, token: Arc<Secret>) {
        let mut sent = self.sent.lock();
        if sent.iter().any(|known| known.expose() == token.expose()) {
            return;
        }
        if sent.len() == MAX_SENT {
            sent.pop_front();
        }
        sent.push_back(token);
    }

    /// Checks that no credential of this session is in what the server has sent.
    ///
    /// # Errors
    /// [`ServerError::CredentialEchoed`].
    pub(super) fn check(&self, received: &[u8]) -> Result<(), ServerError> {
        let is_echoed = self.sent.lock().iter().any(|token| has_secret(received, token.expose().as_bytes()));
        if !is_echoed {
            return Ok(());
        }
        self.connections.credential_echoed();
        Err(ServerError::CredentialEchoed)
    }
}
