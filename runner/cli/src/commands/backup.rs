//! Implements `sluice backup` and `sluice restore`.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use runner_store::{Onto, Rows};

use super::{Context, Error, exit::Exit};
use crate::plural::counted;

#[derive(clap::Args)]
pub(super) struct BackupArguments {
    /// File to write; an existing file is replaced
    file: PathBuf,
}

#[derive(clap::Args)]
pub(super) struct RestoreArguments {
    /// File written by `sluice backup`
    file: PathBuf,
    /// Replace the contents of the store, for all its installations. Active runs of this installation lose their rows
    /// and can store nothing more
    #[arg(long)]
    force: bool,
}

pub(super) async fn backup(context: &Context, arguments: BackupArguments) -> Result<Exit, Error> {
    let store = context.store().await?;
    let Rows(rows) = store.backup(&arguments.file).await?;
    writeln!(
        io::stdout(),
        "{} of {} in {}",
        counted(rows, "row"),
        store.describe(),
        arguments.file.display()
    )?;
    Ok(Exit::Success)
}

pub(super) async fn restore(context: &Context, arguments: RestoreArguments) -> Result<Exit, Error> {
    let condition = if arguments.force { Onto::Anything } else { Onto::Empty };
    let store = context.serving_store().await?;
    let Rows(rows) = store.restore(&arguments.file, condition).await?;
    writeln!(
        io::stdout(),
        "{} of {} in {}",
        counted(rows, "row"),
        arguments.file.display(),
        store.describe()
    )?;
    Ok(Exit::Success)
}
