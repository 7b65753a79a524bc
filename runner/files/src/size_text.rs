//! Formats sizes for people, in the largest binary unit that fits.

use platform_core::limit::ByteSize;

const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Returns `size` with at most one decimal, such as `1.5 MiB`.
#[must_use]
pub fn size_text(size: ByteSize) -> String {
    let mut tenths = u128::from(size.0) * 10;
    let mut unit = "B";
    for next in UNITS {
        if tenths < 10_240 {
            break;
        }
        tenths /= 1024;
        unit = next;
    }
    let whole = tenths / 10;
    match tenths % 10 {
        0 => format!("{whole} {unit}"),
        tenth => format!("{whole}.{tenth} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal() {
        for (size, text) in
            [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (1 << 40, "1 TiB")]
        {
            assert_eq!(size_text(ByteSize(size)), text);
        }
    }
}
