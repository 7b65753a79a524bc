//! Attacks the decoders with frames of all kinds: each row fails for the named reason, and its control is read.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use http::HeaderValue;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

/// Largest plain body of the tests.
const LIMIT: ByteSize = ByteSize::mib(1);
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const SKIPPABLE: [u8; 10] = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, b'a', b'b'];
/// Descriptors of windows (RFC 8878, 3.1.1.1.2).
const WINDOW_128_KIB: u8 = 7 << 3;
const WINDOW_8_MIB: u8 = 13 << 3;
const WINDOW_9_MIB: u8 = 13 << 3 | 1;
const WINDOW_128_MIB: u8 = 17 << 3;

/// Place of a block in its frame.
#[derive(Debug, Clone, Copy)]
enum Place {
    Inside,
    Last,
}

#[derive(Debug, PartialEq, Eq)]
struct Decoded {
    plain: Vec<u8>,
    steps: usize,
    most_memory: u64,
}

fn decode_up_to(limit: ByteSize, coding: Coding, encoded: &[u8]) -> Result<Decoded, DecodeError> {
    let mut decoder = Decoder::new(coding, encoded, limit)?;
    let (mut steps, mut most_memory) = (1, 0);
    while decoder.step()? == DecodeStatus::More {
        steps += 1;
        most_memory = most_memory.max(decoder.memory());
    }
    Ok(Decoded { plain: decoder.into_plain(), steps, most_memory })
}

fn decode(coding: Coding, encoded: &[u8]) -> Result<Vec<u8>, DecodeError> {
    decode_up_to(LIMIT, coding, encoded).map(|decoded| decoded.plain)
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn zstd(plain: &[u8]) -> Vec<u8> {
    compress_to_vec(plain, CompressionLevel::Fastest)
}

fn encode(coding: Coding, plain: &[u8]) -> Vec<u8> {
    match coding {
        Coding::Gzip => gzip(plain),
        Coding::Zstd => zstd(plain),
    }
}

/// Returns a block of this content.
fn raw(content: &[u8], place: Place) -> Vec<u8> {
    [&block_header(0, content.len(), place)[..], content].concat()
}

/// Returns a block of this byte, so many times.
fn repeated(byte: u8, times: usize, place: Place) -> Vec<u8> {
    [&block_header(1, times, place)[..], &[byte]].concat()
}

fn block_header(kind: usize, size: usize, place: Place) -> [u8; 3] {
    let [low, middle, high, ..] =
        (size << 3 | kind << 1 | usize::from(matches!(place, Place::Last))).to_le_bytes();
    [low, middle, high]
}

fn frame(header: &[u8], blocks: &[u8]) -> Vec<u8> {
    [&MAGIC[..], header, blocks].concat()
}

/// The reference encoder's frames, with a checksum, at its default level and at one that searches more.
#[test]
fn what_libzstd_writes_is_read() {
    let plain = include_bytes!("../../../../tests/golden/encoded/body.json");
    let at_3 = include_bytes!("../../../../tests/golden/encoded/body-3.zst");
    let at_19 = include_bytes!("../../../../tests/golden/encoded/body-19.zst");
    for encoded in [&at_3[..], at_19] {
        assert_eq!(decode(Coding::Zstd, encoded).as_deref(), Ok(&plain[..]));
    }
}

#[test]
fn one_known_coding_is_read() {
    let of = |values: &[&'static str]| {
        let name = header::CONTENT_ENCODING;
        Coding::of(&values.iter().map(|value| (name.clone(), HeaderValue::from_static(value))).collect())
    };
    for plain in [&[][..], &["identity"], &["Identity", "identity"]] {
        assert_eq!(of(plain), Ok(None), "{plain:?}");
    }
    for gzip in [&["gzip"][..], &["GZip"], &["x-gzip"], &["identity, gzip"], &["identity", " gzip"]] {
        assert_eq!(of(gzip), Ok(Some(Coding::Gzip)), "{gzip:?}");
    }
    assert_eq!(of(&["zstd"]), Ok(Some(Coding::Zstd)));
    let refused = [&["br"][..], &["deflate"], &["gzip, gzip"], &["gzip", "zstd"], &["zstd;q=1"], &[""]];
    for several in refused {
        assert_eq!(of(several), Err(DecodeError::Unsupported), "{several:?}");
    }
}

#[test]
fn one_whole_frame_is_read_and_nothing_else() {
    use DecodeError::{DictionaryNeeded, Malformed, Skippable, TooLarge, Trailing, WindowTooLarge};
    let hi = raw(b"Hi", Place::Last);
    let good = frame(&[0, WINDOW_128_KIB], &hi);
    assert_eq!(decode(Coding::Zstd, &good).as_deref(), Ok(&b"Hi"[..]), "control");
    for (name, encoded, error) in [
        ("nothing", Vec::new(), Malformed(Coding::Zstd)),
        ("plain", b"{\"model\":\"m\"}".to_vec(), Malformed(Coding::Zstd)),
        ("gzip", gzip(b"Hi"), Malformed(Coding::Zstd)),
        ("no last block", frame(&[0, WINDOW_128_KIB], &raw(b"Hi", Place::Inside)), Malformed(Coding::Zstd)),
        ("a byte behind", [&good[..], b"x"].concat(), Trailing(Coding::Zstd)),
        ("two frames", good.repeat(2), Trailing(Coding::Zstd)),
        ("skippable first", [&SKIPPABLE[..], &good].concat(), Skippable),
        ("skippable last", [&good[..], &SKIPPABLE].concat(), Trailing(Coding::Zstd)),
        ("a dictionary", frame(&[1, WINDOW_128_KIB, 7], &hi), DictionaryNeeded),
        ("window of 9 MiB", frame(&[0, WINDOW_9_MIB], &hi), WindowTooLarge),
        ("window of 128 MiB", frame(&[0, WINDOW_128_MIB], &hi), WindowTooLarge),
        ("claims 3 bytes", frame(&[0x20, 3], &hi), Malformed(Coding::Zstd)),
        ("claims 1 byte", frame(&[0x20, 1], &hi), Malformed(Coding::Zstd)),
        ("claims 2 MiB", frame(&[0x80, WINDOW_128_KIB, 0, 0, 0x20, 0], &hi), TooLarge),
        ("claims 4 GiB", frame(&[0xa0, 255, 255, 255, 255], &hi), WindowTooLarge),
    ] {
        assert_eq!(decode(Coding::Zstd, &encoded), Err(error), "{name}");
    }
    for (name, encoded) in [
        ("window of 8 MiB", frame(&[0, WINDOW_8_MIB], &hi)),
        ("its size", frame(&[0x20, 2], &hi)),
        (
            "two blocks",
            frame(&[0, WINDOW_128_KIB], &[raw(b"H", Place::Inside), raw(b"i", Place::Last)].concat()),
        ),
    ] {
        assert_eq!(decode(Coding::Zstd, &encoded).as_deref(), Ok(&b"Hi"[..]), "{name}");
    }
}

#[test]
fn one_whole_member_is_read_and_nothing_else() {
    let good = gzip(b"Hi");
    assert_eq!(decode(Coding::Gzip, &good).as_deref(), Ok(&b"Hi"[..]), "control");
    let changed = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    let end = good.len();
    for (name, encoded, error) in [
        ("nothing", Vec::new(), DecodeError::Malformed(Coding::Gzip)),
        ("zstd", zstd(b"Hi"), DecodeError::Malformed(Coding::Gzip)),
        ("another checksum", changed(end - 8), DecodeError::Malformed(Coding::Gzip)),
        ("another length", changed(end - 4), DecodeError::Malformed(Coding::Gzip)),
        ("a byte behind", [&good[..], b"x"].concat(), DecodeError::Trailing(Coding::Gzip)),
        ("two members", good.repeat(2), DecodeError::Trailing(Coding::Gzip)),
    ] {
        assert_eq!(decode(Coding::Gzip, &encoded), Err(error), "{name}");
    }
}

#[test]
fn a_truncated_body_is_never_read() {
    for coding in [Coding::Gzip, Coding::Zstd] {
        let whole = encode(coding, "Hello, hello, hello. ".repeat(40).as_bytes());
        for length in 0..whole.len() {
            assert_eq!(decode(coding, &whole[..length]), Err(DecodeError::Malformed(coding)), "{length}");
        }
        assert_eq!(decode(coding, &whole).map(|plain| plain.len()), Ok(840), "control");
    }
}

/// A few kilobytes that would be a gigabyte.
#[test]
fn a_bomb_ends_at_the_limit() {
    let zeros = repeated(0, 128 << 10, Place::Inside).repeat(8192);
    let bomb = frame(&[0, WINDOW_8_MIB], &zeros);
    assert_eq!(decode(Coding::Zstd, &bomb), Err(DecodeError::TooLarge));
    let bomb = gzip(&vec![0; 8 << 20]);
    assert_eq!(decode(Coding::Gzip, &bomb), Err(DecodeError::TooLarge));
    // Control: a content of exactly the limit.
    let zeros =
        [repeated(0, 128 << 10, Place::Inside).repeat(7), repeated(0, 128 << 10, Place::Last)].concat();
    for (coding, encoded) in
        [(Coding::Zstd, frame(&[0, WINDOW_8_MIB], &zeros)), (Coding::Gzip, gzip(&vec![0; 1 << 20]))]
    {
        let decoded = decode_up_to(LIMIT, coding, &encoded).unwrap();
        assert_eq!(decoded.plain.len() as u64, LIMIT.0);
        assert!(decoded.steps >= 8, "{coding}: other calls go on in between: {}", decoded.steps);
        assert!(decoded.most_memory < 4 * LIMIT.0, "{coding}: {}", decoded.most_memory);
    }
}

#[test]
fn blocks_without_content_end_early() {
    let empty = raw(b"", Place::Inside);
    let wasteful = frame(&[0, WINDOW_128_KIB], &[empty.repeat(1 << 20), raw(b"Hi", Place::Last)].concat());
    assert_eq!(decode(Coding::Zstd, &wasteful), Err(DecodeError::Wasteful(Coding::Zstd)));
    let some = frame(&[0, WINDOW_128_KIB], &[empty.repeat(1000), raw(b"Hi", Place::Last)].concat());
    assert_eq!(decode(Coding::Zstd, &some).as_deref(), Ok(&b"Hi"[..]), "control");
    // A stored block of deflate that has no content, in front of the first of the member.
    let good = gzip(b"Hi");
    let with_empty = |times| [&good[..10], &[0, 0, 0, 255, 255].repeat(times), &good[10..]].concat();
    assert_eq!(decode(Coding::Gzip, &with_empty(1 << 20)), Err(DecodeError::Wasteful(Coding::Gzip)));
    assert_eq!(decode(Coding::Gzip, &with_empty(1000)).as_deref(), Ok(&b"Hi"[..]), "control");
}

fn coding() -> impl Strategy<Value = Coding> {
    prop_oneof![Just(Coding::Gzip), Just(Coding::Zstd)]
}

/// Content that repeats itself more or less.
fn content() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(any::<u8>(), 0..200), 1..400_usize).prop_map(|(text, times)| text.repeat(times))
}

proptest! {
    #[test]
    fn what_is_encoded_is_read_back(coding in coding(), plain in content()) {
        let encoded = encode(coding, &plain);
        let exact = ByteSize(plain.len() as u64);
        let decoded = decode_up_to(exact, coding, &encoded).map(|decoded| decoded.plain);
        prop_assert_eq!(decoded.as_deref(), Ok(&plain[..]));
        if !plain.is_empty() {
            let less = ByteSize(exact.0 - 1);
            prop_assert_eq!(decode_up_to(less, coding, &encoded), Err(DecodeError::TooLarge));
        }
    }

    #[test]
    fn changed_bytes_stay_within_bounds(
        coding in coding(),
        plain in content(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        end in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut encoded = encode(coding, &plain);
        for (at, byte) in changes {
            let at = at.index(encoded.len());
            encoded[at] = byte;
        }
        if let Some(end) = end {
            encoded.truncate(end.index(encoded.len()));
        }
        let limit = ByteSize::kib(32);
        if let Ok(decoded) = decode_up_to(limit, coding, &encoded) {
            prop_assert!(decoded.plain.len() as u64 <= limit.0);
            let held = 2 * (zstd::MAX_WINDOW.0 + (128 << 10)) + gzip::MEMORY;
            prop_assert!(decoded.most_memory <= 2 * limit.0 + held);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read(coding in coding(), tail in prop::collection::vec(any::<u8>(), 0..300)) {
        let head: &[u8] = match coding {
            Coding::Gzip => &[0x1f, 0x8b, 8],
            Coding::Zstd => &MAGIC,
        };
        let encoded = [head, &tail].concat();
        if let Ok(plain) = decode(coding, &encoded) {
            prop_assert!(plain.len() as u64 <= LIMIT.0);
        }
    }
}
