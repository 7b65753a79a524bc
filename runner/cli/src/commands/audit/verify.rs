//! Implements `sluice audit verify`.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use platform_core::{
    control::Cursor,
    json::{self, Bounds},
};
use platform_runtime::terminal;
use runner_audit::{
    files::{self, Files, Piece},
    verify::{HeldCursor, Verification, Verifier},
};
use runner_control_client::{DataPlane, Follow};

use crate::{
    commands::{Error, error::Misused, exit::Exit, progress::ProgressLine},
    plural::counted,
};

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Read the files of a stopped proxy, or a copy of them, instead of asking the proxy
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Compare with a kept cursor: JSON with `journal`, `seq` and `hash`; may be repeated
    #[arg(long, value_name = "FILE")]
    cursor: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn verify(data_plane: &DataPlane, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { dir, cursor, json } = arguments;
    let held: Vec<_> = cursor.iter().map(|file| read_cursor(file)).collect::<Result<_, _>>()?;
    let verification = match dir {
        Some(dir) => verify_files(&dir, held)?,
        None => verify_proxy(data_plane, held).await?,
    };
    let mut out = io::stdout();
    if json {
        writeln!(out, "{}", terminal::safe_json(&serde_json::to_string(&verification)?))?;
    } else {
        write!(out, "{}", terminal::safe(&text(&verification)?))?;
    }
    Ok(if verification.fault.is_none() { Exit::Success } else { Exit::Failure })
}

/// Reads a cursor that an earlier verification printed.
fn read_cursor(file: &Path) -> Result<HeldCursor, Misused> {
    let shown = file.display();
    let text = fs::read(file).map_err(|error| Misused(format!("cannot read {shown}: {error}")))?;
    let cursor: Cursor = json::from_slice(&text, Bounds::STORED).map_err(|error| {
        Misused(format!("{shown} is not a cursor as `sluice audit verify` prints it: {error}"))
    })?;
    Ok(HeldCursor { who: format!("cursor {shown}"), cursor })
}

async fn verify_proxy(data_plane: &DataPlane, mut held: Vec<HeldCursor>) -> Result<Verification, Error> {
    let consumers = data_plane.consumers().await?;
    held.extend(consumers.into_iter().map(|consumer| HeldCursor {
        who: format!("consumer {}", consumer.name),
        cursor: consumer.acknowledged,
    }));
    let health = data_plane.health().await?;
    let mut lines = data_plane.journal(None, Follow::UntilEnd).await?;
    let mut verifier = Verifier::new(health.journal_id, held);
    verifier.lost(&health.lost);
    let mut progress = ProgressLine::on_terminal();
    while let Some(line) = lines.next().await? {
        verifier.line(line);
        show_progress(&mut progress, &verifier);
    }
    drop(progress);
    Ok(verifier.finish(Some(health.journal_seq)))
}

fn verify_files(dir: &Path, held: Vec<HeldCursor>) -> Result<Verification, Error> {
    let misused = |error: files::Error| Misused(platform_runtime::report::chain(&error));
    let mut files = Files::open(dir).map_err(misused)?;
    // A copy may lack its id. Then the id in a cursor must do.
    let id = Files::journal_id(dir).or_else(|| held.first().map(|holder| holder.cursor.journal.clone()));
    let mut verifier = Verifier::new(id.unwrap_or_default(), held);
    let mut progress = ProgressLine::on_terminal();
    while let Some(piece) = files.next_piece().map_err(misused)? {
        match piece {
            Piece::Line(line) => verifier.line(line),
            Piece::Unfinished(rest) => writeln!(
                io::stderr(),
                "a file ends with {} bytes of an unfinished line: not a record; a proxy cuts them off when it starts",
                rest.len()
            )?,
        }
        show_progress(&mut progress, &verifier);
    }
    drop(progress);
    Ok(verifier.finish(None))
}

fn text(verification: &Verification) -> Result<String, Error> {
    if let Some(fault) = &verification.fault {
        return Ok(format!("the journal is not whole: {}\n", fault.message));
    }
    let Some(cursor) = &verification.cursor else { return Ok(String::new()) };
    let range = verification.first.map_or_else(String::new, |first| format!(", {first} to {}", cursor.seq));
    let mut text = format!("the journal is whole: {}{range}\n", counted(verification.records, "record"));
    verification.agrees.iter().for_each(|who| text += &format!("it agrees with {who}\n"));
    text += &format!("keep this to check it against: {}\n", serde_json::to_string(cursor)?);
    Ok(text)
}

/// Shows how many records were verified. Looks only now and then: to read the clock takes longer than to read a line.
fn show_progress(progress: &mut Option<ProgressLine>, verifier: &Verifier) {
    if let Some(line) = progress
        && verifier.records().is_multiple_of(256)
    {
        line.draw(|_| format!("{} records", verifier.records()));
    }
}
