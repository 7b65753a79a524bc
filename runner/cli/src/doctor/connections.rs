//! Checks whether the keys that seal connections can be read.

use platform_runtime::{
    report,
    settings::{KeyFile, Settings},
};
use runner_connections::{KeyFileError, SealingKeys};

use super::check::Check;
use crate::plural::counted;

const CONNECTIONS: &str = "connections";

/// Checks the file of keys, if the settings name one.
pub(crate) fn connections_check(settings: &Settings) -> Option<Check> {
    let file = settings.connections.key_file.as_ref()?;
    // Only the unit of `sluice up` has the credential.
    if let KeyFile::Credential { name, directory: None } = file {
        let found = format!("their keys are the credential `{name}`, which systemd gives to `sluice up`");
        return Some(Check::ok(CONNECTIONS, found));
    }
    Some(match SealingKeys::read(file) {
        Ok(keys) => {
            Check::ok(CONNECTIONS, format!("sealed with the first of {}", counted(keys.count(), "key")))
        }
        Err(error) => Check::broken(CONNECTIONS, report::chain(&error), fix(&error)),
    })
}

const fn fix(error: &KeyFileError) -> &'static str {
    match error {
        KeyFileError::NoCredential { .. } => "name a path with a `/`, or run it in the unit",
        KeyFileError::File { .. } => {
            "put the keys back from their copy, and `chmod 600` them; without them each connection has to be added again"
        }
        KeyFileError::Line { .. } => "correct the line, or put the file back from its copy",
        KeyFileError::Empty { .. } => {
            "put the keys back, or make the first: `(umask 077; sluice connections keygen > FILE)`"
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use platform_runtime::config::Sources;

    use super::*;

    fn check(setting: &str) -> Option<Check> {
        let file = Some(("s.toml".into(), setting.to_owned()));
        connections_check(&Settings::read(&Sources { file, ..Sources::default() }).unwrap())
    }

    #[test]
    fn keys_that_cannot_be_used_are_broken() {
        assert!(check("").is_none(), "there are no connections");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        let setting = format!("[connections]\nkey_file = '{}'", path.display());
        let key = SealingKeys::generate();
        let write = |text: &str, mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let broken = |words: &str| {
            let check = check(&setting).unwrap();
            let text = format!("{check:?}");
            assert!(
                !check.is_ok() && text.contains(words) && text.contains("connections.key_file"),
                "{text}"
            );
            assert!(!text.contains(key.expose()) && !text.contains("canary"), "{text}");
        };
        broken("put the keys back from their copy");
        write(key.expose(), 0o644);
        broken("chmod 600");
        write("canary", 0o600);
        broken("correct the line");
        write("", 0o600);
        broken("keygen");
        write(key.expose(), 0o600);
        let found = check(&setting).unwrap();
        assert!(found.is_ok() && format!("{found:?}").contains("1 key"), "the control: {found:?}");
    }

    #[test]
    fn a_credential_of_the_unit_is_not_missed() {
        assert!(check("[connections]\nkey_file = 'keys'").unwrap().is_ok());
    }
}
