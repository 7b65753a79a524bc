//! Tests how keys change the view, and what a screen shows.

use runner_audit::Entry;

use super::{super::recent::RecentLines, *};
use crate::commands::palette::Palette;

const SIZE: Size = Size { rows: 10, columns: 60 };

/// Returns the journal line of a call of the model `m{n}`.
fn line(n: usize) -> String {
    let seq = n + 1;
    format!(
        r#"{{"v":3,"seq":{seq},"ts":"2026-11-21T08:30:00.000000Z","run_id":"r","account":"a","model_asked":"\u001b[31mm{n:02}",
        "model_answered":null,"status":200,"outcome":"complete","refusal":null,"ttfb_us":null,"duration_us":5,
        "tokens":{{"input":1,"output":1,"cached":0,"reasoning":0}},"tokens_source":"exact","kind":"model","cost_nanodollars":7}}"#
    )
}

/// View of fifty models, with the keys that were pressed.
struct FiftyModels {
    groups: Groups,
    lines: RecentLines,
    view: View,
}

impl FiftyModels {
    fn new() -> Self {
        let mut groups = Groups::new(By::Model);
        let mut lines = RecentLines::default();
        for line in (0..50).map(line) {
            groups.add(&Entry::parse(line.as_bytes()).unwrap());
            lines.add(line.as_bytes());
        }
        Self { groups, lines, view: View::new(By::Model, Sort::Cost) }
    }

    fn press(&mut self, keys: &str) -> AfterKey {
        let mut after = AfterKey::Continue;
        for key in Key::all_of(keys.as_bytes()) {
            let recent = self.lines.by(By::Model);
            after = self.view.press(key, Scene { groups: &self.groups, recent, now: 0, size: SIZE });
        }
        after
    }

    fn screen(&mut self) -> Vec<String> {
        let recent = self.lines.by(By::Model);
        let lines = self.view.screen(Scene { groups: &self.groups, recent, now: 0, size: SIZE });
        lines.iter().map(|line| line.render(SIZE.columns, Palette::Plain)).collect()
    }

    /// Returns the row under the cursor.
    fn selected(&mut self) -> String {
        let screen = self.screen();
        let row = screen.iter().find_map(|line| line.strip_prefix("\x1b[7m")).unwrap_or_default();
        row.split_whitespace().next().unwrap_or_default().to_owned()
    }
}

#[test]
fn keys_choose_grouping_and_sequence() {
    for (keys, group, sort) in [
        ("a", By::Account, Sort::Cost),
        ("mt", By::Model, Sort::Tokens),
        ("ar e", By::Run, Sort::Errors),
        ("l", By::Model, Sort::Latency),
        ("mrn", By::Run, Sort::Calls),
    ] {
        let mut fixture = FiftyModels::new();
        fixture.press(keys);
        assert_eq!((fixture.view.group, fixture.view.sort), (group, sort), "{keys}");
    }
}

#[test]
fn letters_go_to_the_filter_while_it_is_typed() {
    let mut fixture = FiftyModels::new();
    assert_eq!(fixture.press("/qacx\x7f"), AfterKey::Continue);
    assert_eq!((fixture.view.filter.as_str(), fixture.view.sort), ("qac", Sort::Cost));
    fixture.press("\rt");
    assert_eq!((fixture.view.filter.as_str(), fixture.view.sort), ("qac", Sort::Tokens));
    fixture.press("\x1b");
    assert_eq!(fixture.view.filter, "");
}

#[test]
fn the_cursor_reaches_every_row() {
    let mut fixture = FiftyModels::new();
    assert_eq!(fixture.selected(), "m00");
    for (keys, row) in [
        ("j\x1b[B", "m02"),
        ("k", "m01"),
        ("\x1b[6~", "m07"),
        ("\x1b[F", "m49"),
        ("j", "m49"),
        ("\x1b[5~", "m43"),
        ("\x1b[H", "m00"),
        ("\x1b[A", "m00"),
    ] {
        fixture.press(keys);
        assert_eq!(fixture.selected(), row, "{keys:?}: {:#?}", fixture.screen());
    }
    fixture.press("\x1b[F");
    assert_eq!(fixture.screen()[1], "rows 45 to 50 of 50");
    fixture.press("/m0\r");
    assert_eq!(fixture.selected(), "m09", "fewer rows: {:#?}", fixture.screen());
}

#[test]
fn the_sum_is_of_what_is_filtered() {
    let mut fixture = FiftyModels::new();
    assert!(
        fixture.screen()[0].starts_with("models by cost: 50 of them, 50 calls,"),
        "{:?}",
        fixture.screen()
    );
    fixture.press("/m4\r");
    assert!(fixture.screen()[0].starts_with("models by cost: 10 of 50, 10 calls,"), "{:?}", fixture.screen());
}

#[test]
fn help_and_details_come_and_go() {
    let mut fixture = FiftyModels::new();
    let rows = fixture.screen();
    fixture.press("?");
    assert!(fixture.screen()[0].contains("Keys"), "{:#?}", fixture.screen());
    fixture.press("x");
    assert_eq!(fixture.screen(), rows);
    fixture.press("jj\r");
    assert!(fixture.screen()[0].starts_with("model m02"), "{:#?}", fixture.screen());
    fixture.press("\x1bkk");
    assert_eq!(fixture.screen(), rows);
    assert_eq!(fixture.press("\rq"), AfterKey::Quit);
}

#[test]
fn q_and_ctrl_c_leave() {
    assert_eq!(FiftyModels::new().press("q"), AfterKey::Quit);
    assert_eq!(FiftyModels::new().press("/\x03"), AfterKey::Quit);
    assert_eq!(FiftyModels::new().press("/q"), AfterKey::Continue);
}

#[test]
fn the_sort_column_is_marked() {
    for (key, title) in [("t", "▼IN"), ("c", "▼COST"), ("e", "▼ERRORS"), ("l", "▼P99"), ("n", "▼CALLS")]
    {
        let mut fixture = FiftyModels::new();
        fixture.press(key);
        let heading = &fixture.view.table(&fixture.groups, 0)[0];
        assert!(heading.contains(title), "{key}: {heading}");
    }
}

#[test]
fn a_screen_fits_and_no_name_drives_the_terminal() {
    let mut fixture = FiftyModels::new();
    for keys in ["", "?", "q", "\r", "\x1b/m1"] {
        fixture.press(keys);
        let screen = fixture.screen();
        assert!(screen.len() <= 10, "{screen:#?}");
        let plain = screen.concat().replace("\x1b[7m", "").replace("\x1b[0m", "");
        assert!(!plain.contains('\x1b'), "{screen:#?}");
        let width = |line: &String| line.replace("\x1b[7m", "").replace("\x1b[0m", "").chars().count();
        assert!(screen.iter().all(|line| width(line) <= SIZE.columns), "{screen:#?}");
    }
}
