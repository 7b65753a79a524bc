//! Reads which encodings of a content a request accepts.

use axum::http::{HeaderMap, header::ACCEPT_ENCODING};

/// Returns whether the request names gzip, and does not refuse it by `q=0`.
pub(crate) fn accepts_gzip(request: &HeaderMap) -> bool {
    let lines = request.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    let mut encodings = lines.flat_map(|line| line.split(','));
    encodings.any(|encoding| {
        let mut parts = encoding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(is_zero)
    })
}

/// Returns whether a parameter is a quality of zero.
fn is_zero(parameter: &str) -> bool {
    let value = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
    value.is_some_and(|value| value.parse::<f32>().is_ok_and(|quality| quality <= 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_only_if_it_is_accepted() {
        for (value, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("deflate, gzip; q=1.0, *;q=0.5", true),
            ("gzip;q=0", false),
            ("br, gzip; q=0.000", false),
            ("identity", false),
            ("*", false),
            ("xgzip", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, value.parse().unwrap());
            assert_eq!(accepts_gzip(&headers), expected, "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
