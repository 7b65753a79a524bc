//! canary is a program that notes that it ran.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Program that a vector plants.
pub(crate) struct Canary {
    pub(crate) program: PathBuf,
    note: PathBuf,
}

impl Canary {
    pub(crate) fn new(dir: &Path) -> Self {
        let canary = Self { program: dir.join("canary"), note: dir.join("canary-ran") };
        let script = format!("#!/bin/sh\n: > {}\n", canary.note.display());
        write_program(&canary.program, &script);
        canary
    }

    /// Returns whether the program ran since the last call.
    pub(crate) fn ran(&self) -> bool {
        fs::remove_file(&self.note).is_ok()
    }

    pub(crate) fn shown(&self) -> String {
        self.program.display().to_string()
    }
}

/// Writes a script that can be run.
pub(crate) fn write_program(path: &Path, script: &str) {
    fs::write(path, script).expect("a script is written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it becomes executable");
}
