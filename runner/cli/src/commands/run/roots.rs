//! Refuses to copy directories that hold more than one project: the roots of the system, and home directories.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::commands::error::Misused;

/// Directories of the system. What is below them may be a project.
const SYSTEM: [&str; 14] = [
    "/bin", "/boot", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt", "/opt", "/root", "/sbin", "/srv",
    "/usr", "/var",
];
/// Directories of the kernel: nothing below them is a project.
const KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Refuses `dir` if it is a root. `home` is the home directory of this process's user.
pub(super) fn check_root(dir: &Path, home: Option<&Path>) -> Result<(), Misused> {
    let resolved = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_absent| path.to_owned());
    let found = resolved(dir);
    let Some(what) = root(&found, home.map(resolved).as_ref()) else { return Ok(()) };
    Err(Misused(format!(
        "--workspace {}: {} is {what}, and all of it would be copied; name the directory of one project below it",
        dir.display(),
        found.display()
    )))
}

/// Returns what `dir` is, if it is a root.
fn root(dir: &Path, home: Option<&PathBuf>) -> Option<&'static str> {
    if dir == Path::new("/") {
        return Some("the root of the file system");
    }
    if home.is_some_and(|home| home == dir) {
        return Some("your home directory");
    }
    let is_system = SYSTEM.iter().any(|system| dir == Path::new(system));
    let is_kernel = KERNEL.iter().any(|kernel| dir.starts_with(kernel));
    let holds_home = home.is_some_and(|home| home.starts_with(dir));
    (is_system || is_kernel || holds_home).then_some("a directory of the system")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_refused_and_projects_pass() {
        let home = PathBuf::from("/home/ada");
        let told = |dir: &str| root(Path::new(dir), Some(&home));
        assert_eq!(told("/"), Some("the root of the file system"));
        assert_eq!(told("/home/ada"), Some("your home directory"));
        for dir in ["/home", "/usr", "/etc", "/proc/self", "/sys", "/root"] {
            assert_eq!(told(dir), Some("a directory of the system"), "{dir}");
        }
        for dir in ["/home/ada/app", "/home/bo", "/usr/src/app", "/srv/app", "/tmp", "/root/app"] {
            assert_eq!(told(dir), None, "control: {dir}");
        }
        let refused = check_root(Path::new("/usr/../"), None).unwrap_err().to_string();
        assert!(refused.contains("--workspace /usr/../: / is the root of the file system"), "{refused}");
    }
}
