//! Checks of the directories and secrets that settings name: who besides their owner can change or read them.

use std::path::{Path, PathBuf};

use super::{Proxy, Settings};
use crate::{
    config::{About, Objection},
    trust::{Exposure, Trusted, check_directory, check_secret},
};

type Check = fn(&Path, &Trusted) -> Result<(), Exposure>;

/// A path, the setting that names it, and how it is checked.
struct Named {
    setting: String,
    path: PathBuf,
    check: Check,
}

impl Named {
    fn directory(setting: &str, path: impl Into<PathBuf>) -> Self {
        Self { setting: setting.to_owned(), path: path.into(), check: check_directory }
    }

    fn secret(setting: &str, path: impl Into<PathBuf>) -> Self {
        Self { setting: setting.to_owned(), path: path.into(), check: check_secret }
    }

    fn exposure(&self, trusted: &Trusted) -> Option<Objection> {
        let problem = (self.check)(&self.path, trusted).err()?.to_string();
        Some(Objection { about: About::Setting(self.setting.clone()), problem })
    }
}

impl Proxy {
    /// Returns what is wrong with the directories of the proxy's state and sockets.
    #[must_use]
    pub fn exposures(&self, trusted: &Trusted) -> Vec<Objection> {
        self.directories().iter().filter_map(|named| named.exposure(trusted)).collect()
    }

    fn directories(&self) -> [Named; 2] {
        [
            Named::directory("proxy.state_dir", &self.state_dir),
            Named::directory("proxy.run_dir", &self.run_dir),
        ]
    }
}

impl Settings {
    /// Returns what other users can change or read of all that these settings name. The owner of `proxy.state_dir` is taken
    /// for the proxy's user.
    #[must_use]
    pub fn exposures(&self) -> Vec<Objection> {
        let trusted = Trusted::own().with_owner_of(&self.proxy.state_dir);
        self.named().iter().filter_map(|named| named.exposure(&trusted)).collect()
    }

    /// Returns the sockets of `[runs]` in directories that their agents can write.
    #[must_use]
    pub fn exposed_sockets(&self) -> Vec<Objection> {
        let trusted = Trusted::own().with_owner_of(&self.proxy.state_dir);
        let exposed = self.runs.iter().filter_map(|(run, settings)| {
            let problem = settings.exposed_directory(&trusted)?.to_string();
            Some(Objection { about: About::Setting(format!("runs.{run}.socket")), problem })
        });
        exposed.collect()
    }

    fn named(&self) -> Vec<Named> {
        let mut named = Vec::from(self.proxy.directories());
        named.push(Named::directory("proxy.state_dir", self.proxy.state_dir.join("journal")));
        let store = self.store.url.strip_prefix("sqlite://");
        named.extend(store.map(|path| Named::secret("store.url", path)));
        let secrets = [
            ("upstream.key_file", &self.upstream.key_file),
            ("proxy.token_secrets_file", &self.proxy.token_secrets_file),
            ("store.password_file", &self.store.password_file),
            ("telemetry.otlp_headers_file", &self.telemetry.otlp_headers_file),
        ];
        named.extend(secrets.iter().filter_map(|(name, path)| Some(Named::secret(name, path.as_ref()?))));
        for (id, gateway) in &self.gateways {
            let secrets = [
                ("token_file", &gateway.token_file),
                ("device_key_file", &gateway.device_key_file),
                ("slots_file", &gateway.slots_file),
            ];
            let secret = |(name, path): &(&str, &Option<PathBuf>)| {
                Some(Named::secret(&format!("gateways.{id}.{name}"), path.as_ref()?))
            };
            named.extend(secrets.iter().filter_map(secret));
        }
        named
    }
}
