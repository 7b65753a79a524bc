//! Builds the images that ship and loads archives of them, and writes the entries of coding agents.
//!
//! Docker's own command line program builds them: it has the user's registries, logins, proxies and builder.

mod build;
mod entry;
mod output;
mod own;
mod package;
mod recipe;

use std::{io, path::PathBuf};

use platform_core::code::{Code, Coded};

pub(crate) use self::{
    build::{DockerProgram, ImageContext, Programs},
    entry::{Entry, EntryFile},
    own::{OWN_IMAGES, installed_archives},
    package::PackageName,
    recipe::{ContextFile, ImageTools, Recipe},
};

/// Errors of adding an agent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No recipe has this name.
    #[error(
        "no agent {name}{meant}; there are: {known} (an agent of your own is an entry of the configuration)"
    )]
    Unknown {
        /// Name that was asked for.
        name: String,
        /// Question for the name that was probably meant, or nothing.
        meant: String,
        /// Names of all recipes.
        known: String,
    },
    /// The image to build on is missing.
    #[error(
        "no image to build on: `sluice images build` makes {image}, or name one with Node 22 and sandbox-init as --base"
    )]
    NoBase {
        /// Image that is built on unless another is named.
        image: &'static str,
    },
    /// A program of the image is not installed.
    #[error("{0} is not installed beside this program, in ../lib/sluicegate: install the package again")]
    NoProgram(&'static str),
    /// No archive of images is installed.
    #[error("no archive of images in {}: name one, or make the images with `sluice images build`", .0.display())]
    NoArchive(PathBuf),
    /// Docker refuses an archive of images.
    #[error("cannot load {}: {reason}", archive.display())]
    Archive {
        /// Path of the archive.
        archive: PathBuf,
        /// Last line of Docker.
        reason: String,
    },
    /// Docker's program does not run.
    #[error("cannot run `docker`: install Docker's command line program (Debian: docker.io)")]
    NoDocker(#[source] io::Error),
    /// Docker does not answer.
    #[error("Docker does not answer at {}: {reason}", socket.display())]
    DockerUnavailable {
        /// Docker's API socket.
        socket: PathBuf,
        /// Docker's own words.
        reason: String,
    },
    /// The agent's package is not for this kind of processor.
    #[error("{agent} has no package for {machine}, only for {known}")]
    Platform {
        /// Name of the agent.
        agent: String,
        /// Kind of this machine's processor.
        machine: &'static str,
        /// Kinds of processors that the package is for.
        known: String,
    },
    /// A signal ended the build.
    #[error("the build was interrupted: no image was made, and the configuration is as before")]
    Interrupted,
    /// The build failed.
    #[error("cannot build {image}: {reason}\n{}", log.display())]
    Failed {
        /// Image that was to be built.
        image: String,
        /// Last line of Docker.
        reason: String,
        /// File with Docker's whole output.
        log: PathBuf,
    },
    /// The configuration cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Failure of the system.
        #[source]
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// Failure of the system.
        #[source]
        source: io::Error,
    },
    /// The configuration has an entry that this program did not write.
    #[error("{} has an entry {agent} already: change it there, or use --force if `sluice agents add` wrote it", file.display())]
    Exists {
        /// Id of the agent.
        agent: String,
        /// Configuration file.
        file: PathBuf,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Unknown { .. } | Self::Exists { .. } | Self::NoArchive(_) | Self::Archive { .. } => {
                Code::AgentRefused
            }
            Self::NoBase { .. }
            | Self::NoProgram(_)
            | Self::NoDocker(_)
            | Self::DockerUnavailable { .. }
            | Self::Platform { .. } => Code::AgentUnavailable,
            Self::Interrupted => Code::AgentStopped,
            Self::Failed { .. } | Self::Unreadable { .. } | Self::Unwritable { .. } => Code::AgentFailed,
        }
    }
}
