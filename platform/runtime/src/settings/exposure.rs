//! Checks directories and files that settings name: which users besides the owner can change them or read secrets.
//!
//! State of the proxy is checked as the proxy's own user. That is the user of the process that listens at its control
//! socket, else the owner of `proxy.state_dir`. The user of an agent is never accepted as the proxy's.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use platform_core::{grant::Listener, name::SANDBOX_UID};
use rustix::process::geteuid;

use super::Settings;
use crate::{
    config::{About, ValidationError},
    trust::{Exposure, Trusted, User, check_directory, check_file, check_secret},
};

type Check = fn(&Path, &Trusted) -> Result<(), Exposure>;

/// A path, the setting that names it, and its check.
struct CheckedPath {
    about: About,
    path: PathBuf,
    check: Check,
}

impl CheckedPath {
    fn of(setting: &str, path: impl Into<PathBuf>, check: Check) -> Self {
        Self { about: About::Setting(setting.to_owned()), path: path.into(), check }
    }

    /// Returns the configuration file, if there is one.
    fn configuration(file: Option<&Path>) -> Option<Self> {
        Some(Self { about: About::File, path: file?.to_owned(), check: check_file })
    }

    fn exposure(&self, trusted: &Trusted) -> Option<ValidationError> {
        let problem = (self.check)(&self.path, trusted).err()?.to_string();
        Some(ValidationError { about: self.about.clone(), problem })
    }
}

fn exposures(named: impl IntoIterator<Item = CheckedPath>, trusted: &Trusted) -> Vec<ValidationError> {
    named.into_iter().filter_map(|named| named.exposure(trusted)).collect()
}

/// Returns the owner of `dir`, or of the directory in which it will be created.
fn owner_of(dir: &Path) -> Option<u32> {
    let dir = std::path::absolute(dir).ok()?;
    let existing = dir.ancestors().find_map(|dir| fs::metadata(dir).ok())?;
    Some(existing.uid())
}

impl Settings {
    /// Returns an error for each path that a proxy starts with and that other users can change. Those paths are its
    /// directories, the files it reads that are not secrets, and the configuration `file`. Secrets are checked when they
    /// are read.
    #[must_use]
    pub fn exposures_of_proxy(&self, file: Option<&Path>, trusted: &Trusted) -> Vec<ValidationError> {
        exposures(self.paths_of_proxy().into_iter().chain(CheckedPath::configuration(file)), trusted)
    }

    /// Returns the same for the paths that the control plane starts with; see [`Settings::exposures_of_proxy`]. Root
    /// also accepts directories of a service's user, as [`Trusted::for_state_in`] says.
    #[must_use]
    pub fn exposures_of_control_plane(&self, file: Option<&Path>) -> Vec<ValidationError> {
        let mut exposed = self.exposed_directories(|dir| self.check_state_dir(dir));
        let files = self.paths_of_control_plane().into_iter().chain(CheckedPath::configuration(file));
        exposed.extend(exposures(files, &Trusted::own()));
        exposed
    }

    /// Returns an error for each path in these settings, and for the configuration `file`, that other users can change
    /// or read.
    #[must_use]
    pub fn exposures(&self, file: Option<&Path>) -> Vec<ValidationError> {
        let by_proxy = self.trusted_by_proxy();
        let mut exposed = self.exposures_of_proxy(file, &by_proxy);
        exposed.extend(exposures(self.files_opened_by_proxy(), &by_proxy));
        // If `sluice up` starts the proxy, both run as the same user.
        let own = Trusted::own().and(&by_proxy);
        exposed.extend(self.exposed_directories(|dir| {
            check_directory(dir, &own).or_else(|exposure| self.check_state_dir(dir).map_err(|_own| exposure))
        }));
        exposed.extend(exposures(self.paths_of_control_plane(), &own));
        exposed.extend(exposures(self.secrets_of_control_plane(), &own));
        exposed
    }

    /// Returns the sockets of `[runs]` that their agents, or other users, can replace.
    #[must_use]
    pub fn exposed_sockets(&self) -> Vec<ValidationError> {
        let trusted = self.trusted_by_proxy();
        let exposed = self.runs.iter().filter_map(|(run, settings)| {
            let problem = settings.exposed_directory(&trusted)?.to_string();
            Some(ValidationError { about: About::Setting(format!("runs.{run}.socket")), problem })
        });
        exposed.collect()
    }

    /// Returns the users that a proxy trusts if it runs as this process's user. If its state directory belongs to a
    /// user who may be a service's, no advice suggests a change of owner.
    #[must_use]
    pub fn trusted_at_start(&self) -> Trusted {
        let is_service = self.owner_of_state().is_some_and(|owner| owner != 0 && !self.is_agent_user(owner));
        self.trusted_with_advice(if is_service { None } else { Some(geteuid().as_raw()) })
    }

    /// Returns the users that the proxy trusts, whichever user it runs as.
    #[must_use]
    pub fn trusted_by_proxy(&self) -> Trusted {
        match self.proxy_user() {
            Some(service) => Trusted::of(&service),
            None => self.trusted_with_advice(self.owner_of_state()),
        }
    }

    /// Returns the users that this process trusts. Advice names its user as the owner to set only if that user is
    /// `owner`.
    fn trusted_with_advice(&self, owner: Option<u32>) -> Trusted {
        if owner == Some(geteuid().as_raw()) { Trusted::own() } else { Trusted::own().without_advice() }
    }

    /// Returns the user of the proxy, if known and different from this process's. A proxy owns its `proxy.state_dir`,
    /// so a process that listens at its control socket and does not own that directory is not trusted.
    fn proxy_user(&self) -> Option<User> {
        let serving = User::serving(&self.proxy.control_socket());
        let owner = self.owner_of_state();
        let user = match (serving, owner) {
            (Some(serving), None) => serving,
            (Some(serving), Some(owner)) => Some(serving).filter(|user| user.uid() == owner)?,
            (None, Some(owner)) => Some(owner).filter(|uid| *uid != 0).map(User::of)?,
            (None, None) => return None,
        };
        let is_service = user.uid() != geteuid().as_raw() && !self.is_agent_user(user.uid());
        is_service.then_some(user)
    }

    fn owner_of_state(&self) -> Option<u32> {
        Some(fs::metadata(&self.proxy.state_dir).ok()?.uid())
    }

    /// Returns whether agents run as `uid`.
    fn is_agent_user(&self, uid: u32) -> bool {
        let is_peer =
            |listener: &Listener| matches!(listener, Listener::Unix { peer_uid } if *peer_uid == uid);
        uid == SANDBOX_UID || self.runs.values().any(|run| is_peer(&run.grant.listener))
    }

    fn paths_of_proxy(&self) -> Vec<CheckedPath> {
        let state = &self.proxy.state_dir;
        let run = &self.proxy.run_dir;
        let mut named = vec![
            CheckedPath::of("proxy.state_dir", state, check_directory),
            CheckedPath::of("proxy.run_dir", run, check_directory),
        ];
        named.extend(
            self.upstream.ca_file.iter().map(|path| CheckedPath::of("upstream.ca_file", path, check_file)),
        );
        named
    }

    /// Returns the files that a proxy checks when it opens them.
    fn files_opened_by_proxy(&self) -> Vec<CheckedPath> {
        let journal = self.proxy.state_dir.join("journal");
        let mut named = vec![CheckedPath::of("proxy.state_dir", journal, check_directory)];
        let secrets = [
            ("upstream.key_file", &self.upstream.key_file),
            ("upstream.admin_key_file", &self.upstream.admin_key_file),
            ("proxy.token_secrets_file", &self.proxy.token_secrets_file),
        ];
        named.extend(
            secrets
                .iter()
                .filter_map(|(name, path)| Some(CheckedPath::of(name, path.as_ref()?, check_secret))),
        );
        named
    }

    /// Returns an error for each directory of the control plane that `check` refuses.
    fn exposed_directories(&self, check: impl Fn(&Path) -> Result<(), Exposure>) -> Vec<ValidationError> {
        let sandbox = &self.sandbox;
        let dirs = [
            ("sandbox.state_dir", &sandbox.state_dir),
            ("sandbox.workspace_dir", &sandbox.workspace_dir),
            ("sandbox.gateway_dir", &sandbox.gateway_dir),
        ];
        let exposed = dirs.into_iter().filter_map(|(setting, dir)| {
            let problem = check(dir).err()?.to_string();
            Some(ValidationError { about: About::Setting(setting.to_owned()), problem })
        });
        exposed.collect()
    }

    /// Checks a directory of the control plane. Root also accepts an owner that may be a service's user, but never an
    /// agent's.
    fn check_state_dir(&self, dir: &Path) -> Result<(), Exposure> {
        let is_agents = owner_of(dir).is_some_and(|owner| self.is_agent_user(owner));
        let trusted = if is_agents { Trusted::own() } else { Trusted::for_state_in(dir)? };
        check_directory(dir, &trusted)
    }

    fn paths_of_control_plane(&self) -> Vec<CheckedPath> {
        let ca_files = self.gateways.iter().filter_map(|(id, gateway)| {
            Some(CheckedPath::of(&format!("gateways.{id}.ca_file"), gateway.ca_file.as_ref()?, check_file))
        });
        // The files become instructions of agents.
        let behaviour_dirs = self.agents.iter().filter_map(|(id, agent)| {
            let dir = agent.behaviour_dir.as_ref()?;
            Some(CheckedPath::of(&format!("agents.{id}.behaviour_dir"), dir, check_directory))
        });
        let certificate = self
            .api
            .tls
            .iter()
            .map(|tls| CheckedPath::of("api.tls_certificate", &tls.certificate, check_file));
        ca_files.chain(behaviour_dirs).chain(certificate).collect()
    }

    fn secrets_of_control_plane(&self) -> Vec<CheckedPath> {
        let store = self.store.url.strip_prefix("sqlite://");
        let mut named: Vec<_> =
            store.map(|path| CheckedPath::of("store.url", path, check_secret)).into_iter().collect();
        let secrets = [
            ("store.password_file", &self.store.password_file),
            ("telemetry.otlp_headers_file", &self.telemetry.otlp_headers_file),
            ("billing.ingest_token_file", &self.billing.ingest_token_file),
        ];
        named.extend(
            secrets
                .iter()
                .filter_map(|(name, path)| Some(CheckedPath::of(name, path.as_ref()?, check_secret))),
        );
        named.extend(self.api.tls.iter().map(|tls| CheckedPath::of("api.tls_key", &tls.key, check_secret)));
        for (id, gateway) in &self.gateways {
            let secrets = [
                ("token_file", &gateway.token_file),
                ("device_key_file", &gateway.device_key_file),
                ("slots_file", &gateway.slots_file),
            ];
            let secret = |(name, path): &(&str, &Option<PathBuf>)| {
                Some(CheckedPath::of(&format!("gateways.{id}.{name}"), path.as_ref()?, check_secret))
            };
            named.extend(secrets.iter().filter_map(secret));
        }
        named
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;
    use crate::config::Sources;

    fn owned_by(dir: &Path, uid: u32) {
        chown(dir, Some(uid), Some(uid)).expect("this test must run as root");
    }

    #[test]
    fn root_starts_on_directories_of_a_service() {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut settings = Settings::read(&Sources::default()).unwrap();
        let dirs = ["state", "workspaces", "gateways"].map(|name| root.path().join(name));
        for dir in &dirs {
            fs::create_dir(dir).unwrap();
            owned_by(dir, 12345);
        }
        settings.proxy.state_dir = root.path().join("proxy");
        [settings.sandbox.state_dir, settings.sandbox.workspace_dir, settings.sandbox.gateway_dir] =
            dirs.clone();
        let at_start = |settings: &Settings| {
            let exposed = settings.exposures_of_control_plane(None);
            exposed.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(at_start(&settings), "");
        // The same holds for directories that are created later.
        settings.sandbox.workspace_dir = dirs[1].join("not/there");
        assert_eq!(at_start(&settings), "");
        // The controls: an agent's user is not accepted, and no advice suggests to take a directory from the service.
        owned_by(&dirs[0], SANDBOX_UID);
        let refused = at_start(&settings);
        assert!(
            refused.contains("sandbox.state_dir") && refused.contains("belongs to uid 1001"),
            "{refused}"
        );
        owned_by(&dirs[0], 12345);
        let entry = "[agents.'a:b']\nimage = 'a'\nargv = ['a']\nbehaviour_dir = ";
        let file = Some(("s.toml".into(), format!("{entry}'{}'", dirs[1].display())));
        let mut with_behaviour = settings.clone();
        with_behaviour.agents = Settings::read(&Sources { file, ..Sources::default() }).unwrap().agents;
        assert!(at_start(&with_behaviour).contains("agents.a:b.behaviour_dir"));
        owned_by(root.path(), 23456);
        let refused = at_start(&settings);
        assert!(refused.contains("belongs to uid 23456") && refused.contains("chown 12345 "), "{refused}");
        assert!(!refused.contains("chown 0"), "{refused}");
    }
}
