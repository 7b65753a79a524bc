//! Implements `sluice audit top`: shows usage by run, account or model, as it changes.

mod keys;
mod pages;
mod recent;
mod rows;
mod screen_line;
mod view;

use std::{
    io::{self, Write},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use platform_runtime::{
    shutdown::{RunBy, signalled},
    terminal,
};
use runner_audit::{By, Groups, Sort};
use runner_control_client::{self as data_plane, DataPlane, Follow, Lines};
use serde_json::json;

use self::{
    keys::Key,
    recent::RecentLines,
    view::{AfterKey, Scene, View},
};
use super::{entry, stats};
use crate::commands::{
    Error,
    exit::Exit,
    palette::Palette,
    screen::{Screen, Size},
};

/// Interval between two drawings of the view.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Sort order of rows
    #[arg(long, value_enum, default_value = "tokens")]
    by: Sort,
    /// Unit of a row
    #[arg(long, value_enum, default_value = "run")]
    group: By,
    /// Print the table once, as JSON
    #[arg(long)]
    json: bool,
}

/// Sums of all records so far, grouped by run, by account and by model, and the latest records.
struct Tables {
    sums: [Groups; By::ALL.len()],
    recent: RecentLines,
}

impl Tables {
    fn new() -> Self {
        Self { sums: By::ALL.map(Groups::new), recent: RecentLines::default() }
    }

    fn add(&mut self, line: &[u8]) -> Result<(), Error> {
        let entry = entry(line)?;
        self.sums.iter_mut().for_each(|groups| groups.add(&entry));
        self.recent.add(line);
        Ok(())
    }

    fn by(&self, by: By) -> &Groups {
        let [runs, accounts, models] = &self.sums;
        match by {
            By::Run => runs,
            By::Account => accounts,
            By::Model => models,
        }
    }

    fn scene(&self, by: By, size: Size) -> Scene<'_> {
        Scene { groups: self.by(by), recent: self.recent.by(by), now: now(), size }
    }
}

pub(super) async fn top(
    data_plane: &DataPlane,
    palette: Palette,
    arguments: Arguments,
) -> Result<Exit, Error> {
    let view = View::new(arguments.group, arguments.by);
    if arguments.json {
        return print_once(data_plane, &view, SnapshotFormat::Json).await;
    }
    let lines = data_plane.journal(None, Follow::On).await?;
    match Screen::take()? {
        Some(screen) => run_view(&Canvas { screen, palette }, lines, view).await,
        None => print_once(data_plane, &view, SnapshotFormat::Table).await,
    }
}

/// Format of a table that is printed once.
enum SnapshotFormat {
    Table,
    Json,
}

async fn print_once(data_plane: &DataPlane, view: &View, format: SnapshotFormat) -> Result<Exit, Error> {
    let mut lines = data_plane.journal(None, Follow::UntilEnd).await?;
    let mut tables = Tables::new();
    while let Some(line) = lines.next().await? {
        tables.add(line)?;
    }
    let mut out = io::stdout();
    let groups = tables.by(view.group);
    let now = now();
    match format {
        SnapshotFormat::Table => {
            view.table(groups, now).iter().try_for_each(|line| writeln!(out, "{line}"))?
        }
        SnapshotFormat::Json => {
            let row = |(name, sums)| {
                let mut row = stats::row(view.group, name, sums);
                row["calls_per_minute"] = sums.per_minute(now).into();
                row
            };
            let rows: Vec<_> = groups.sorted(view.sort).into_iter().map(row).collect();
            let snapshot = json!({ "by": view.group.word(), "rows": rows });
            writeln!(out, "{}", terminal::safe_json(&snapshot.to_string()))?;
        }
    }
    Ok(Exit::Success)
}

/// Terminal and its colours.
struct Canvas {
    screen: Screen,
    palette: Palette,
}

impl Canvas {
    fn draw(&self, view: &mut View, tables: &Tables) -> Result<(), Error> {
        let size = self.screen.size();
        let lines = view.screen(tables.scene(view.group, size));
        let lines: Vec<_> = lines.iter().map(|line| line.render(size.columns, self.palette)).collect();
        Ok(self.screen.draw(&lines)?)
    }
}

/// Shows the view until the user quits, a signal arrives or the proxy stops. Dropping the screen restores the terminal.
async fn run_view(canvas: &Canvas, mut lines: Lines, mut view: View) -> Result<Exit, Error> {
    let mut tables = Tables::new();
    let stop = signalled(RunBy::Person)?;
    tokio::pin!(stop);
    let mut tick = tokio::time::interval(REFRESH_INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    // Buffered lines are read before the next drawing. A key is handled at once.
    loop {
        let has_buffered = lines.has_next();
        tokio::select! {
            () = &mut stop => return Ok(Exit::Cancelled),
            keys = canvas.screen.read_keys() => {
                for key in Key::all_of(&keys?) {
                    let scene = tables.scene(view.group, canvas.screen.size());
                    if view.press(key, scene) == AfterKey::Quit {
                        return Ok(Exit::Success);
                    }
                }
                canvas.draw(&mut view, &tables)?;
            }
            line = lines.next() => match line? {
                Some(line) => tables.add(line)?,
                None => return Err(Error::from(data_plane::Error::Gone)),
            },
            _ = tick.tick(), if !has_buffered => canvas.draw(&mut view, &tables)?,
        }
    }
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
