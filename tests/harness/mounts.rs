//! Lists the mounts of this machine and its loop devices.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::mount::{UnmountFlags, unmount};

/// Returns the mount points below `dir`, the innermost first.
///
/// # Panics
/// If the mounts cannot be read.
#[must_use]
pub fn below(dir: &Path) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
    let mut points: Vec<_> = points.filter(|point| point.starts_with(dir)).collect();
    points.reverse();
    points
}

/// Returns the backing files of loop devices below `dir`, removed files included.
#[must_use]
pub fn loops_below(dir: &Path) -> Vec<String> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let files = devices.filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
    files.filter(|file| Path::new(file).starts_with(dir)).collect()
}

/// Unmounts everything below `dir` as far as possible.
pub(crate) fn remove_below(dir: &Path) {
    for point in below(dir) {
        unmount(point, UnmountFlags::DETACH).ok();
    }
}
