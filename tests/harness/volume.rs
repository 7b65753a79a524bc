//! Mounts a small disk that the test can fill.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Kind of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// A file system in memory.
    Tmpfs,
    /// ext4 on a loop device.
    Ext4,
}

/// A mounted file system. A guard shell waits for the end of the test process, and then unmounts it.
#[derive(Debug)]
pub struct Volume {
    path: PathBuf,
    guard: Child,
}

impl Volume {
    /// Mounts `mib` mebibytes on the directory `path`.
    ///
    /// # Panics
    /// If that fails; it needs root.
    #[must_use]
    pub fn on(path: &Path, kind: FileSystem, mib: u64) -> Self {
        let mount = match kind {
            FileSystem::Tmpfs => r#"mount -t tmpfs -o "size=$2M,mode=0700" sluicegate-test "$1""#,
            FileSystem::Ext4 => {
                r#"truncate -s "$2M" "$1.image" && mkfs.ext4 -q -F "$1.image" && mount -o loop "$1.image" "$1""#
            }
        };
        let script = format!(
            r#"{mount} || exit; rm -f "$1.image"; echo mounted; cat > /dev/null; umount --lazy "$1""#
        );
        let mut guard = Command::new("sh")
            .args(["-c", &script, "guard"])
            .arg(path)
            .arg(mib.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A test that hangs is killed with its process group; the guard must survive that.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(guard.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "mounted\n", "a test mounts {}: it needs root", path.display());
        Self { path: path.to_owned(), guard }
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }

    /// Fills it to the last byte.
    ///
    /// # Panics
    /// If the filler file cannot be opened.
    pub fn fill(&self) {
        let mut filler = File::options().create(true).append(true).open(self.filler()).unwrap();
        // Smaller pieces use the space that a larger one does not fit into.
        for size in [1 << 20, 4096, 1] {
            let piece = vec![0; size];
            while filler.write_all(&piece).is_ok() {}
        }
    }

    /// Returns whether it was filled.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.filler().exists()
    }

    /// Frees the space that [`Volume::fill`] took.
    pub fn free(&self) {
        fs::remove_file(self.filler()).ok();
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        self.guard.wait().ok();
    }
}
