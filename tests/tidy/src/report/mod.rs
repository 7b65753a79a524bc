//! report measures the repository as a whole: size, language, loops, names, prose and commits.

mod code;
mod words;

use serde_json::{Map, Value};

use crate::{Error, sources::Repository};

/// Measurements that belong together.
#[derive(Debug)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// Each measurement, with its value.
    pub rows: Vec<(String, Value)>,
}

/// Measures everything.
///
/// # Errors
/// If a file cannot be read or does not parse.
pub fn measure(repository: &Repository) -> Result<Vec<Section>, Error> {
    Ok(vec![
        code::size(repository)?,
        code::shape(repository)?,
        code::loops(repository)?,
        code::names(repository)?,
        code::constants(repository)?,
        words::comments(repository),
        words::openings(repository),
        words::tests(repository)?,
        words::prose(repository),
        words::commits(repository),
        figures(repository)?,
    ])
}

/// Returns the measurements as JSON: an object for each section.
#[must_use]
pub fn json(sections: &[Section]) -> Value {
    let each = sections.iter().map(|section| {
        (section.title.to_owned(), Value::Object(section.rows.iter().cloned().collect::<Map<_, _>>()))
    });
    Value::Object(each.collect())
}

/// Returns the measurements as Markdown tables.
#[must_use]
pub fn table(sections: &[Section]) -> String {
    let mut text = String::new();
    for section in sections {
        text += &format!("\n## {}\n\n| what | value |\n|---|--:|\n", section.title);
        for (name, value) in &section.rows {
            text += &format!("| {name} | {} |\n", shown(value));
        }
    }
    text.trim_start().to_owned()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name} {}", shown(value)));
            fields.collect::<Vec<_>>().join(" · ")
        }
        other => other.to_string(),
    }
}

/// Returns the figures that may only fall, as they are today.
fn figures(repository: &Repository) -> Result<Section, Error> {
    let rows = crate::figures::FIGURES.iter().map(|figure| {
        let today = figure.offenders(repository)?.len();
        Ok((figure.key.to_owned(), Value::from(today)))
    });
    Ok(Section { title: "Figures that may only fall", rows: rows.collect::<Result<_, Error>>()? })
}

/// Returns `part` of `whole` in percent, rounded to a tenth.
fn percent(part: usize, whole: usize) -> Value {
    Value::from(tenths(part, whole, 1000))
}

/// Returns how many of `whole` a `part` is per thousand, rounded to a tenth.
fn per_thousand(part: usize, whole: usize) -> Value {
    Value::from(tenths(part, whole, 10_000))
}

#[expect(clippy::cast_precision_loss, reason = "counts of lines are far below 2^52")]
fn tenths(part: usize, whole: usize, scale: usize) -> f64 {
    let scaled = (part * scale * 2 + whole) / (2 * whole.max(1));
    scaled as f64 / 10.0
}
