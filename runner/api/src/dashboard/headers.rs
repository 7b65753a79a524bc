//! Defines the headers with which a browser bounds what a page of the dashboard can do.

use axum::http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS},
};

/// Path to which browsers report what the policy has blocked.
pub(crate) const CSP_REPORTS: &str = "/api/v1/csp-reports";

/// Policy of all pages: files of this origin alone, no code or style inside a page, and no frame around it. No script
/// makes code or markup of a text, because no policy of trusted types exists.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
    trusted-types 'none'; report-uri /api/v1/csp-reports";

/// Capabilities of a device, none of which a page needs. Writing to the clipboard is left.
const PERMISSIONS: &str = "accelerometer=(), autoplay=(), camera=(), clipboard-read=(), display-capture=(), \
    encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), hid=(), idle-detection=(), magnetometer=(), \
    microphone=(), midi=(), payment=(), picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), \
    serial=(), usb=(), xr-spatial-tracking=()";

/// Adds the headers that every answer of the dashboard has.
pub(crate) fn harden(headers: &mut HeaderMap) {
    let all = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), PERMISSIONS),
    ];
    for (name, value) in all {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_allows_no_inline_code() {
        assert!(POLICY.contains(&format!("report-uri {CSP_REPORTS}")), "{POLICY}");
        for loose in ["unsafe", "*", "data:", "http", "blob:"] {
            assert!(!POLICY.contains(loose), "{loose}: {POLICY}");
        }
        assert!(!POLICY.contains("  ") && !PERMISSIONS.contains("  "), "one blank between words");
    }
}
