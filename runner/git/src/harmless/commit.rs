//! commit writes a commit anew if its message or names have effects.
//!
//! The format is that of git's objects: headers, an empty line, and a message.

use std::{borrow::Cow, collections::BTreeMap};

use memchr::memmem;

use super::{
    disarm::{TextKind, disarm},
    plain::plain,
};
use crate::object_id::ObjectId;

/// Beginnings of the headers of people.
const PEOPLE: [&str; 2] = ["author ", "committer "];
/// Beginning of the header of a commit before this one.
const PARENT: &str = "parent ";
/// Beginning of the header that names the encoding of the message. Without it the message is UTF-8.
const ENCODING: &str = "encoding ";
/// Name for a person if nothing of the person's own name is seen.
const NAMELESS: &str = "unknown";

/// Returns `content` of a commit without effects and with the `replaced` parents; `None` if it can stay as it is. A new
/// commit has no signature: it would be that of another commit.
pub(crate) fn harmless_commit(content: &[u8], replaced: &BTreeMap<ObjectId, ObjectId>) -> Option<Vec<u8>> {
    let end = memmem::find(content, b"\n\n").unwrap_or(content.len());
    let headers = String::from_utf8_lossy(&content[..end]);
    let old_message = String::from_utf8_lossy(content.get(end + 2..).unwrap_or_default());
    let message = disarm(&old_message, TextKind::Commit);
    let mut is_changed = message != old_message;
    let mut new = String::with_capacity(content.len());
    for header in headers.lines() {
        let harmless = match header {
            person if PEOPLE.iter().any(|role| person.starts_with(role)) => harmless_person(person),
            parent if parent.starts_with(PARENT) => replaced_parent(parent, replaced),
            tree if tree.starts_with("tree ") => Cow::Borrowed(tree),
            other => {
                is_changed |= other.starts_with(ENCODING);
                continue;
            }
        };
        is_changed |= harmless != header;
        new.push_str(&harmless);
        new.push('\n');
    }
    is_changed.then(|| (new + "\n" + &message).into_bytes())
}

fn replaced_parent<'h>(header: &'h str, replaced: &BTreeMap<ObjectId, ObjectId>) -> Cow<'h, str> {
    let parent = header.strip_prefix(PARENT).and_then(|id| ObjectId::parse(id).ok());
    match parent.and_then(|id| replaced.get(&id)) {
        Some(id) => format!("{PARENT}{id}").into(),
        None => header.into(),
    }
}

/// Returns `role NAME <ADDRESS> SECONDS ZONE` without effects. Git's checks let no other form pass.
fn harmless_person(header: &str) -> Cow<'_, str> {
    let parts = header.split_once(' ').and_then(|(role, person)| {
        let (name, rest) = person.split_once('<')?;
        let (address, time) = rest.split_once('>')?;
        Some((role, name, address, time))
    });
    let Some((role, old_name, address, time)) = parts else { return header.into() };
    let name = disarm(old_name, TextKind::Commit);
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = if name.is_empty() { NAMELESS } else { &name };
    format!("{role} {name} <{}>{time}", plain(address)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904";

    fn commit(author: &str, message: &str) -> String {
        let people = format!("author {author} 1700000000 +0100\ncommitter C D <c@d> 1700000000 +0100");
        format!("{TREE}\nparent {}\n{people}\n\n{message}", "a1".repeat(20))
    }

    fn harmless(content: &str) -> Option<String> {
        harmless_commit(content.as_bytes(), &BTreeMap::new()).map(|new| String::from_utf8(new).unwrap())
    }

    #[test]
    fn harmless_commits_stay_as_they_are() {
        for (author, message) in [
            ("A. B. <a.b@example.org>", "Add a parser\n\nIt reads <b>.\n\nCo-authored-by: B <b@c.org>\n"),
            ("Zoë <>", ""),
            ("A <a@b>", "feat: x (1/2), a#b, ünï\n\n\n"),
        ] {
            assert_eq!(harmless(&commit(author, message)), None, "{author} {message}");
        }
        assert_eq!(harmless(&commit("A <a@b>", "x").replace("\n\n", "\ngpgsig -----BEGIN\n x\n\n")), None);
    }

    #[test]
    fn effects_are_taken_out() {
        for (author, message, new_author, new_message) in [
            ("A <a@b>", "Fix #1 @everyone\n", "A <a@b>", "Fix # 1 @ everyone\n"),
            ("A\u{202e}B\u{1b}[31m @c <a@b\u{200b}>", "x", "AB @ c <a@b>", "x"),
            ("\u{200b} <a@b>", "x\r\ny\u{feff}", "unknown <a@b>", "x\ny"),
        ] {
            assert_eq!(harmless(&commit(author, message)), Some(commit(new_author, new_message)));
        }
        let signed = commit("A <a@b>", "Fix #1").replace("\n\n", "\ngpgsig -----BEGIN\n x\n\n");
        assert_eq!(harmless(&signed), Some(commit("A <a@b>", "Fix # 1")), "the signature goes");
        let encoded = commit("A <a@b>", "+AEA-everyone").replace("\n\n", "\nencoding UTF-7\n\n");
        assert_eq!(
            harmless(&encoded),
            Some(commit("A <a@b>", "+AEA-everyone")),
            "it is read as it was judged"
        );
    }

    #[test]
    fn parents_follow() {
        let [old, new] = ["a1", "b2"].map(|digits| ObjectId::parse(&digits.repeat(20)).unwrap());
        let content = commit("A <a@b>", "x");
        let replaced = [(old.clone(), new.clone())].into();
        let rewritten = harmless_commit(content.as_bytes(), &replaced).unwrap();
        assert_eq!(String::from_utf8(rewritten).unwrap(), content.replace(old.as_str(), new.as_str()));
    }
}
