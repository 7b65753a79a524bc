//! askpass answers git's questions for a credential from a private file, through a script that this program writes.
//!
//! The credential is in no argument, no address, no setting and no variable. The script answers only if git names the
//! expected host.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use platform_core::secret::Secret;

use crate::{directory::remove_dir, error::Error};

/// Script that git runs with its question.
const SCRIPT: &str = r#"#!/bin/sh
case "$1" in
"Username for '$SLUICE_GIT_ORIGIN': ") printf '%s\n' "$SLUICE_GIT_USER" ;;
"Password for '$SLUICE_GIT_ASKED': ") exec cat -- "$SLUICE_GIT_TOKEN_FILE" ;;
*) exit 1 ;;
esac
"#;
/// Name of the script's file.
const SCRIPT_NAME: &str = "askpass";
/// Name of the file with the token.
const TOKEN_NAME: &str = "token";
/// Mode of the directory.
const DIR_MODE: u32 = 0o700;
/// Mode of the file with the token.
const TOKEN_MODE: u32 = 0o400;
/// Mode of the script.
const SCRIPT_MODE: u32 = 0o500;

/// Credential for one remote, in files that only this user reads, and that are removed on drop.
#[derive(Debug)]
pub struct AskPass {
    dir: PathBuf,
    user: String,
}

impl AskPass {
    /// Writes `token` for `user` into `dir`, which is for this alone and lies on a disk of this host. Replaces what a
    /// process that was killed left there.
    ///
    /// # Errors
    /// The system's.
    pub fn create(dir: &Path, user: &str, token: &Secret) -> Result<Self, Error> {
        remove_dir(dir)?;
        fs::DirBuilder::new().mode(DIR_MODE).create(dir).map_err(Error::io("create", dir))?;
        let dir = fs::canonicalize(dir).map_err(Error::io("resolve", dir))?;
        let askpass = Self { dir, user: user.to_owned() };
        let token_file = askpass.token_file();
        write_token(&token_file, token).map_err(Error::io("write", &token_file))?;
        let script = askpass.script();
        fs::write(&script, SCRIPT).map_err(Error::io("write", &script))?;
        fs::set_permissions(&script, fs::Permissions::from_mode(SCRIPT_MODE))
            .map_err(Error::io("make executable", &script))?;
        Ok(askpass)
    }

    pub(crate) fn script(&self) -> PathBuf {
        self.dir.join(SCRIPT_NAME)
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        self.dir.join(TOKEN_NAME)
    }

    /// Returns the variables of git and of the script, for the remote at `origin`: scheme, host and port.
    pub(crate) fn environment(&self, origin: &str) -> [(&'static str, OsString); 5] {
        let asked = match origin.split_once("://") {
            Some((scheme, host)) => format!("{scheme}://{}@{host}", self.user),
            None => origin.to_owned(),
        };
        [
            ("GIT_ASKPASS", self.script().into()),
            ("SLUICE_GIT_ORIGIN", origin.into()),
            ("SLUICE_GIT_ASKED", asked.into()),
            ("SLUICE_GIT_USER", self.user.as_str().into()),
            ("SLUICE_GIT_TOKEN_FILE", self.token_file().into()),
        ]
    }
}

/// Writes the token under its one name. The directory is new, so no reader finds a part of it, and it need not survive a
/// crash of the host.
fn write_token(file: &Path, token: &Secret) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(TOKEN_MODE).open(file)?;
    file.write_all(token.expose().as_bytes())
}

impl Drop for AskPass {
    fn drop(&mut self) {
        // The directory is private and of this run: its owner removes it if this fails.
        drop(fs::remove_dir_all(&self.dir));
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_the_expected_host_gets_the_token() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("askpass");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(TOKEN_NAME), "left over").unwrap();
        let askpass = AskPass::create(&dir, "x-access-token", &Secret::new("t0ken".to_owned())).unwrap();
        let answer = |question: &str| {
            let mut command = Command::new(askpass.script());
            let command = command.arg(question).envs(askpass.environment("https://example.org:8443"));
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        assert_eq!(answer("Username for 'https://example.org:8443': "), "x-access-token\n");
        assert_eq!(answer("Password for 'https://x-access-token@example.org:8443': "), "t0ken");
        for question in [
            "Password for 'https://x-access-token@example.org': ",
            "Password for 'https://x-access-token@other.org:8443': ",
            "Password for 'http://x-access-token@example.org:8443': ",
            "Enter PIN: ",
        ] {
            assert_eq!(answer(question), "", "{question}");
        }
        let mode = fs::metadata(askpass.token_file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o400);
        drop(askpass);
        assert!(!dir.exists());
    }
}
