//! Implements `sluice images`: builds the images that ship, or loads archives of them.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::builder::PossibleValuesParser;
use platform_runtime::{settings::Image, terminal};

use super::{Context, Error, error::Misused, exit::Exit};
use crate::agent_images::{DockerProgram, OWN_IMAGES, installed_archives};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Build the images that ship from what is installed with this program
    ///
    /// Docker pulls the base and downloads the packages that it lacks. The other agents have images of their own:
    /// `sluice agents add`.
    #[command(after_help = "\
Examples:
  sluice images build
  sluice images build sandbox-runtime --base registry.corp/node:24-bookworm-slim")]
    Build(BuildArguments),
    /// Load images from archives of `docker save`: without a network, and within seconds
    #[command(after_help = "\
Examples:
  sluice images load                      the archives that are installed with this program
  sluice images load sandbox-runtime.tar.gz")]
    Load(LoadArguments),
}

#[derive(clap::Args)]
pub(super) struct BuildArguments {
    /// Names of the images [default: all]
    #[arg(value_name = "IMAGE", value_parser = PossibleValuesParser::new(OWN_IMAGES.map(|own| own.name)))]
    images: Vec<String>,
    /// Image to build on: a Debian with Node 22 or newer [default: node:24-bookworm-slim for sandbox-runtime, and that for
    /// git-sync]
    #[arg(long, value_name = "IMAGE")]
    base: Option<Image>,
    /// Name of the built image, if one is built [default: sluicegate/NAME:latest, which agents use]
    #[arg(long, value_name = "IMAGE", requires = "images")]
    image: Option<Image>,
}

#[derive(clap::Args)]
pub(super) struct LoadArguments {
    /// Files that `docker save` wrote, compressed or not [default: those below share/sluicegate/images of the installation]
    #[arg(value_name = "FILE")]
    archives: Vec<PathBuf>,
}

pub(super) async fn images(context: &Context, command: Command) -> Result<Exit, Error> {
    let docker = context.docker_program();
    match command {
        Command::Build(arguments) => build(docker, &arguments).await,
        Command::Load(arguments) => load(docker, arguments).await,
    }
}

async fn build(docker: DockerProgram<'_>, arguments: &BuildArguments) -> Result<Exit, Error> {
    if arguments.image.is_some() && arguments.images.len() > 1 {
        return Err(Misused(
            "--image names one image: build the others with commands of their own".to_owned(),
        )
        .into());
    }
    let is_wanted =
        |name: &str| arguments.images.is_empty() || arguments.images.iter().any(|wanted| wanted == name);
    for own in OWN_IMAGES.iter().filter(|own| is_wanted(own.name)) {
        let base = arguments.base.as_ref().map_or(own.base, Image::as_str);
        let image = arguments.image.as_ref().map_or(own.image, Image::as_str);
        writeln!(io::stderr(), "building {image} on {base}")?;
        docker.build(image, base, own.context()).await?;
        writeln!(io::stdout(), "{image}")?;
    }
    Ok(Exit::Success)
}

async fn load(docker: DockerProgram<'_>, arguments: LoadArguments) -> Result<Exit, Error> {
    let archives = if arguments.archives.is_empty() { installed_archives()? } else { arguments.archives };
    for archive in archives {
        writeln!(io::stderr(), "loading {}", archive.display())?;
        for image in docker.load(&archive).await? {
            writeln!(io::stdout(), "{}", terminal::safe(&image))?;
        }
    }
    Ok(Exit::Success)
}
