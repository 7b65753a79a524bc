//! Searches data at rest: files, a process's environment and arguments, answers on the control socket.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::{ffi::OsStrExt, net::UnixStream},
    path::Path,
    time::Duration,
};

use platform_core::name::{CONTROL_PROTOCOL, header};

use super::{SECRET_FILES, search};

/// Longest wait for an answer on the control socket: a stopped proxy never answers.
const PATIENCE: Duration = Duration::from_secs(1);
/// Views of the control API with content that is not also in a file.
const VIEWS: [&str; 4] = ["/v1/metrics", "/v1/runs", "/v1/accounts", "/v1/health"];

/// Searches of data at rest, one function per kind of place.
#[derive(Debug)]
pub struct Places;

impl Places {
    /// Searches all files below `dir` and their names, except the files that exist to hold a secret.
    pub fn files(dir: &Path) {
        // A file that vanishes meanwhile, or cannot be read, cannot be read by others either.
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            search(&format!("name of a file in {}", dir.display()), entry.file_name().as_bytes());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => Self::files(&path),
                // The content of a workspace's image is searched at its mount point.
                Ok(kind) if kind.is_file() && path.ends_with("image") => {}
                Ok(kind) if kind.is_file() && !SECRET_FILES.iter().any(|name| path.ends_with(name)) => {
                    if let Ok(content) = fs::read(&path) {
                        search(&path.display().to_string(), &content);
                    }
                }
                _ => {}
            }
        }
    }

    /// Searches everything that a process of the same user can read about process `pid`.
    pub fn process(pid: u32) {
        for file in ["environ", "cmdline"] {
            if let Ok(content) = fs::read(format!("/proc/{pid}/{file}")) {
                search(&format!("{file} of process {pid}"), &content);
            }
        }
    }

    /// Searches the answers on the control socket at `socket`, if a process listens there. Does not need the caller's
    /// runtime.
    pub fn control(socket: &Path) {
        for path in VIEWS {
            let Ok(answer) = get(socket, path) else { return };
            search(&format!("control's {path}"), &answer);
        }
    }
}

fn get(socket: &Path, path: &str) -> io::Result<Vec<u8>> {
    let mut control = UnixStream::connect(socket)?;
    control.set_read_timeout(Some(PATIENCE))?;
    let (name, version) = (header::CONTROL_PROTOCOL, CONTROL_PROTOCOL);
    write!(control, "GET {path} HTTP/1.1\r\nhost: a\r\n{name}: {version}\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    control.read_to_end(&mut answer)?;
    Ok(answer)
}
