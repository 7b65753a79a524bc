//! A small disk of its own, which a test can fill.

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
    /// Memory.
    Tmpfs,
    /// ext4 on a loop device.
    Ext4,
}

/// A mounted file system. A shell of its own waits for its owner's end, whatever that is, and unmounts it.
#[derive(Debug)]
pub struct Volume {
    path: PathBuf,
    guard: Child,
}

impl Volume {
    /// Mounts `mib` mebibytes on the directory `path`.
    ///
    /// # Panics
    /// If that fails; one has to be root.
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
            // Who ends a test that hangs ends its group.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(guard.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "mounted\n", "a test mounts {}: it needs root", path.display());
        Self { path: path.to_owned(), guard }
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }

    /// Leaves not a byte.
    ///
    /// # Panics
    /// If anything but space is missing.
    pub fn fill(&self) {
        let mut filler = File::options().create(true).append(true).open(self.filler()).unwrap();
        // The last bytes fit where a whole piece does not.
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

    /// Gives back what filling it took.
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
