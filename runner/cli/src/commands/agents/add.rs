//! Implements `sluice agents add`.

use std::io::{self, Write};

use platform_core::id::ModelName;
use platform_runtime::settings::Image;

use super::super::{Context, Error, exit::Exit};
use crate::{
    agent_images::{self, EntryFile, ImageBuild, Recipe},
    reload::Purpose,
};

#[derive(clap::Args)]
pub(super) struct AddArguments {
    /// Agent to add, from `sluice agents ls --available`
    #[arg(value_name = "NAME")]
    name: String,
    /// Image to build on: a Debian with Node 22 or newer [default: sluicegate/sandbox-runtime:latest if it is here,
    /// else node:24-bookworm-slim]
    #[arg(long, value_name = "IMAGE")]
    base: Option<Image>,
    /// Name of the image [default: sluicegate/NAME:VERSION]
    #[arg(long, value_name = "IMAGE")]
    image: Option<Image>,
    /// Model of the entry [default: none, so upstream.default_model]
    #[arg(long, value_name = "MODEL")]
    model: Option<ModelName>,
    /// Replace the entry that an earlier call wrote
    #[arg(long)]
    force: bool,
    /// Print the entry; build nothing and change no file
    #[arg(long)]
    pub(super) print: bool,
}

pub(super) async fn add(context: &Context, arguments: AddArguments) -> Result<Exit, Error> {
    let recipe = find(&arguments.name)?;
    let image = arguments.image.map_or_else(|| recipe.image(), |image| image.to_string());
    let block = EntryFile::block(&recipe, &image, arguments.model.as_ref().map(ModelName::as_str));
    if arguments.print {
        io::stdout().write_all(block.as_bytes())?;
        return Ok(Exit::Success);
    }
    let path = context.sources.configuration_path();
    let is_configured = context.settings.agents.keys().any(|id| id.to_string() == recipe.agent());
    if is_configured && !arguments.force {
        let file = path.to_owned();
        return Err(agent_images::Error::Exists { agent: recipe.agent(), file }.into());
    }
    let Recipe { title, version, package, download_mib, .. } = &recipe;
    writeln!(
        io::stderr(),
        "building {image}: {title} {version}, package {package} (about {download_mib} MiB)"
    )?;
    let build = ImageBuild {
        recipe: &recipe,
        image: &image,
        base: arguments.base.as_ref().map(Image::as_str),
        socket: &context.settings.sandbox.docker_socket,
        environment: &context.sources.environment,
    };
    build.run().await?;
    let file = EntryFile::new(path.to_owned());
    let earlier = file.read()?;
    if is_configured {
        file.replace(&recipe, &block)?
    } else {
        file.append(&block)?
    }
    if let Err(errors) = context.sources.read(Purpose::Inspect) {
        file.restore(&earlier)?;
        return Err(errors.into());
    }
    let agent = recipe.agent();
    writeln!(io::stdout(), "added {agent} to {}: sluice run --agent {} \"Hi\"", path.display(), recipe.name)?;
    Ok(Exit::Success)
}

/// Returns the exit code of a command that this error ended.
pub(in crate::commands) const fn exit_code(error: &agent_images::Error) -> Exit {
    use agent_images::Error;
    match error {
        Error::Unknown { .. } | Error::Exists { .. } => Exit::Usage,
        Error::NoBase { .. } | Error::NoDocker(_) => Exit::Unavailable,
        Error::Failed { .. } | Error::Unwritable { .. } => Exit::Internal,
    }
}

/// Returns the recipe called `name`.
fn find(name: &str) -> Result<Recipe, Error> {
    let mut recipes = Recipe::all()?;
    match recipes.iter().position(|recipe| recipe.name == name) {
        Some(at) => Ok(recipes.swap_remove(at)),
        None => {
            let known: Vec<_> = recipes.into_iter().map(|recipe| recipe.name).collect();
            Err(agent_images::Error::Unknown { name: name.to_owned(), known: known.join(", ") }.into())
        }
    }
}
