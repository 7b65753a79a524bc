//! Implements `sluice reload`: makes the proxy read its configuration again, and shows the changes. `sluice up` follows
//! the proxy.

use std::io::{self, Write};

use platform_core::control::{NotReady, Reloaded};
use runner_control_client::DataPlane;
use serde_json::json;

use super::{Context, Error, exit::Exit};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Print JSON, also if the reload is refused
    #[arg(long)]
    json: bool,
}

pub(super) async fn reload(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let mut out = io::stdout();
    let reloaded = DataPlane::at(&context.settings.proxy.control_socket()).reload().await?;
    if arguments.json {
        writeln!(out, "{}", json!(reloaded))?;
    } else {
        print_changes(&mut out, &reloaded)?;
    }
    Ok(if reloaded.not_open.is_empty() { Exit::Success } else { Exit::Failure })
}

fn print_changes(out: &mut impl Write, Reloaded { changed, not_open }: &Reloaded) -> io::Result<()> {
    if changed.is_empty() {
        writeln!(out, "nothing has changed")?;
    }
    for setting in changed {
        writeln!(out, "changed   {setting}")?;
    }
    for reason in not_open {
        if let NotReady::RunNotOpen { run_id: run, why } = reason {
            writeln!(out, "not open  run {run}: {why}")?;
        }
    }
    Ok(())
}
