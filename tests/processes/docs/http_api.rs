//! The page on the HTTP API: its table of routes.

use std::collections::BTreeSet;

use harness::book::Page;
use serde_json::Value;

use super::openapi;

/// Returns the first two cells of each row of the page's table of routes: a request, and its role.
fn described_routes(page: &Page) -> BTreeSet<[String; 2]> {
    let table = page.section("## Routes");
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.split('|').skip(1).map(|cell| cell.trim().trim_matches('`').to_owned());
        [cells.next().unwrap(), cells.next().unwrap()]
    })
    .collect()
}

#[tokio::test]
async fn the_table_of_routes_has_every_route() {
    let described = described_routes(&Page::read("docs/src/reference/http-api.md"));
    let document: Value = serde_json::from_str(&openapi::document().await).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let routes: BTreeSet<_> = paths
        .flat_map(|(path, operations)| {
            operations.as_object().unwrap().iter().map(move |(method, operation)| {
                let role = operation["x-role"].as_str().unwrap_or("none").to_owned();
                [format!("{} {path}", method.to_ascii_uppercase()), role]
            })
        })
        .collect();
    let missing: Vec<_> = routes.difference(&described).collect();
    let stale: Vec<_> = described.difference(&routes).collect();
    assert!(missing.is_empty() && stale.is_empty(), "missing: {missing:?}\nstale: {stale:?}");
}
