//! `sluice backup` and `sluice restore`

use std::{
    io::{self, Write},
    path::PathBuf,
};

use super::{Context, Error, exit::Exit};
use crate::store::{Onto, Rows};

#[derive(clap::Args)]
pub(super) struct BackupArguments {
    /// The file to write; what is there is replaced
    file: PathBuf,
}

#[derive(clap::Args)]
pub(super) struct RestoreArguments {
    /// What `sluice backup` wrote
    file: PathBuf,
    /// Replace what the store holds. Runs that are under way lose their rows, and can store nothing any more
    #[arg(long)]
    force: bool,
}

pub(super) async fn backup(context: &Context, arguments: BackupArguments) -> Result<Exit, Error> {
    let store = context.store().await?;
    let Rows(rows) = store.backup(&arguments.file).await?;
    writeln!(io::stdout(), "{rows} rows of {} in {}", store.describe(), arguments.file.display())?;
    Ok(Exit::Success)
}

pub(super) async fn restore(context: &Context, arguments: RestoreArguments) -> Result<Exit, Error> {
    let onto = if arguments.force { Onto::Anything } else { Onto::Empty };
    let store = context.serving_store().await?;
    let Rows(rows) = store.restore(&arguments.file, onto).await?;
    writeln!(io::stdout(), "{rows} rows of {} in {}", arguments.file.display(), store.describe())?;
    Ok(Exit::Success)
}
