//! bundle reads the header of a bundle, within bounds, before git sees any byte of it.
//!
//! A bundle is a text with prerequisites and branches, an empty line, and a pack. Versions 2 and 3 of the format are
//! known; of version 3, no filter is accepted.

use std::{
    collections::BTreeSet,
    io::{self, Read},
};

use platform_core::limit::ByteSize;

use crate::{
    branch::SandboxBranch,
    judge::{Objection, RelayRule},
    object_id::ObjectId,
};

/// First lines of the formats that are known.
const SIGNATURES: [&str; 2] = ["# v2 git bundle", "# v3 git bundle"];
/// Most bytes before the pack.
const MAX_HEADER: usize = 64 << 10;
/// Most prerequisites.
const MAX_PREREQUISITES: usize = 200;
/// Bytes at the beginning of a pack.
const PACK_START: usize = 12;
/// First bytes of a pack.
const PACK_MAGIC: &[u8] = b"PACK";
/// Versions of packs.
const PACK_VERSIONS: [u32; 2] = [2, 3];

/// Limits of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundleBounds {
    /// Most bytes.
    pub bytes: ByteSize,
    /// Most objects, as the pack counts them.
    pub objects: u32,
}

impl Default for BundleBounds {
    fn default() -> Self {
        Self { bytes: ByteSize::mib(64), objects: 50_000 }
    }
}

/// Header of a bundle of one branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleHeader {
    /// Commits on which the bundle builds.
    pub prerequisites: BTreeSet<ObjectId>,
    /// Last commit of the branch.
    pub tip: ObjectId,
    /// Bytes before the pack.
    pub length: u64,
    /// Number of objects in the pack.
    pub objects: u32,
}

impl BundleHeader {
    /// Reads the header of a bundle of `branch`. Reads little more than the header.
    ///
    /// # Errors
    /// The system's. An objection to the header is not an error.
    pub fn read(
        source: impl Read,
        branch: &SandboxBranch,
        bounds: &BundleBounds,
    ) -> io::Result<Result<Self, Objection>> {
        let mut start = Vec::new();
        source.take((MAX_HEADER + PACK_START) as u64).read_to_end(&mut start)?;
        Ok(parse(&start, branch, bounds))
    }
}

fn form(detail: &str) -> Objection {
    Objection::new(RelayRule::BundleForm, detail)
}

fn parse(start: &[u8], branch: &SandboxBranch, bounds: &BundleBounds) -> Result<BundleHeader, Objection> {
    let end =
        start.windows(2).position(|pair| pair == b"\n\n").ok_or_else(|| form("its header has no end"))?;
    let text = std::str::from_utf8(&start[..end]);
    let text = text.map_err(|_error| form("its header is not text"))?;
    let pack = &start[end + 2..];
    let mut lines = text.split('\n').peekable();
    let signature = lines.next().unwrap_or_default();
    if !SIGNATURES.contains(&signature) {
        return Err(form("its first line is of no known version"));
    }
    while let Some(line) = lines.next_if(|line| signature == SIGNATURES[1] && line.starts_with('@')) {
        check_capability(line)?;
    }
    let mut prerequisites = BTreeSet::new();
    while let Some(line) = lines.next_if(|line| line.starts_with('-')) {
        // Behind the name stands the subject of a commit, which is free text.
        let name = line[1..].split(' ').next().unwrap_or_default();
        prerequisites.insert(
            ObjectId::parse(name).map_err(|_invalid| form("a prerequisite is not an object's name"))?,
        );
    }
    if prerequisites.len() > MAX_PREREQUISITES {
        return Err(Objection::new(RelayRule::BundlePrerequisite, "too many prerequisites"));
    }
    let tip = only_reference(lines, branch)?;
    let objects = count_objects(pack)?;
    if objects > bounds.objects {
        let detail = format!("{objects} objects, at most {}", bounds.objects);
        return Err(Objection::new(RelayRule::BundleSize, detail));
    }
    Ok(BundleHeader { prerequisites, tip, length: end as u64 + 2, objects })
}

/// Accepts the name of the hash, and nothing else.
fn check_capability(line: &str) -> Result<(), Objection> {
    match line {
        "@object-format=sha1" => Ok(()),
        _ => Err(form("it demands a capability that is not known")),
    }
}

/// Returns the commit of the only branch, which must be `branch`.
fn only_reference<'l>(
    mut lines: impl Iterator<Item = &'l str>,
    branch: &SandboxBranch,
) -> Result<ObjectId, Objection> {
    let line = lines.next().ok_or_else(|| form("it has no branch"))?;
    let (id, name) = line.split_once(' ').ok_or_else(|| form("a line of its header is odd"))?;
    let id = ObjectId::parse(id).map_err(|_invalid| form("a branch is at no object"))?;
    let other = |name: &str| {
        Objection::new(
            RelayRule::BundleReference,
            format!("it has {name}, and not only {}", branch.reference()),
        )
    };
    if name != branch.reference() {
        return Err(other(name));
    }
    match lines.next() {
        Some(line) => Err(other(line.split_once(' ').map_or(line, |(_, name)| name))),
        None => Ok(id),
    }
}

/// Returns the number of objects that a pack says it has.
fn count_objects(pack: &[u8]) -> Result<u32, Objection> {
    let number = |bytes: &[u8]| bytes.try_into().map(u32::from_be_bytes).ok();
    let parts = pack.get(..PACK_START).and_then(|start| start.strip_prefix(PACK_MAGIC));
    let parts = parts.and_then(|rest| rest.split_at_checked(4));
    let known =
        parts.filter(|(version, _)| number(version).is_some_and(|version| PACK_VERSIONS.contains(&version)));
    known
        .and_then(|(_, count)| number(count))
        .ok_or_else(|| form("no pack of a known version follows its header"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1";
    const PACK: &[u8] = b"PACK\0\0\0\x02\0\0\0\x07rest";

    fn read(header: &str, pack: &[u8]) -> Result<BundleHeader, Objection> {
        let bundle = [header.as_bytes(), pack].concat();
        let branch = SandboxBranch::parse("sandbox/run").unwrap();
        BundleHeader::read(&bundle[..], &branch, &BundleBounds::default()).unwrap()
    }

    #[test]
    fn headers_of_both_versions_are_read() {
        for header in [
            format!("# v2 git bundle\n-{ID} a subject\n{ID} refs/heads/sandbox/run\n\n"),
            format!("# v2 git bundle\n-{ID}\n{ID} refs/heads/sandbox/run\n\n"),
            format!("# v3 git bundle\n@object-format=sha1\n-{ID} \n{ID} refs/heads/sandbox/run\n\n"),
        ] {
            let read = read(&header, PACK).unwrap();
            assert_eq!((read.length, read.objects), (header.len() as u64, 7), "{header}");
            assert_eq!((read.prerequisites.len(), read.tip.as_str()), (1, ID));
        }
    }

    #[test]
    fn odd_headers_are_refused_by_a_rule() {
        use RelayRule::{BundleForm, BundlePrerequisite, BundleReference};
        let own = format!("{ID} refs/heads/sandbox/run");
        let many: String =
            (0..201).map(|number| format!("-{number:040x}\n").replace("-000", "-1a0")).collect();
        for (header, rule) in [
            (String::new(), BundleForm),
            ("# v2 git bundle\n\n".to_owned(), BundleForm),
            (format!("# v4 git bundle\n{own}\n\n"), BundleForm),
            (format!("# v2 git bundle\n@object-format=sha1\n{own}\n\n"), BundleForm),
            (format!("# v3 git bundle\n@filter=blob:none\n{own}\n\n"), BundleForm),
            (format!("# v2 git bundle\n-HEAD\n{own}\n\n"), BundleForm),
            (format!("# v2 git bundle\n{many}{own}\n\n"), BundlePrerequisite),
            (format!("# v2 git bundle\n{own}\n-{ID} x\n\n"), BundleReference),
            (format!("# v2 git bundle\n{ID} refs/heads/main\n\n"), BundleReference),
            (format!("# v2 git bundle\n{ID} HEAD\n\n"), BundleReference),
            (format!("# v2 git bundle\n{own}\n{ID} refs/tags/v1\n\n"), BundleReference),
            (format!("# v2 git bundle\n{own}\r\n\n"), BundleReference),
            (format!("# v2 git bundle\n{own}\n{own}\n\n"), BundleReference),
            (format!("# v2 git bundle\n{} refs/heads/sandbox/run\n\n", "0".repeat(40)), BundleForm),
            (format!("# v2 git bundle\n{ID}\n\n"), BundleForm),
            (format!("# v2 git bundle\n{}{own}\n\n", "-x".repeat(MAX_HEADER)), BundleForm),
        ] {
            assert_eq!(read(&header, PACK).unwrap_err().rule, rule, "{header:.200}");
        }
        let header = format!("# v2 git bundle\n{own}\n\n");
        for pack in [&b""[..], b"PACK", b"PACK\0\0\0\x09\0\0\0\x07", b"KCAP\0\0\0\x02\0\0\0\x07"] {
            assert_eq!(read(&header, pack).unwrap_err().rule, BundleForm);
        }
        assert_eq!(read(&header, b"PACK\0\0\0\x02\xff\0\0\0").unwrap_err().rule, RelayRule::BundleSize);
    }

    proptest! {
        #[test]
        fn no_bytes_upset_the_parser(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0_usize..300) {
            let header = format!("# v2 git bundle\n-{ID} x\n{ID} refs/heads/sandbox/run\n\n");
            let mut mixed = header.into_bytes();
            mixed.truncate(cut);
            mixed.extend(&bytes);
            let branch = SandboxBranch::parse("sandbox/run").unwrap();
            for content in [&bytes, &mixed] {
                let read = BundleHeader::read(&content[..], &branch, &BundleBounds::default()).unwrap();
                if let Ok(header) = read {
                    prop_assert!(header.length + (PACK_START as u64) <= content.len() as u64);
                }
            }
        }
    }
}
