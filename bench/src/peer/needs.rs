//! needs knows which programs do not come with `bench`, where they are, and which command installs them.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Program that a peer needs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Needs {
    /// A program of this build.
    Nothing,
    /// A file of a Debian package.
    Package(&'static str),
    /// A program that `make bench-peers` puts beside the builds, for all profiles.
    Built(&'static str),
}

impl Needs {
    /// Checks that the program is installed; `programs` is the directory of this build's programs.
    ///
    /// # Errors
    /// If it is missing, with the command that installs it.
    pub(super) fn check(self, programs: &Path) -> io::Result<()> {
        let (file, command) = match self {
            Self::Nothing => return Ok(()),
            Self::Package(file) => (PathBuf::from(file), "scripts/setup.sh bench"),
            Self::Built(name) => (built(programs, name), "make bench-peers"),
        };
        if file.exists() {
            return Ok(());
        }
        let missing = format!("{} is not installed: run `{command}`", file.display());
        Err(io::Error::new(io::ErrorKind::NotFound, missing))
    }
}

/// Returns the directory of this build's programs; a test's own program lies one level deeper.
pub(super) fn programs() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let beside = own.parent().unwrap_or(Path::new("."));
    Ok(beside.parent().filter(|_| beside.ends_with("deps")).unwrap_or(beside).to_owned())
}

/// Returns the path of a program that `make bench-peers` installs.
pub(super) fn built(programs: &Path, name: &str) -> PathBuf {
    programs.parent().unwrap_or(programs).join("peers").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_name_the_next_command() {
        let programs = Path::new("/nonexistent/release");
        let error = Needs::Built("envoy").check(programs).unwrap_err().to_string();
        assert_eq!(error, "/nonexistent/peers/envoy is not installed: run `make bench-peers`");
        let error = Needs::Package("/nonexistent/nginx").check(programs).unwrap_err().to_string();
        assert_eq!(error, "/nonexistent/nginx is not installed: run `scripts/setup.sh bench`");
        assert!(Needs::Nothing.check(programs).is_ok());
    }
}
