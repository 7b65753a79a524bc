//! Implements `sluice agents add`.

use std::{
    io::{self, Write},
    path::Path,
};

use platform_core::{closest::suggest_closest, id::ModelName};
use platform_runtime::{report, settings::Image, terminal};
use runner_control_client::{self as data_plane, DataPlane};
use serde_json::json;

use super::super::{Context, Error, exit::Exit};
use crate::agent_images::{self, Entry, EntryFile, ImageTools, PackageName, Recipe};

#[derive(clap::Args)]
pub(super) struct AddArguments {
    /// Agent to add, from `sluice agents ls --available`
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    build: BuildArguments,
    /// Model of the entry [default: none, so upstream.default_model]
    #[arg(long, value_name = "MODEL")]
    model: Option<ModelName>,
    /// Build again, and set the image of the entry that an earlier call wrote; its other settings stay
    #[arg(long)]
    force: bool,
    /// Print the entry; build nothing and change no file
    #[arg(long)]
    print: bool,
}

/// Image of the agent.
#[derive(clap::Args)]
struct BuildArguments {
    /// Image to build on: a Debian with Node 22 or newer [default: sluicegate/sandbox-runtime:latest if it is here,
    /// else node:24-bookworm-slim]
    #[arg(long, value_name = "IMAGE")]
    base: Option<Image>,
    /// Name of the image [default: sluicegate/NAME:VERSION, or sluicegate/NAME:VERSION-slim]
    #[arg(long, value_name = "IMAGE")]
    image: Option<Image>,
    /// Leave the C compiler, make, Python, npm, ripgrep and unzip out: the image is 250 MB smaller
    #[arg(long)]
    slim: bool,
    /// Debian packages that the agent needs besides, such as `golang,sqlite3`: the sandbox has no network to install any
    #[arg(long, value_name = "PACKAGE,...", value_delimiter = ',')]
    packages: Vec<PackageName>,
}

/// Form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// A sentence for people.
    Text,
    /// An object for programs.
    Json,
}

/// Outcome of telling a running Sluicegate of the new entry.
enum ServiceReload {
    /// Nothing runs.
    Absent,
    /// The proxy has read the entry, and `sluice up` does so within moments.
    Reloaded,
    /// The reload was refused, for this reason.
    NotReloaded(String),
}

impl ServiceReload {
    async fn reload(context: &Context) -> Self {
        match DataPlane::at(&context.settings.proxy.control_socket()).reload().await {
            Ok(_reloaded) => Self::Reloaded,
            Err(data_plane::Error::NotRunning { .. }) => Self::Absent,
            Err(error) => Self::NotReloaded(report::chain(&error)),
        }
    }

    const fn word(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Reloaded => "reloaded",
            Self::NotReloaded(_) => "not_reloaded",
        }
    }

    /// Prints what became of a service that runs.
    fn tell(&self) -> io::Result<()> {
        match self {
            Self::Absent => Ok(()),
            Self::Reloaded => {
                writeln!(
                    io::stdout(),
                    "the running service was told to reload: it has the entry within moments"
                )
            }
            Self::NotReloaded(reason) => {
                let reason = terminal::safe(reason);
                writeln!(io::stderr(), "sluice: the running service lacks the entry: {reason}")
            }
        }
    }
}

/// Agent that was added.
struct Added<'a> {
    recipe: &'a Recipe,
    image: &'a str,
    /// Configuration file that has its entry.
    file: &'a Path,
    /// Set if the entry was there before.
    replaced: bool,
    service: ServiceReload,
}

impl Added<'_> {
    /// Prints what was done.
    fn tell(&self, style: Style) -> io::Result<()> {
        let agent = self.recipe.agent();
        let file = self.file.display().to_string();
        let mut out = io::stdout();
        match style {
            Style::Json => {
                let added = json!({
                    "agentId": agent,
                    "image": self.image,
                    "file": file,
                    "replaced": self.replaced,
                    "service": self.service.word(),
                });
                return writeln!(out, "{}", terminal::safe_json(&added.to_string()));
            }
            Style::Text if self.replaced => {
                writeln!(out, "set the image of {agent} in {file}; its other settings are as before")?;
            }
            Style::Text => {
                writeln!(out, "added {agent} to {file}: sluice run --agent {} \"Hi\"", self.recipe.name)?;
            }
        }
        self.service.tell()
    }
}

pub(super) async fn add(context: &Context, arguments: AddArguments, style: Style) -> Result<Exit, Error> {
    let recipe = find(&arguments.name)?;
    let BuildArguments { base, image, slim, packages } = arguments.build;
    let tools = if slim { ImageTools::Slim } else { ImageTools::Common };
    let image = image.map_or_else(|| recipe.image(tools), |image| image.to_string());
    let model = arguments.model.as_ref().map(ModelName::as_str);
    let entry = Entry { recipe: &recipe, image: &image, model };
    if arguments.print {
        io::stdout().write_all(entry.block().as_bytes())?;
        return Ok(Exit::Success);
    }
    recipe.check_platform()?;
    let path = context.sources.configuration_path();
    let file = EntryFile::new(path.to_owned());
    let is_configured = context.settings.agents.keys().any(|id| id.to_string() == recipe.agent());
    if is_configured && !arguments.force {
        return Err(agent_images::Error::Exists { agent: recipe.agent(), file: path.to_owned() }.into());
    }
    // What the file will be is known before the build, which takes minutes.
    let text = || if is_configured { file.text_with_image(&entry) } else { file.text_with(&entry) };
    context.sources.check(&text()?)?;
    file.check_writable()?;
    let Recipe { title, version, package, download_mib, .. } = &recipe;
    writeln!(
        io::stderr(),
        "building {image}: {title} {version}, package {package} (about {} MiB)",
        download_mib + tools.download_mib()
    )?;
    let docker = context.docker_program();
    let base = match &base {
        Some(base) => base.as_str(),
        None => docker.agent_base().await?,
    };
    docker.build(&image, base, recipe.context(tools, &packages)).await?;
    // The file may have changed meanwhile.
    let text = text()?;
    context.sources.check(&text)?;
    file.write(&text)?;
    let service = ServiceReload::reload(context).await;
    let added = Added { recipe: &recipe, image: &image, file: path, replaced: is_configured, service };
    added.tell(style)?;
    Ok(Exit::Success)
}

/// Returns the recipe called `name`.
fn find(name: &str) -> Result<Recipe, Error> {
    let mut recipes = Recipe::all();
    match recipes.iter().position(|recipe| recipe.name == name) {
        Some(at) => Ok(recipes.swap_remove(at)),
        None => {
            let known: Vec<_> = recipes.into_iter().map(|recipe| recipe.name).collect();
            let meant = suggest_closest(name, known.iter().map(String::as_str));
            Err(agent_images::Error::Unknown { name: name.to_owned(), meant, known: known.join(", ") }.into())
        }
    }
}
