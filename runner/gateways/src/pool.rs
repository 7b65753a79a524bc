//! Holds the connections to gateways: one to each, opened when the first run needs it and shared by all runs of this
//! process.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gateway_bridge::{DeviceKey, Endpoint, Hello, Scope, Scopes};
use platform_core::{
    grant::{Listener, RunGrant},
    id::{AccountId, GatewayId, GatewayProvider},
    secret::Secret,
    token::{RunToken, UnixSeconds},
};
use platform_outbound::trust::{self, TrustError};
use platform_runtime::{
    random,
    settings::{self, Agent, NoGateway, Settings, token_secrets},
    trust::Trusted,
};
use rustls::{ClientConfig, pki_types::pem};
use tokio::{
    sync::{AcquireError, Mutex, Semaphore, SemaphorePermit},
    time::timeout,
};

use super::{Error, GatewayPaths, secrets};

/// Longest wait of a run for a connection. A gateway that starts takes 12 to 26 s.
const READY_TIMEOUT: Duration = Duration::from_secs(40);

/// Connections to all gateways that are configured.
#[derive(Debug, Default)]
pub struct GatewayPool(BTreeMap<GatewayId, GatewayConnection>);

/// Connection to one gateway, opened when it is needed.
#[derive(Debug)]
pub struct GatewayConnection {
    /// Name of the gateway in the configuration.
    pub id: GatewayId,
    /// Settings of the gateway.
    pub gateway: settings::Gateway,
    pub(crate) paths: GatewayPaths,
    token_secrets_file: Option<PathBuf>,
    open: Mutex<Option<gateway_bridge::Gateway>>,
    /// Permits for active sessions.
    permits: Semaphore,
}

impl GatewayPool {
    /// Builds the connections to the gateways in `settings`; none is open yet.
    pub fn of(settings: &Settings) -> Self {
        let connection = |(id, gateway): (&GatewayId, &settings::Gateway)| {
            let connection = GatewayConnection {
                id: id.clone(),
                gateway: gateway.clone(),
                paths: GatewayPaths::of(settings, id, gateway),
                token_secrets_file: settings.proxy.token_secrets_file.clone(),
                open: Mutex::default(),
                permits: Semaphore::new(gateway.max_concurrent_sessions as usize),
            };
            (id.clone(), connection)
        };
        Self(settings.gateways.iter().map(connection).collect())
    }

    /// Returns the gateway of `agent` in which a run of `account` becomes a session.
    pub fn of_run(&self, agent: &Agent, account: &AccountId) -> Result<&GatewayConnection, Error> {
        let configured = agent.gateways.iter().filter_map(|id| self.0.get(id));
        let mut serving = configured.filter(|connection| connection.gateway.serves(account));
        serving.next().ok_or_else(|| Error::ServesNot { account: account.clone() })
    }

    /// Returns the gateway of this name.
    pub fn named(&self, id: &str) -> Result<&GatewayConnection, Error> {
        let found = self.0.iter().find(|(known, _)| known.as_str() == id);
        let found = found.map(|(_, connection)| connection);
        Ok(found.ok_or_else(|| NoGateway::among(self.0.keys(), id))?)
    }
}

impl GatewayConnection {
    /// Returns the proxy's listener at which its calls come in.
    pub fn listener(&self) -> Listener {
        if self.gateway.is_managed() {
            Listener::Gateway { gateway: self.id.clone() }
        } else {
            Listener::Shared
        }
    }

    /// Waits for a permit for one active session, which is given back on drop.
    pub async fn acquire_session_permit(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.permits.acquire().await
    }

    /// Returns the connected gateway, and what it reports of itself.
    pub async fn connected(&self) -> Result<(gateway_bridge::Gateway, Hello), Error> {
        let gateway = {
            let mut open = self.open.lock().await;
            match &*open {
                Some(gateway) => gateway.clone(),
                None => open.insert(gateway_bridge::Gateway::open(self.settings()?)).clone(),
            }
        };
        match timeout(READY_TIMEOUT, gateway.ready()).await {
            Ok(Ok(hello)) => Ok((gateway, hello)),
            Ok(Err(source)) => {
                // Once an operator has fixed it, the next run opens a new connection.
                self.open.lock().await.take();
                let gateway = self.id.clone();
                Err(match source {
                    gateway_bridge::Error::PairingRequired { .. }
                    | gateway_bridge::Error::MissingScopes { .. } => Error::Unpaired { gateway, source },
                    source => Error::Unusable { gateway, source },
                })
            }
            Err(_elapsed) => Err(Error::Unavailable {
                gateway: self.id.clone(),
                timeout: READY_TIMEOUT,
                source: gateway.trouble(),
            }),
        }
    }

    /// Returns the settings of a connection to it.
    pub fn settings(&self) -> Result<gateway_bridge::Settings, Error> {
        let endpoint: Endpoint = self.paths.endpoint().parse()?;
        let token = secrets::token(&self.paths.token())?;
        let mut settings = gateway_bridge::Settings::new(endpoint, Some(token));
        settings.tls = self.gateway.ca_file.as_deref().map(trust_only).transpose()?;
        settings.device = self.gateway.device_key_file.as_deref().map(DeviceKey::read).transpose()?;
        if self.gateway.is_managed() || self.gateway.approvals {
            // A client with this right says that people answer: turns wait for an approval, and are not refused.
            settings.scopes = Scopes::of([Scope::Admin, Scope::Read, Scope::Write, Scope::Approvals]);
        }
        settings.provider = Some(GatewayProvider::parse(&self.gateway.provider)?);
        settings.seed = u64::try_from(random::bits() >> 64).unwrap_or_default();
        Ok(settings)
    }

    /// Returns a token of the run of `grant`, for a gateway that sends it with the run's calls.
    pub(super) fn run_token(&self, grant: &RunGrant) -> Result<Secret, Error> {
        let secrets = token_secrets::read(self.token_secrets_file.as_deref(), None, &Trusted::own())?;
        let secret = secrets.minting().ok_or_else(|| Error::NoSecret(self.id.clone()))?;
        let expiry = grant.expires.unwrap_or(UnixSeconds(u64::MAX));
        Ok(RunToken { run_id: grant.run_id.clone(), attempt: grant.attempt, expiry }.mint(secret))
    }
}

/// Returns a TLS configuration that trusts the CA certificates in `file`, and no others.
fn trust_only(file: &Path) -> Result<Arc<ClientConfig>, Error> {
    let path = file.to_owned();
    trust::only_file(file).map(Arc::new).map_err(|error| match error {
        TrustError::Unreadable(pem::Error::Io(source)) => {
            Error::File { what: "the CA certificates", path, source }
        }
        _ => Error::NotOne { what: "CA certificate that can be used", path },
    })
}
