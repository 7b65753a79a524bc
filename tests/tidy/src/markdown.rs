//! markdown reads a document: its links, the anchors of its headings, and its inline code.

use std::collections::{BTreeMap, BTreeSet};

/// Something in a document, with the line where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Line, counted from 1.
    pub line: usize,
    /// The link's target or the code's text.
    pub text: String,
}

/// A document without its code blocks.
#[derive(Debug)]
pub struct Document {
    /// Targets of links and images, as they are written.
    pub links: Vec<Found>,
    /// Inline code.
    pub code: Vec<Found>,
    /// Names that a link may have behind `#`.
    pub anchors: BTreeSet<String>,
}

impl Document {
    /// Reads a document.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let bare = without_blocks(text);
        let (code, prose) = inline_code(&bare);
        Self { links: links(&prose), code, anchors: anchors(&bare) }
    }
}

/// Empties fenced code blocks and comments, and keeps the number of lines.
fn without_blocks(text: &str) -> String {
    let mut kept = String::new();
    let mut fence: Option<String> = None;
    let mut in_comment = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let marks: String = trimmed.chars().take_while(|c| ['`', '~'].contains(c)).collect();
        in_comment |= trimmed.starts_with("<!--");
        match &fence {
            Some(open) if marks.starts_with(open.as_str()) => fence = None,
            Some(_) => {}
            None if marks.len() >= 3 => fence = Some(marks),
            None if in_comment => {}
            None => kept.push_str(line),
        }
        in_comment &= !trimmed.contains("-->");
        kept.push('\n');
    }
    kept
}

/// Returns the inline code, and the text with that code replaced by dots.
fn inline_code(text: &str) -> (Vec<Found>, String) {
    let mut found = Vec::new();
    let mut prose = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let marks = rest[start..].chars().take_while(|c| *c == '`').count();
        let inside = &rest[start + marks..];
        let paragraph = inside.find("\n\n").unwrap_or(inside.len());
        let Some(end) = closing(&inside[..paragraph], marks) else {
            prose.push_str(&rest[..start + marks]);
            rest = inside;
            continue;
        };
        prose.push_str(&rest[..start]);
        let line = 1 + prose.matches('\n').count();
        found.push(Found { line, text: inside[..end].trim().to_owned() });
        prose.extend(inside[..end].chars().map(|c| if c == '\n' { '\n' } else { '·' }));
        rest = &inside[end + marks..];
    }
    prose.push_str(rest);
    (found, prose)
}

/// Returns where a run of exactly `marks` backticks begins.
fn closing(text: &str, marks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(start) = text[at..].find('`') {
        let run = text[at + start..].chars().take_while(|c| *c == '`').count();
        if run == marks {
            return Some(at + start);
        }
        at += start + run;
    }
    None
}

/// Returns the targets of links, images, link definitions and HTML attributes.
fn links(prose: &str) -> Vec<Found> {
    let mut found = Vec::new();
    for (index, line) in prose.lines().enumerate() {
        let mut note = |target: &str| found.push(Found { line: index + 1, text: target.to_owned() });
        for (at, _) in line.match_indices("](") {
            note(target(&line[at + 2..]));
        }
        let label = line.trim_start().strip_prefix('[').and_then(|label| label.split_once(']'));
        // `[^1]: …` is a footnote; its text is prose.
        if let Some((_, rest)) = label.filter(|(name, _)| !name.starts_with('^')) {
            rest.strip_prefix(": ")
                .and_then(|rest| rest.split_whitespace().next())
                .into_iter()
                .for_each(&mut note);
        }
        for attribute in ["href=\"", "src=\""] {
            for (at, _) in line.match_indices(attribute) {
                note(line[at + attribute.len()..].split('"').next().unwrap_or_default());
            }
        }
    }
    found
}

/// Returns a link's target from what follows `](`: up to its bracket or its title.
fn target(rest: &str) -> &str {
    if let Some((inside, _)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        return inside;
    }
    let mut depth = 0_usize;
    for (at, c) in rest.char_indices() {
        match c {
            ')' if depth == 0 => return &rest[..at],
            ')' => depth -= 1,
            '(' => depth += 1,
            ' ' => return &rest[..at],
            _ => {}
        }
    }
    rest
}

/// Returns the anchors of headings, and those that HTML gives.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for line in text.lines() {
        for attribute in ["id=\"", "name=\""] {
            for (at, _) in line.match_indices(attribute).filter(|_| line.contains('<')) {
                anchors.extend(line[at + attribute.len()..].split('"').next().map(str::to_owned));
            }
        }
        let Some(heading) = heading(line) else { continue };
        if let Some((_, named)) = heading.split_once("{#") {
            anchors.extend(named.strip_suffix('}').map(str::to_owned));
        }
        let slug = slug(heading);
        let seen = times.entry(slug.clone()).or_default();
        anchors.insert(if *seen == 0 { slug } else { format!("{slug}-{seen}") });
        *seen += 1;
    }
    anchors
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    ((1..=6).contains(&level) && text.starts_with(' ')).then(|| text.trim())
}

/// Returns the anchor that GitHub and mdBook give a heading.
#[must_use]
pub fn slug(heading: &str) -> String {
    let heading = heading.split("{#").next().unwrap_or_default().trim();
    let text = without_targets(heading).to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Replaces each link of a heading by its text.
fn without_targets(heading: &str) -> String {
    let mut kept = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        kept.push_str(before);
        rest = after.get(target(after).len() + 1..).unwrap_or_default();
    }
    kept + rest
}
