//! Renders `sluice audit top`, and handles its keys. Pure: does not use the terminal.

use platform_core::control::InexactCalls;
use platform_runtime::terminal;
use runner_audit::{By, Groups, Sort, Sums};

use super::super::short_duration;
use crate::{
    commands::{figures, screen::Size},
    plural::counted,
};

/// Longest filter that can be typed.
const MAX_FILTER: usize = 64;

/// Most letters of a name that are shown.
const NAME_WIDTH: usize = 32;

/// Grouping, order and filter of the view.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) group: By,
    pub(super) sort: Sort,
    /// Text that the name of each shown row contains.
    filter: String,
    /// True while keys go to the filter.
    is_typing: bool,
}

/// Key that the user pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Letter(char),
    Enter,
    Escape,
    Back,
    /// Ctrl-C was pressed.
    Interrupt,
}

/// Effect of a key on the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterKey {
    Continue,
    Quit,
}

impl Key {
    /// Returns the keys in one read from the terminal. Escape sequences, such as arrows, are ignored.
    pub(super) fn all_of(bytes: &[u8]) -> Vec<Self> {
        if bytes.len() > 1 && bytes[0] == 0x1b {
            return Vec::new();
        }
        let key = |byte: &u8| match byte {
            b'\r' | b'\n' => Some(Self::Enter),
            0x1b => Some(Self::Escape),
            0x7f | 0x08 => Some(Self::Back),
            0x03 => Some(Self::Interrupt),
            b' '..=b'~' => Some(Self::Letter(char::from(*byte))),
            _ => None,
        };
        bytes.iter().filter_map(key).collect()
    }
}

impl View {
    pub(super) const fn new(group: By, sort: Sort) -> Self {
        Self { group, sort, filter: String::new(), is_typing: false }
    }

    /// Changes the view as `key` demands.
    pub(super) fn press(&mut self, key: Key) -> AfterKey {
        match key {
            Key::Interrupt => return AfterKey::Quit,
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.filter.clear();
                self.is_typing = false;
            }
            Key::Back if self.is_typing => drop(self.filter.pop()),
            Key::Letter(letter) if self.is_typing && self.filter.len() < MAX_FILTER => {
                self.filter.push(letter)
            }
            Key::Letter('q') if !self.is_typing => return AfterKey::Quit,
            Key::Letter(letter) if !self.is_typing => self.choose(letter),
            Key::Letter(_) | Key::Back => {}
        }
        AfterKey::Continue
    }

    /// Changes the grouping or order, or begins the filter.
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
            '/' => self.is_typing = true,
            _ => {}
        }
    }

    /// Renders a screen of `size`. `now` is in seconds since 1970.
    pub(super) fn screen(&self, groups: &Groups, now: u64, size: Size) -> Vec<String> {
        let mut lines = vec![self.heading(groups), String::new()];
        lines.extend(self.table(groups, now));
        lines.truncate(size.rows.saturating_sub(1));
        lines.push(self.footer());
        lines.into_iter().map(|line| line.chars().take(size.columns).collect()).collect()
    }

    /// Renders the heading and the rows. Sanitises names, because agents choose some of them.
    pub(super) fn table(&self, groups: &Groups, now: u64) -> Vec<String> {
        let heading = line(
            &self.group.word().to_uppercase(),
            ["CALLS", "/MIN", "REFUSED", "ERRORS", "IN", "OUT", "COST", "P50", "P99"].map(str::to_owned),
        );
        let rows = groups.sorted(self.sort).into_iter();
        let shown =
            rows.filter(|(name, _)| name.contains(&self.filter)).map(|(name, sums)| row(name, sums, now));
        std::iter::once(heading).chain(shown).collect()
    }

    fn heading(&self, groups: &Groups) -> String {
        let rows = groups.sorted(self.sort);
        let total = |figure: fn(&Sums) -> u64| {
            rows.iter().fold(0, |sum, (_, sums)| u64::saturating_add(sum, figure(sums)))
        };
        let cost = rows.iter().map(|(_, sums)| sums.cost).sum();
        let mut inexact = InexactCalls::default();
        rows.iter().for_each(|(_, sums)| inexact += sums.inexact);
        format!(
            "{}s by {}: {} of them, {}, {} refused, {}, {}, {}",
            self.group.word(),
            word(self.sort),
            rows.len(),
            counted(total(|sums| sums.calls), "call"),
            total(|sums| sums.refused),
            counted(total(|sums| sums.errors), "error"),
            counted(figures::tokens(total(Sums::all_tokens), inexact), "token"),
            figures::cost(cost, inexact),
        )
    }

    fn footer(&self) -> String {
        if self.is_typing {
            return format!("filter: {}_   Enter keeps it, Esc drops it", self.filter);
        }
        let filter = if self.filter.is_empty() { String::new() } else { format!("  [{}]", self.filter) };
        format!(
            "r runs  a accounts  m models | sort: t tokens  c cost  e errors  l latency  n calls | / filter{filter}  q quit"
        )
    }
}

const fn word(sort: Sort) -> &'static str {
    match sort {
        Sort::Tokens => "tokens",
        Sort::Cost => "cost",
        Sort::Errors => "errors",
        Sort::Latency => "latency",
        Sort::Calls => "calls",
    }
}

fn row(name: &str, sums: &Sums, now: u64) -> String {
    let name: String = terminal::safe(name).replace(['\n', '\t'], " ").chars().take(NAME_WIDTH).collect();
    line(
        &name,
        [
            sums.calls.to_string(),
            sums.per_minute(now).to_string(),
            sums.refused.to_string(),
            sums.errors.to_string(),
            figures::tokens(sums.tokens.input, sums.inexact),
            figures::tokens(sums.tokens.output, sums.inexact),
            figures::cost(sums.cost, sums.inexact),
            short_duration(sums.whole.percentile(50)),
            short_duration(sums.whole.percentile(99)),
        ],
    )
}

fn line(name: &str, cells: [String; 9]) -> String {
    let [calls, rate, refused, errors, input, output, cost, p50, p99] = cells;
    format!(
        "{name:NAME_WIDTH$} {calls:>7} {rate:>6} {refused:>7} {errors:>6} {input:>9} {output:>9} {cost:>13} {p50:>8} {p99:>8}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(keys: &str) -> View {
        let mut view = View::new(By::Run, Sort::Tokens);
        for key in Key::all_of(keys.as_bytes()) {
            assert_eq!(view.press(key), AfterKey::Continue, "{keys:?}");
        }
        view
    }

    #[test]
    fn keys_choose_what_is_shown() {
        let view = |group, sort| View::new(group, sort);
        assert_eq!(after("a"), view(By::Account, Sort::Tokens));
        assert_eq!(after("mc"), view(By::Model, Sort::Cost));
        assert_eq!(after("ar e?"), view(By::Run, Sort::Errors));
        assert_eq!(after("l"), view(By::Run, Sort::Latency));
        assert_eq!(after("mrnt"), view(By::Run, Sort::Tokens));
    }

    #[test]
    fn letters_go_to_the_filter_while_it_is_typed() {
        let typed = after("/qacx\x7f");
        assert_eq!((typed.filter.as_str(), typed.is_typing, typed.sort), ("qac", true, Sort::Tokens));
        let kept = after("/qac\rc");
        assert_eq!((kept.filter.as_str(), kept.is_typing, kept.sort), ("qac", false, Sort::Cost));
        let mut dropped = after("/qac\r");
        assert_eq!(dropped.press(Key::Escape), AfterKey::Continue);
        assert_eq!((dropped.filter.as_str(), dropped.is_typing), ("", false));
    }

    #[test]
    fn q_and_ctrl_c_leave_and_arrows_do_nothing() {
        assert_eq!(after("").press(Key::Letter('q')), AfterKey::Quit);
        assert_eq!(after("/").press(Key::Interrupt), AfterKey::Quit);
        assert_eq!(after("/").press(Key::Letter('q')), AfterKey::Continue);
        assert_eq!(Key::all_of(b"\x1b[A"), []);
        assert_eq!(Key::all_of(b"\x1b"), [Key::Escape]);
        assert_eq!(Key::all_of(b"\x1a\x00"), []);
    }

    #[test]
    fn a_screen_fits_and_no_name_drives_the_terminal() {
        let mut groups = Groups::new(By::Model);
        for n in 0..50 {
            let line = format!(
                r#"{{"v":3,"seq":1,"ts":"2026-11-21T08:30:00.000000Z","run_id":"r","account":"a","model_asked":"\u001b[31mm{n}",
                "model_answered":null,"status":200,"outcome":"complete","refusal":null,"ttfb_us":null,"duration_us":5,
                "tokens":{{"input":1,"output":1,"cached":0,"reasoning":0}},"tokens_source":"exact","kind":"model","cost_nanodollars":7}}"#
            );
            groups.add(&runner_audit::Entry::parse(line.as_bytes()).unwrap());
        }
        let screen = View::new(By::Model, Sort::Cost).screen(&groups, 0, Size { rows: 10, columns: 60 });
        assert_eq!(screen.len(), 10);
        assert!(screen.iter().all(|line| line.chars().count() <= 60), "{screen:#?}");
        assert!(screen[3].starts_with("m") && !screen.concat().contains('\x1b'), "{screen:#?}");
    }
}
