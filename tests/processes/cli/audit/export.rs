//! Tests `sluice audit export`: a spreadsheet reads exactly what was recorded, and a file is whole or not there.

use std::fs;

use harness::World;
use platform_core::record::JournalLine;

use super::said;

/// Starts a world in which the name of one model that was asked for is a formula to a spreadsheet.
async fn world_with_calls() -> World {
    let world = World::start().await;
    let (first, second) = (world.run("r1", "acct-1").await, world.run("r2", "acct-2").await);
    for model in ["@SUM", "-2", "fake-tools-cost"] {
        first.agent.chat(model).await;
    }
    second.agent.chat("fake").await;
    world.records(4).await;
    world
}

/// Reads CSV as RFC 4180 has it.
fn read(csv: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = csv.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => cell.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted && letters.peek() == Some(&'\n') => {
                letters.next();
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            letter => cell.push(letter),
        }
    }
    assert!(cell.is_empty() && row.is_empty() && !quoted, "it ends with a line: {csv}");
    rows
}

#[tokio::test]
async fn csv_has_every_record_and_no_formula() {
    let world = world_with_calls().await;
    let rows = read(&said(&world, &["export", "--format", "csv"]).await);
    let records: Vec<JournalLine> = world.journal().await;
    assert_eq!(rows.len(), records.len() + 1);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let at = |row: usize, column: &str| {
        let column = rows[0].iter().position(|name| name == column).unwrap_or_else(|| panic!("{column}"));
        rows[row + 1][column].as_str()
    };
    for (row, line) in records.iter().enumerate() {
        let record = &line.record;
        assert_eq!(at(row, "seq"), line.seq.to_string());
        assert_eq!(at(row, "run_id"), record.run_id.as_str());
        assert_eq!(at(row, "litellm_call_id"), record.litellm_call_id.to_string());
        assert_eq!(at(row, "tokens_output"), record.tokens.output.to_string());
        assert_eq!(at(row, "duration_us"), record.duration_us.to_string());
        assert_eq!(at(row, "outcome"), record.outcome.word());
        let cost = record.cost_nanodollars.map(|cost| cost.0.to_string()).unwrap_or_default();
        assert_eq!(at(row, "cost_nanodollars"), cost);
    }
    let asked: Vec<_> = (0..4).map(|row| at(row, "model_asked")).collect();
    assert_eq!(asked, ["'@SUM", "'-2", "fake-tools-cost", "fake"]);
    assert_eq!(at(2, "tools"), "get_weather");
    // Control: the journal has the name as it was sent.
    assert_eq!(records[0].record.model_asked.as_ref().unwrap().as_str(), "@SUM");
    assert!(rows.iter().flatten().all(|cell| !cell.starts_with(['=', '+', '-', '@', '\t', '\r'])));
}

#[tokio::test]
async fn every_field_of_a_record_has_its_column() {
    let world = world_with_calls().await;
    let columns = read(&said(&world, &["export", "--format", "csv"]).await).remove(0);
    let line = serde_json::to_value(&world.journal().await[0]).unwrap();
    for field in
        line.as_object().unwrap().keys().filter(|field| !["prev", "tokens"].contains(&field.as_str()))
    {
        assert!(columns.contains(field), "{field} is not in {columns:?}");
    }
    for field in line["tokens"].as_object().unwrap().keys() {
        assert!(columns.contains(&format!("tokens_{field}")), "{field} is not in {columns:?}");
    }
}

/// The export can be restricted to an account and to a span of time.
#[tokio::test]
async fn ndjson_export_equals_journal_lines() {
    let world = world_with_calls().await;
    let export =
        async |flags: &[&str]| said(&world, &[&["export", "--format", "ndjson"], flags].concat()).await;
    let journal = fs::read_to_string(world.journal_file()).unwrap();
    assert_eq!(export(&[]).await, journal);
    let lines: Vec<_> = journal.lines().collect();
    assert_eq!(export(&["--account", "acct-2"]).await, format!("{}\n", lines[3]));
    assert_eq!(export(&["--run", "r2", "--from", "1h"]).await, format!("{}\n", lines[3]));
    assert_eq!(export(&["--to", "2020-01-01"]).await, "");
    assert_eq!(export(&["--from", "2099-01-01"]).await, "");
    let records = world.journal().await;
    let third = records[2].record.ts.as_str();
    assert_eq!(export(&["--to", third]).await, format!("{}\n{}\n", lines[0], lines[1]), "begun before");
    assert_eq!(
        export(&["--from", third]).await,
        format!("{}\n{}\n", lines[2], lines[3]),
        "begun then or later"
    );
}

#[tokio::test]
async fn a_file_is_replaced_whole_or_stays() {
    let mut world = world_with_calls().await;
    let dir = world.path().join("out");
    fs::create_dir(&dir).unwrap();
    let file = dir.join("calls.csv");
    fs::write(&file, "before").unwrap();
    let export = ["export", "--format", "csv", "-o", file.to_str().unwrap()];
    said(&world, &export).await;
    assert_eq!(read(&fs::read_to_string(&file).unwrap()).len(), 5);
    fs::write(&file, "before").unwrap();
    world.stop_proxy().await;
    let outcome = world.sluice().run(&[&["audit"], &export[..]].concat()).await;
    assert_eq!((outcome.code, fs::read_to_string(&file).unwrap().as_str()), (Some(69), "before"));
    let left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["calls.csv"], "nothing is left beside it");
}
