//! Checks directories and files that settings name: which users besides the owner can change them or read secrets.
//!
//! State of the proxy is checked as the proxy's own user. That is the user of the process that listens at its control
//! socket, else the owner of `proxy.state_dir`. An agent's user is never taken for it.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use platform_core::{grant::Listener, name::SANDBOX_UID};
use rustix::process::geteuid;

use super::Settings;
use crate::{
    config::{About, Objection},
    trust::{Exposure, Trusted, User, check_directory, check_file, check_secret},
};

type Check = fn(&Path, &Trusted) -> Result<(), Exposure>;

/// A path, the setting that names it, and its check.
struct Named {
    about: About,
    path: PathBuf,
    check: Check,
}

impl Named {
    fn of(setting: &str, path: impl Into<PathBuf>, check: Check) -> Self {
        Self { about: About::Setting(setting.to_owned()), path: path.into(), check }
    }

    /// Returns the configuration file, if there is one.
    fn configuration(file: Option<&Path>) -> Option<Self> {
        Some(Self { about: About::File, path: file?.to_owned(), check: check_file })
    }

    fn exposure(&self, trusted: &Trusted) -> Option<Objection> {
        let problem = (self.check)(&self.path, trusted).err()?.to_string();
        Some(Objection { about: self.about.clone(), problem })
    }
}

fn exposures(named: impl IntoIterator<Item = Named>, trusted: &Trusted) -> Vec<Objection> {
    named.into_iter().filter_map(|named| named.exposure(trusted)).collect()
}

impl Settings {
    /// Returns an objection for each path that a proxy starts with and that other users can change. Those paths are its
    /// directories, the files it reads that are no secrets, and the configuration `file`. Secrets are checked when they
    /// are read.
    #[must_use]
    pub fn exposures_of_proxy(&self, file: Option<&Path>, trusted: &Trusted) -> Vec<Objection> {
        exposures(self.of_proxy().into_iter().chain(Named::configuration(file)), trusted)
    }

    /// Returns the same for the paths that the control plane starts with; see [`Settings::exposures_of_proxy`].
    #[must_use]
    pub fn exposures_of_control_plane(&self, file: Option<&Path>, trusted: &Trusted) -> Vec<Objection> {
        exposures(self.of_control_plane().into_iter().chain(Named::configuration(file)), trusted)
    }

    /// Returns an objection for each path in these settings, and for the configuration `file`, that other users can
    /// change or read.
    #[must_use]
    pub fn exposures(&self, file: Option<&Path>) -> Vec<Objection> {
        let proxys = self.trusted_by_proxy();
        let mut exposed = self.exposures_of_proxy(file, &proxys);
        exposed.extend(exposures(self.further_of_proxy(), &proxys));
        // `sluice up` runs as the proxy's user where it starts the proxy.
        let own = Trusted::own().and(&proxys);
        exposed.extend(exposures(self.of_control_plane(), &own));
        exposed.extend(exposures(self.secrets_of_control_plane(), &own));
        exposed
    }

    /// Returns the sockets of `[runs]` that their agents, or other users, can replace.
    #[must_use]
    pub fn exposed_sockets(&self) -> Vec<Objection> {
        let trusted = self.trusted_by_proxy();
        let exposed = self.runs.iter().filter_map(|(run, settings)| {
            let problem = settings.exposed_directory(&trusted)?.to_string();
            Some(Objection { about: About::Setting(format!("runs.{run}.socket")), problem })
        });
        exposed.collect()
    }

    /// Returns the users that a proxy trusts if it runs as this process's user. If its state directory belongs to
    /// another user, who may be a service's, no advice suggests a change of owner.
    #[must_use]
    pub fn trusted_at_start(&self) -> Trusted {
        let is_services = self.owner_of_state().is_some_and(|owner| owner != 0 && !self.is_agents(owner));
        self.naming_owner(if is_services { None } else { Some(geteuid().as_raw()) })
    }

    /// Returns the users that the proxy trusts, whichever user it runs as.
    #[must_use]
    pub fn trusted_by_proxy(&self) -> Trusted {
        match self.service() {
            Some(service) => Trusted::of(&service),
            None => self.naming_owner(self.owner_of_state()),
        }
    }

    /// Returns this process's own trust. Advice names its user as the owner to set only if that user is `owner`.
    fn naming_owner(&self, owner: Option<u32>) -> Trusted {
        if owner == Some(geteuid().as_raw()) { Trusted::own() } else { Trusted::own().naming_none() }
    }

    /// Returns the user of the proxy, if known and different from this process's. A proxy owns its `proxy.state_dir`,
    /// so a process that listens at its control socket and does not own that directory is not trusted.
    fn service(&self) -> Option<User> {
        let serving = User::serving(&self.proxy.control_socket());
        let owner = self.owner_of_state();
        let user = match (serving, owner) {
            (Some(serving), None) => serving,
            (Some(serving), Some(owner)) => Some(serving).filter(|user| user.uid() == owner)?,
            (None, Some(owner)) => Some(owner).filter(|uid| *uid != 0).map(User::of)?,
            (None, None) => return None,
        };
        let is_known = user.uid() != geteuid().as_raw() && !self.is_agents(user.uid());
        is_known.then_some(user)
    }

    fn owner_of_state(&self) -> Option<u32> {
        Some(fs::metadata(&self.proxy.state_dir).ok()?.uid())
    }

    /// Returns whether agents run as `uid`.
    fn is_agents(&self, uid: u32) -> bool {
        let is_peer =
            |listener: &Listener| matches!(listener, Listener::Unix { peer_uid } if *peer_uid == uid);
        uid == SANDBOX_UID || self.runs.values().any(|run| is_peer(&run.grant.listener))
    }

    fn of_proxy(&self) -> Vec<Named> {
        let state = &self.proxy.state_dir;
        let run = &self.proxy.run_dir;
        let mut named = vec![
            Named::of("proxy.state_dir", state, check_directory),
            Named::of("proxy.run_dir", run, check_directory),
        ];
        named
            .extend(self.upstream.ca_file.iter().map(|path| Named::of("upstream.ca_file", path, check_file)));
        named
    }

    /// Returns the files that a proxy checks when it opens them.
    fn further_of_proxy(&self) -> Vec<Named> {
        let journal = self.proxy.state_dir.join("journal");
        let mut named = vec![Named::of("proxy.state_dir", journal, check_directory)];
        let secrets = [
            ("upstream.key_file", &self.upstream.key_file),
            ("proxy.token_secrets_file", &self.proxy.token_secrets_file),
        ];
        named.extend(
            secrets.iter().filter_map(|(name, path)| Some(Named::of(name, path.as_ref()?, check_secret))),
        );
        named
    }

    fn of_control_plane(&self) -> Vec<Named> {
        let sandbox = &self.sandbox;
        let dirs = [
            ("sandbox.state_dir", &sandbox.state_dir),
            ("sandbox.workspace_dir", &sandbox.workspace_dir),
            ("sandbox.gateway_dir", &sandbox.gateway_dir),
        ];
        let mut named: Vec<_> =
            dirs.iter().map(|(name, path)| Named::of(name, path.as_path(), check_directory)).collect();
        let ca_files = self.gateways.iter().filter_map(|(id, gateway)| {
            Some(Named::of(&format!("gateways.{id}.ca_file"), gateway.ca_file.as_ref()?, check_file))
        });
        named.extend(ca_files);
        named
    }

    fn secrets_of_control_plane(&self) -> Vec<Named> {
        let store = self.store.url.strip_prefix("sqlite://");
        let mut named: Vec<_> =
            store.map(|path| Named::of("store.url", path, check_secret)).into_iter().collect();
        let secrets = [
            ("store.password_file", &self.store.password_file),
            ("telemetry.otlp_headers_file", &self.telemetry.otlp_headers_file),
        ];
        named.extend(
            secrets.iter().filter_map(|(name, path)| Some(Named::of(name, path.as_ref()?, check_secret))),
        );
        for (id, gateway) in &self.gateways {
            let secrets = [
                ("token_file", &gateway.token_file),
                ("device_key_file", &gateway.device_key_file),
                ("slots_file", &gateway.slots_file),
            ];
            let secret = |(name, path): &(&str, &Option<PathBuf>)| {
                Some(Named::of(&format!("gateways.{id}.{name}"), path.as_ref()?, check_secret))
            };
            named.extend(secrets.iter().filter_map(secret));
        }
        named
    }
}
