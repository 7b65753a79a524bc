//! Implements `sluice audit export`.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use runner_audit::csv;
use runner_control_client::DataPlane;

use super::{SelectedRecords, Selection, TimeRange, filter, record};
use crate::commands::{Error, error::Misused, exit::Exit};

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Output format
    #[arg(long, value_enum)]
    format: Format,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    range: TimeRange,
    /// Write to this file instead of standard output; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Header line and a line per record (RFC 4180), safe to open in a spreadsheet
    Csv,
    /// Lines of the journal, unchanged
    Ndjson,
}

pub(super) async fn export(data_plane: &DataPlane, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { format, selection, range, output } = arguments;
    // The journal is opened before the file: without a journal, an existing file must stay.
    let records = SelectedRecords::of(data_plane, filter(data_plane, selection, range).await?).await?;
    match output {
        None => write_to(BufWriter::new(io::stdout()), records, format).await?,
        Some(path) => {
            let partial = PartialFile::create(&path)?;
            write_to(BufWriter::new(partial.file.try_clone()?), records, format).await?;
            partial.rename_to(&path)?;
        }
    }
    Ok(Exit::Success)
}

async fn write_to(mut out: impl Write, mut records: SelectedRecords, format: Format) -> Result<(), Error> {
    if format == Format::Csv {
        out.write_all(csv::header().as_bytes())?;
    }
    while let Some(line) = records.next().await? {
        match format {
            Format::Csv => out.write_all(csv::row(&record(line)?).as_bytes())?,
            Format::Ndjson => {
                out.write_all(line)?;
                out.write_all(b"\n")?;
            }
        }
    }
    Ok(out.flush()?)
}

/// Unfinished file in the directory of its destination. Dropping removes it, unless it was renamed.
struct PartialFile {
    file: File,
    path: PathBuf,
}

impl PartialFile {
    fn create(destination: &Path) -> Result<Self, Misused> {
        let Some(name) = destination.file_name() else {
            return Err(Misused(format!("{} is not the name of a file", destination.display())));
        };
        let path =
            destination.with_file_name(format!(".{}.{}.partial", name.to_string_lossy(), std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file =
            file.map_err(|error| Misused(format!("cannot write beside {}: {error}", destination.display())))?;
        Ok(Self { file, path })
    }

    fn rename_to(mut self, destination: &Path) -> Result<(), Error> {
        self.file.sync_all()?;
        fs::rename(&self.path, destination)
            .map_err(|error| Misused(format!("cannot replace {}: {error}", destination.display())))?;
        self.path.clear();
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // An error cannot be handled here: the command fails with another one already.
            drop(fs::remove_file(&self.path));
        }
    }
}
