//! Tests answers with files that a test has made, as the build would embed them.

use std::io::Read;

use axum::http::header::{CONTENT_SECURITY_POLICY, X_FRAME_OPTIONS};
use flate2::read::GzDecoder;

use super::*;
use crate::own_page::tests::headers;

const SCRIPT: &[u8] = b"console.log('a script that repeats, a script that repeats, a script that repeats')";

fn dashboard() -> Dashboard {
    let gzip = embed::gzip(SCRIPT).unwrap().leak();
    let file = |name, media_type, bytes, gzip| EmbeddedFile { name, media_type, hash: "aa11", bytes, gzip };
    let files = vec![
        file("assets/app-1.js", "text/javascript; charset=utf-8", SCRIPT, Some(&*gzip)),
        file("assets/icon-1.png", "image/png", b"png", None),
        file("index.html", HTML, b"<!doctype html>", None),
    ];
    Dashboard { files: files.leak() }
}

#[test]
fn a_page_is_the_index_and_is_not_kept() {
    let page = dashboard().page(&HeaderMap::new());
    assert_eq!((page.status(), &page.body()[..]), (StatusCode::OK, &b"<!doctype html>"[..]));
    assert_eq!(
        (&page.headers()[CACHE_CONTROL], &page.headers()[CONTENT_TYPE]),
        (&"no-store".parse().unwrap(), &HTML.parse().unwrap())
    );
}

#[test]
fn without_files_a_page_says_how_to_build_them() {
    let unbuilt = Dashboard { files: &[] };
    let page = unbuilt.page(&HeaderMap::new());
    assert_eq!(page.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(String::from_utf8_lossy(page.body()).contains("make web"));
    assert!(page.headers().contains_key(CONTENT_SECURITY_POLICY));
    assert!(unbuilt.asset("app-1.js", &HeaderMap::new()).is_none());
}

#[test]
fn an_asset_is_sent_in_an_accepted_encoding() {
    let plain = dashboard().asset("app-1.js", &HeaderMap::new()).unwrap();
    assert_eq!((&plain.body()[..], plain.headers().get(CONTENT_ENCODING)), (SCRIPT, None));
    assert_eq!(
        (&plain.headers()[CACHE_CONTROL], &plain.headers()[VARY]),
        (&IMMUTABLE.parse().unwrap(), &"accept-encoding".parse().unwrap())
    );
    let accepting = headers(&[("accept-encoding", "br, gzip")]);
    let packed = dashboard().asset("app-1.js", &accepting).unwrap();
    assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
    let mut unpacked = Vec::new();
    GzDecoder::new(&packed.body()[..]).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, SCRIPT);
    assert_ne!(packed.headers()[ETAG], plain.headers()[ETAG], "each form has its own tag");
    let icon = dashboard().asset("icon-1.png", &accepting).unwrap();
    assert_eq!((&icon.body()[..], icon.headers().get(CONTENT_ENCODING)), (&b"png"[..], None));
}

#[test]
fn a_known_asset_is_not_sent_again() {
    for etag in ["\"aa11\"", "\"x\", \"aa11\""] {
        let answer = dashboard().asset("app-1.js", &headers(&[("if-none-match", etag)])).unwrap();
        assert_eq!((answer.status(), answer.body().len()), (StatusCode::NOT_MODIFIED, 0), "{etag}");
        assert!(answer.headers().contains_key(CONTENT_SECURITY_POLICY));
    }
    let other = dashboard().asset("app-1.js", &headers(&[("if-none-match", "\"bb22\"")])).unwrap();
    assert_eq!((other.status(), &other.body()[..]), (StatusCode::OK, SCRIPT), "control");
}

#[test]
fn only_files_of_the_table_are_sent() {
    assert!(dashboard().asset("app-1.js", &HeaderMap::new()).is_some(), "control");
    for name in [
        "",
        "../index.html",
        "index.html",
        "assets/app-1.js",
        "/app-1.js",
        "app-1.js/",
        "APP-1.JS",
        "../../etc/passwd",
    ] {
        assert!(dashboard().asset(name, &HeaderMap::new()).is_none(), "{name}");
    }
}

#[test]
fn every_answer_is_hardened() {
    let dashboard = dashboard();
    let asset = dashboard.asset("app-1.js", &HeaderMap::new()).unwrap();
    for answer in [dashboard.page(&HeaderMap::new()), asset] {
        assert_eq!(answer.headers()[X_FRAME_OPTIONS], "DENY");
        let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        for name in
            ["x-content-type-options", "referrer-policy", "cross-origin-opener-policy", "permissions-policy"]
        {
            assert!(answer.headers().contains_key(name), "{name}");
        }
    }
}
