//! Decides what `sluice audit top` shows, and how its keys change that. Pure: does not use the terminal.

use runner_audit::{By, Groups, Sort};

use super::{
    keys::Key,
    pages,
    recent::RecentCalls,
    rows::{self, GroupRow, Rows},
    screen_line::ScreenLine,
};
use crate::commands::{palette::Tone, screen::Size};

/// Longest filter that can be typed.
const MAX_FILTER: usize = 64;
/// Lines of a screen that are not rows: sum, position, titles and keys.
const FRAME_LINES: usize = 4;

/// Grouping, sequence and filter of the rows, and the part of them that is seen.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) group: By,
    pub(super) sort: Sort,
    /// Text that the name of each shown row contains.
    filter: String,
    focus: Focus,
    /// Number of the row under the cursor, from 0.
    selected: usize,
    /// Number of the first row on the screen.
    first: usize,
}

/// Part of the view that receives the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Focus {
    Rows,
    Filter,
    Help,
    /// Details of the row of this name.
    Details(String),
}

/// Effect of a key on the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterKey {
    Continue,
    Quit,
}

/// Everything that a screen is rendered from, besides the view.
#[derive(Clone, Copy)]
pub(super) struct Scene<'g> {
    pub(super) groups: &'g Groups,
    pub(super) recent: RecentCalls<'g>,
    /// Present time, in seconds since 1970.
    pub(super) now: u64,
    pub(super) size: Size,
}

impl View {
    pub(super) const fn new(group: By, sort: Sort) -> Self {
        Self { group, sort, filter: String::new(), focus: Focus::Rows, selected: 0, first: 0 }
    }

    /// Changes the view as `key` demands. `scene` is what the user sees.
    pub(super) fn press(&mut self, key: Key, scene: Scene<'_>) -> AfterKey {
        match (&self.focus, key) {
            (_, Key::Interrupt) => return AfterKey::Quit,
            (Focus::Filter, _) => self.type_filter(key),
            (_, Key::Letter('q')) => return AfterKey::Quit,
            (Focus::Help, _) => self.focus = Focus::Rows,
            (Focus::Details(_), Key::Escape | Key::Enter | Key::Back) => self.focus = Focus::Rows,
            (Focus::Details(_), Key::Letter('?')) | (Focus::Rows, Key::Letter('?')) => {
                self.focus = Focus::Help
            }
            (Focus::Details(_), _) => {}
            (Focus::Rows, Key::Escape) => self.filter.clear(),
            (Focus::Rows, Key::Enter) => {
                let row = self.rows(scene.groups).shown.get(self.selected).map(|row| row.name.to_owned());
                self.focus = row.map_or(Focus::Rows, Focus::Details);
            }
            (Focus::Rows, Key::Letter(letter)) => self.choose(letter),
            (Focus::Rows, _) => {}
        }
        if self.focus == Focus::Rows {
            self.scroll(key, scene);
        }
        AfterKey::Continue
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Enter => self.focus = Focus::Rows,
            Key::Escape => {
                self.filter.clear();
                self.focus = Focus::Rows;
            }
            Key::Back => drop(self.filter.pop()),
            Key::Letter(letter) if self.filter.len() < MAX_FILTER => self.filter.push(letter),
            _ => {}
        }
    }

    /// Changes the grouping or sequence, or begins the filter.
    fn choose(&mut self, letter: char) {
        match letter {
            'r' => self.group = By::Run,
            'a' => self.group = By::Account,
            'm' => self.group = By::Model,
            't' => self.sort = Sort::Tokens,
            'c' => self.sort = Sort::Cost,
            'e' => self.sort = Sort::Errors,
            'l' => self.sort = Sort::Latency,
            'n' => self.sort = Sort::Calls,
            '/' => self.focus = Focus::Filter,
            _ => {}
        }
        if "ramtceln".contains(letter) {
            self.selected = 0;
        }
    }

    /// Moves the cursor, and the part of the rows that is seen after it.
    fn scroll(&mut self, key: Key, scene: Scene<'_>) {
        let page = rows_on(scene.size);
        let last = self.rows(scene.groups).shown.len().saturating_sub(1);
        let selected = match key {
            Key::Up | Key::Letter('k') => self.selected.saturating_sub(1),
            Key::Down | Key::Letter('j') => self.selected + 1,
            Key::PageUp => self.selected.saturating_sub(page),
            Key::PageDown => self.selected.saturating_add(page),
            Key::Home => 0,
            Key::End => last,
            _ => self.selected,
        };
        self.selected = selected.min(last);
        self.first = self.first.clamp((self.selected + 1).saturating_sub(page), self.selected);
    }

    /// Returns the rows of `groups`.
    fn rows<'g>(&self, groups: &'g Groups) -> Rows<'g> {
        let mut shown: Vec<_> =
            groups.sorted(self.sort).into_iter().map(|(name, sums)| GroupRow { name, sums }).collect();
        let all = shown.len();
        shown.retain(|row| row.name.contains(&self.filter));
        Rows { shown, all }
    }

    /// Renders a screen. The rows may be fewer than at the last key, so the cursor is kept among them.
    pub(super) fn screen(&mut self, scene: Scene<'_>) -> Vec<ScreenLine> {
        let Scene { groups, recent, now, size } = scene;
        if let Focus::Rows | Focus::Filter = self.focus {
            // No key: only the limits of the rows and the screen apply.
            self.scroll(Key::Escape, scene);
        }
        let rows = self.rows(groups);
        let mut lines = match &self.focus {
            Focus::Help => pages::help(),
            Focus::Details(name) => match rows.shown.iter().find(|row| row.name == name) {
                Some(row) => pages::details(self.group.word(), *row, recent, size),
                None => Vec::new(),
            },
            Focus::Rows | Focus::Filter => {
                let range = self.first..self.first + rows_on(size);
                let mut lines = vec![
                    ScreenLine::of(Tone::Bold, rows.sum(self.group, self.sort)),
                    ScreenLine::of(Tone::Plain, position(&range, rows.shown.len())),
                    rows::heading(self.group, self.sort),
                ];
                for (at, row) in rows.shown.iter().enumerate().filter(|(at, _)| range.contains(at)) {
                    let line = row.line(now);
                    lines.push(if at == self.selected { line.selected(size.columns) } else { line });
                }
                lines
            }
        };
        lines.truncate(size.rows.saturating_sub(1));
        lines.push(ScreenLine::of(Tone::Plain, self.footer()));
        lines
    }

    /// Returns the titles and all rows as text.
    pub(super) fn table(&self, groups: &Groups, now: u64) -> Vec<String> {
        let heading = rows::heading(self.group, self.sort).text();
        let rows = self.rows(groups).shown.into_iter().map(|row| row.line(now).text());
        std::iter::once(heading).chain(rows).collect()
    }

    fn footer(&self) -> String {
        match &self.focus {
            Focus::Filter => format!("filter: {}_   Enter keeps it, Esc drops it", self.filter),
            Focus::Help => "any key goes back  q quit".to_owned(),
            Focus::Details(_) => "Esc goes back  ? help  q quit".to_owned(),
            Focus::Rows => {
                let filter =
                    if self.filter.is_empty() { String::new() } else { format!("  [{}]", self.filter) };
                format!(
                    "? help  q quit  / filter{filter}  Enter details | r runs  a accounts  m models | sort: t tokens  c cost  e errors  l latency  n calls"
                )
            }
        }
    }
}

/// Returns the number of rows that a screen has room for.
fn rows_on(size: Size) -> usize {
    size.rows.saturating_sub(FRAME_LINES).max(1)
}

/// Returns which of `count` rows are seen; nothing if all are.
fn position(seen: &std::ops::Range<usize>, count: usize) -> String {
    if seen.start == 0 && seen.end >= count {
        return String::new();
    }
    format!("rows {} to {} of {count}", seen.start + 1, seen.end.min(count))
}

#[cfg(test)]
mod tests;
