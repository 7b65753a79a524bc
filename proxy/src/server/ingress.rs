//! Defines where a request comes from: its listener and its connection.

use std::sync::Arc;

use platform_core::{grant::Listener, id::GatewayId};
use platform_runtime::settings::Serves;

use super::connection_state::ConnectionState;
use crate::run::Run;

/// Listener and connection that a request arrived on.
#[derive(Debug, Clone)]
pub(crate) struct Ingress {
    pub(crate) listener: ListenerKind,
    pub(crate) connection_state: ConnectionState,
}

impl Ingress {
    /// Returns whether a gateway reads the answers. It must not receive an error that makes it lock a
    /// provider.
    pub(crate) const fn serves_gateways(&self) -> bool {
        matches!(self.listener, ListenerKind::Shared(Serves::Gateways) | ListenerKind::Gateway(_))
    }
}

/// Listener that a call arrived on.
#[derive(Debug, Clone)]
pub(crate) enum ListenerKind {
    /// The socket of this run.
    Run(Arc<Run>),
    /// The listener that runs share.
    Shared(Serves),
    /// The socket of this gateway.
    Gateway(GatewayId),
}

impl ListenerKind {
    /// Returns whether `run` may call on this listener.
    pub(crate) fn is_for(&self, run: &Run) -> bool {
        match (self, &run.grant.listener) {
            (Self::Run(own), _) => own.grant.run_id == run.grant.run_id,
            (Self::Shared(_), Listener::Shared) => true,
            (Self::Gateway(own), Listener::Gateway { gateway }) => own == gateway,
            (Self::Shared(_) | Self::Gateway(_), _) => false,
        }
    }
}
