//! words measures language: comments, openings, test names, documents and commit subjects.

use serde_json::{Value, json};

use super::{
    Section,
    code::{row, spread},
    per_thousand, percent,
};
use crate::{
    Error,
    comments::{self, Kind, Line},
    commits,
    figures::{shipped, tools},
    file::SourceFile,
    language, names,
    sources::Repository,
};

/// Documents that are watched for their length.
const DOCUMENTS: [&str; 3] = ["README.md", "ARCHITECTURE.md", "SECURITY.md"];

/// Measures the comments of shipped crates, tests inside them too.
pub(super) fn comments(repository: &Repository) -> Section {
    let lines: Vec<Line> = shipped(repository).flat_map(|file| comments::lines(&file.text)).collect();
    let with = |holds: &dyn Fn(&str) -> bool| lines.iter().filter(|line| holds(&line.text)).count();
    let mut rows = vec![row("comment lines", Value::from(lines.len()))];
    for word in language::RETIRED {
        let count =
            lines.iter().flat_map(|line| language::retired(&line.text)).filter(|found| *found == word);
        rows.push(row(&format!("\"{word}\" per 1,000"), per_thousand(count.count(), lines.len())));
    }
    let any = with(&|text| language::retired(text).next().is_some());
    rows.push(row("lines with any of these, per 1,000", per_thousand(any, lines.len())));
    rows.push(row("lines with any of these", Value::from(any)));
    let told = with(&|text| text.split(|c: char| !c.is_alphabetic()).any(|word| word == "told"));
    rows.push(row("\"told\" per 1,000", per_thousand(told, lines.len())));
    let what = with(&|text| language::opening(text) == Some("What"));
    rows.push(row("lines opening with \"What\" per 1,000", per_thousand(what, lines.len())));
    Section { title: "Comments", rows }
}

/// Measures how documentation opens and how long its sentences are.
pub(super) fn openings(repository: &Repository) -> Section {
    let mut rows = Vec::new();
    for (name, files) in
        [("shipped", shipped(repository).collect::<Vec<_>>()), ("tools", tools(repository).collect())]
    {
        let blocks = files.iter().flat_map(|file| comments::documentation(&file.text)).collect::<Vec<_>>();
        let bad = blocks.iter().filter(|block| language::opening(&block.text).is_some()).count();
        rows.push(row(&format!("documentation comments, {name}"), Value::from(blocks.len())));
        rows.push(row(&format!("openings to avoid, {name}"), Value::from(bad)));
        rows.push(row(&format!("openings to avoid, {name}, %"), percent(bad, blocks.len())));
        let modules = blocks.iter().filter(|block| block.kind == Kind::Module);
        let mut words: Vec<usize> = modules
            .flat_map(|block| language::sentences(&block.text))
            .map(|sentence| sentence.words())
            .collect();
        words.sort_unstable();
        rows.push(row(&format!("words of a module's sentence, {name}"), spread(&words)));
    }
    Section { title: "Documentation", rows }
}

/// Measures the lengths of test names.
pub(super) fn tests(repository: &Repository) -> Result<Section, Error> {
    let lengths = |files: Vec<&SourceFile>| -> Result<Vec<usize>, Error> {
        let mut lengths = Vec::new();
        for file in files {
            lengths.extend(names::tests(file)?.iter().map(|test| test.what.chars().count()));
        }
        lengths.sort_unstable();
        Ok(lengths)
    };
    let all = lengths(repository.rust().collect())?;
    let integration = lengths(repository.rust().filter(|file| file.path.starts_with("tests/")).collect())?;
    let rows = vec![
        row("tests", Value::from(all.len())),
        row("characters of a name, all", spread(&all)),
        row("characters of a name, integration tests", spread(&integration)),
    ];
    Ok(Section { title: "Test names", rows })
}

/// Measures the documents that are read first.
pub(super) fn prose(repository: &Repository) -> Section {
    let found = DOCUMENTS.iter().filter_map(|path| repository.file(path));
    let rows = found.map(|document| {
        let text = &document.text;
        let mut words: Vec<usize> =
            language::sentences(text).iter().map(|sentence| sentence.words()).collect();
        words.sort_unstable();
        let value = json!({
            "lines": text.lines().count(),
            "words": text.split_whitespace().count(),
            "bytes": text.len(),
            "headings": text.lines().filter(|line| line.starts_with('#')).count(),
            "words of a sentence": spread(&words),
        });
        row(&document.path, value)
    });
    Section { title: "Documents", rows: rows.collect() }
}

/// Measures the subjects of all commits, where there is a history.
pub(super) fn commits(repository: &Repository) -> Section {
    let history = commits::history(repository.root());
    let all = history.lines().count();
    let long = history.lines().filter_map(commits::too_long).count();
    let rows = vec![
        row("commits", Value::from(all)),
        row("subjects of more than 72 characters, %", percent(long, all)),
    ];
    Section { title: "Commits", rows }
}
