//! resolve turns a path as it is written into one from the crate's root, or from another crate's name.

use super::{
    Import,
    collect::{Collected, Named},
};

/// Renames that are followed at most; more would be a circle.
const RENAMES: usize = 8;

/// Returns the path that `named` means, unless it starts at a type (`Self::…`).
pub(super) fn resolve(collected: &Collected, named: &Named) -> Option<Import> {
    let mut segments = follow_all(collected, &named.module, &named.segments);
    segments.retain(|segment| !segment.is_empty());
    let is_type = segments.first().is_some_and(|first| first == "Self");
    let Named { line, is_glob, in_tests, .. } = *named;
    (!is_type).then_some(Import { line, segments, is_glob, in_tests })
}

/// Returns the path that a name in the root of a crate stands for.
pub(super) fn target(collected: &Collected, segments: &[String]) -> Vec<String> {
    follow_all(collected, &[], segments)
}

fn follow_all(collected: &Collected, module: &[String], segments: &[String]) -> Vec<String> {
    let mut segments = segments.to_vec();
    for _ in 0..RENAMES {
        match follow(collected, module, &segments) {
            Some(followed) if followed != segments => segments = followed,
            _ => break,
        }
    }
    segments
}

/// Takes one step towards the root, if the path does not begin there.
fn follow(collected: &Collected, module: &[String], segments: &[String]) -> Option<Vec<String>> {
    let first = segments.first()?;
    match first.as_str() {
        "" | "crate" | "Self" => None,
        "self" => Some(from_root(module, &segments[1..])),
        "super" => {
            let climbs = segments.iter().take_while(|segment| *segment == "super").count();
            let above = &module[..module.len().saturating_sub(climbs)];
            Some(from_root(above, &segments[climbs..]))
        }
        _ => {
            let child = [module, std::slice::from_ref(first)].concat();
            if collected.declared.contains(&child) {
                return Some(from_root(&child, &segments[1..]));
            }
            let target = collected.aliases.get(&(module.to_vec(), first.clone()))?;
            // `use bytes::bytes` or `use tracing::{self}`: the name is that of the crate.
            let is_itself = target.first() == Some(first);
            (!is_itself).then(|| [target, &segments[1..]].concat())
        }
    }
}

fn from_root(module: &[String], rest: &[String]) -> Vec<String> {
    let root = ["crate".to_owned()];
    [&root, module, rest].concat()
}
