//! Implements `sluice agents ls --available`.

use std::io::{self, Write};

use serde_json::json;

use super::{
    super::{Context, Error, exit::Exit, table::Table},
    Arguments,
};
use crate::agent_images::{ImageTools, Recipe};

/// Lists the coding agents that ship.
pub(super) async fn list(context: &Context, arguments: &Arguments) -> Result<Exit, Error> {
    let mut table = Table::new(["AGENT", "NAME", "VERSION", "PACKAGE", "ADDED", "IMAGE"]);
    let mut listed = Vec::new();
    let docker = context.docker_program();
    for recipe in &Recipe::all() {
        let entry = context.settings.agents.iter().find(|(id, _)| id.to_string() == recipe.agent());
        let image =
            entry.map_or_else(|| recipe.image(ImageTools::Common), |(_, agent)| agent.image.to_string());
        // Without Docker the list is still of use.
        let has_image = docker.has_image(&image).await.ok();
        let Recipe { name, title, version, package, registry, .. } = recipe;
        listed.push(json!({
            "name": name, "title": title, "version": version, "registry": registry, "package": package,
            "agentId": recipe.agent(), "added": entry.is_some(), "image": image, "imagePresent": has_image,
        }));
        let present = match has_image {
            Some(true) => image,
            Some(false) => "not built".to_owned(),
            None => "not known: Docker's program does not run".to_owned(),
        };
        let added = if entry.is_some() { "yes" } else { "no" }.to_owned();
        let package = format!("{registry}:{package}");
        table.row([name.clone(), title.clone(), version.clone(), package, added, present]);
    }
    let mut out = io::stdout();
    if arguments.json {
        writeln!(out, "{}", json!({ "available": listed }))?;
    } else {
        write!(out, "{table}\n`sluice agents add AGENT` builds an image and adds its entry.\n")?;
    }
    Ok(Exit::Success)
}
