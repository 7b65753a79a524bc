//! Connections to gateways: one to each, made when the first run needs it and shared by all runs that this process lives.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use gateway_bridge::{DeviceKey, Endpoint, Hello};
use platform_core::{
    grant::Listener,
    id::{AccountId, GatewayId, GatewayProvider, RunId},
    secret::Secret,
    token::{RunToken, UnixSeconds},
};
use platform_runtime::{
    random,
    settings::{self, Agent, NoGateway, Settings, token_secrets},
};
use tokio::{
    sync::{AcquireError, Mutex, Semaphore, SemaphorePermit},
    time::timeout,
};

use super::{Error, Place, secrets, trust};

/// How long a run waits for a connection. A gateway that starts takes 12 to 26 s.
const PATIENCE: Duration = Duration::from_secs(40);

/// All gateways that are configured.
#[derive(Debug, Default)]
pub(crate) struct Links(BTreeMap<GatewayId, Link>);

/// The way to one gateway.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: GatewayId,
    pub(crate) gateway: settings::Gateway,
    pub(crate) place: Place,
    token_secrets_file: Option<PathBuf>,
    open: Mutex<Option<gateway_bridge::Gateway>>,
    /// Places for sessions at work.
    places: Semaphore,
}

impl Links {
    /// Those in `settings`; none is connected yet.
    pub(crate) fn of(settings: &Settings) -> Self {
        let link = |(id, gateway): (&GatewayId, &settings::Gateway)| {
            let link = Link {
                id: id.clone(),
                gateway: gateway.clone(),
                place: Place::of(settings, id, gateway),
                token_secrets_file: settings.proxy.token_secrets_file.clone(),
                open: Mutex::default(),
                places: Semaphore::new(gateway.sessions as usize),
            };
            (id.clone(), link)
        };
        Self(settings.gateways.iter().map(link).collect())
    }

    /// The one of `agent`'s gateways that a run of `account` is to be a session of.
    pub(crate) fn of_run(&self, agent: &Agent, account: &AccountId) -> Result<&Link, Error> {
        let configured = agent.gateways.iter().filter_map(|id| self.0.get(id));
        let mut serving = configured.filter(|link| link.gateway.serves(account));
        serving.next().ok_or_else(|| Error::ServesNot { account: account.clone() })
    }

    /// The one of this name.
    pub(crate) fn named(&self, id: &str) -> Result<&Link, Error> {
        let found = self.0.iter().find(|(known, _)| known.as_str() == id);
        let found = found.map(|(_, link)| link);
        Ok(found.ok_or_else(|| NoGateway::among(self.0.keys(), id))?)
    }
}

impl Link {
    /// Where its calls come in at the proxy.
    pub(crate) fn listener(&self) -> Listener {
        if self.gateway.is_sealed() {
            Listener::Gateway { gateway: self.id.clone() }
        } else {
            Listener::Shared
        }
    }

    /// A place among its sessions at work, for as long as it is kept.
    pub(crate) async fn place_at_work(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.places.acquire().await
    }

    /// The gateway, connected, and what it says of itself.
    pub(crate) async fn connected(&self) -> Result<(gateway_bridge::Gateway, Hello), Error> {
        let gateway = {
            let mut open = self.open.lock().await;
            match &*open {
                Some(gateway) => gateway.clone(),
                None => open.insert(gateway_bridge::Gateway::open(self.settings()?)).clone(),
            }
        };
        match timeout(PATIENCE, gateway.ready()).await {
            Ok(Ok(hello)) => Ok((gateway, hello)),
            Ok(Err(source)) => {
                // Somebody mends it, and the next run begins anew.
                self.open.lock().await.take();
                let gateway = self.id.clone();
                Err(match source {
                    gateway_bridge::Error::PairingRequired { .. }
                    | gateway_bridge::Error::MissingScopes { .. } => Error::Unpaired { gateway, source },
                    source => Error::Unusable { gateway, source },
                })
            }
            Err(_elapsed) => {
                Err(Error::Away { gateway: self.id.clone(), patience: PATIENCE, source: gateway.trouble() })
            }
        }
    }

    /// What a connection to it is made with.
    pub(crate) fn settings(&self) -> Result<gateway_bridge::Settings, Error> {
        let endpoint: Endpoint = self.place.endpoint().parse()?;
        let token = secrets::token(&self.place.token())?;
        let mut settings = gateway_bridge::Settings::new(endpoint, Some(token));
        settings.tls = self.gateway.ca_file.as_deref().map(trust::only).transpose()?;
        settings.device = self.gateway.device_key_file.as_deref().map(DeviceKey::read).transpose()?;
        settings.provider = Some(GatewayProvider::parse(&self.gateway.provider)?);
        settings.seed = u64::try_from(random::bits() >> 64).unwrap_or_default();
        Ok(settings)
    }

    /// A token of `run`, for a gateway that sends it with the run's calls.
    pub(super) fn run_token(&self, run: &RunId, expiry: UnixSeconds) -> Result<Secret, Error> {
        let secrets = token_secrets::read(self.token_secrets_file.as_deref(), None)?;
        let secret = secrets.minting().ok_or_else(|| Error::NoSecret(self.id.clone()))?;
        Ok(RunToken { run: run.clone(), attempt: 0, expiry }.mint(secret))
    }
}
