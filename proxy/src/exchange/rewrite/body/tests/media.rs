//! Checks media that an upstream or a provider would fetch for the agent. For the rows see `super::assert_rows`.

use super::*;

/// Returns how many bytes of `part` are images that no model reads as text.
fn image_bytes(part: &str) -> u64 {
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":[{part}]}}]}}"#);
    check(Route::ChatCompletions, body.as_bytes(), &policy()).unwrap().media.image_bytes
}

#[test]
fn only_unreadable_media_count_as_images() {
    let (png, webp) = ("iVBORw0KGgoAAAA", "UklGRgAAAABXRUJQVlA4");
    for (image, bytes) in
        [(png, 15), ("/9j/4AAQ", 8), ("R0lGODlh", 8), (webp, 20), ("UklGRgAAAABXQVZF", 0), ("AAAA", 0)]
    {
        let url = format!("data:image/x;base64,{image}");
        let by_url = format!(r#"{{"type":"image_url","image_url":{{"url":"{url}"}}}}"#);
        assert_eq!(image_bytes(&by_url), if bytes > 0 { url.len() as u64 } else { 0 }, "{by_url}");
        let source = |kind| format!(r#"{{"type":"image","source":{{"data":"{image}","type":"{kind}"}}}}"#);
        assert_eq!(image_bytes(&source("base64")), bytes, "{image}");
        // A plain text document of any length that begins like an image.
        assert_eq!(image_bytes(&source("text")), 0, "{image}");
    }
    for part in [
        format!(r#"{{"type":"text","text":"data:image/png;base64,{png}"}}"#),
        format!(r#"{{"type":"file","file":{{"file_data":"data:image/png;base64,{png}"}}}}"#),
        format!(r#"{{"type":"image_url","image_url":{{"url":"data:text/plain;base64,{png}"}}}}"#),
    ] {
        assert_eq!(image_bytes(&part), 0, "{part}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn media_that_would_be_fetched() {
    assert_part_rows(&[
        (
            r#"{"type":"image_url","image_url":{"url":"http://169.254.169.254/"}}"#,
            "media_urls",
            r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}"#,
        ),
        (
            r#"{"type":"image_url","image_url":"https://evil/x.png"}"#,
            "media_urls",
            r#"{"type":"image_url","image_url":"data:image/png;base64,AA=="}"#,
        ),
        (
            r#"{"type":"image_url","image\u005furl":"\u0068ttps:\/\/evil"}"#,
            "media_urls",
            r#"{"type":"image_url","image\u005furl":"\u0064ata:image\/png,AA"}"#,
        ),
        (r#"{"image_url":"//evil/x"}"#, "media_urls", r#"{"image_url":null}"#),
        (
            r#"{"type":"text","text":"x","image_url":"x"}"#,
            "media_urls",
            r#"{"type":"text","text":"image_url: x"}"#,
        ),
        (r#"{"image_url":["http://evil"]}"#, "media_urls", r#"{"image_url":["data:,a"]}"#),
        (
            r#"{"image_url":[[{"url":"http://evil"}]]}"#,
            "media_urls",
            r#"{"image_url":[[{"url":"data:,a"}]]}"#,
        ),
        (r#"{"image_url":{"href":"gs://b/o"}}"#, "media_urls", r#"{"image_url":{"detail":"low"}}"#),
        (
            r#"{"image_url":{"url":"DATA:,gs://b/o"}}"#,
            "media_urls",
            r#"{"image_url":{"url":"data:,gs:b/o"}}"#,
        ),
        (
            r#"{"image_url":{"url":"data:,https://evil"}}"#,
            "media_urls",
            r#"{"image_url":{"url":"data:,evil"}}"#,
        ),
        (r#"{"image_url":{"url":" data:,a"}}"#, "media_urls", r#"{"image_url":{"url":"data:, a"}}"#),
        (r#"{"type":"video_url","video_url":{"url":"http://e"}}"#, "media_urls", r#"{"type":"video_url"}"#),
        (
            r#"{"type":"text","nested":{"deep":[{"imageUrl":"x"}]}}"#,
            "media_urls",
            r#"{"nested":{"deep":["x"]}}"#,
        ),
        (
            r#"{"type":"input_audio","input_audio":{"data":"https://e/a.wav"}}"#,
            "media_urls",
            r#"{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}"#,
        ),
        (
            r#"{"type":"file","file":{"file_data":"https://e/a.pdf"}}"#,
            "media_urls",
            r#"{"type":"file","file":{"file_data":"data:application/pdf;base64,AA","filename":"a://b"}}"#,
        ),
        (
            r#"{"type":"file","file":{"file_id":"https://e/a.pdf"}}"#,
            "stored_files",
            r#"{"type":"file","file":{}}"#,
        ),
        (r#"{"type":"file","file":{"file_id":"file-1"}}"#, "stored_files", r#"{"file":{"file_id":null}}"#),
        (r#"{"type":"file","file":"file-1"}"#, "media_urls", r#"{"type":"file","file":"data:,a"}"#),
        (
            r#"{"type":"image","source":{"type":"url","url":"http://e"}}"#,
            "media_urls",
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}"#,
        ),
        (
            r#"{"type":"document","source":{"type":"base64","data":"http://e"}}"#,
            "media_urls",
            r#"{"type":"document","source":{"type":"text","data":"see http://e"}}"#,
        ),
        (
            r#"{"type":"document","source":{"data":"gs://b","url":"gs://b","type":"text"}}"#,
            "media_urls",
            r#"{"type":"document","source":{"data":"gs://b","type":"text"}}"#,
        ),
        (
            r#"{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"url":"http://e"}}]}}"#,
            "media_urls",
            r#"{"type":"document","source":{"type":"content","content":[{"type":"text","text":"http://e"}]}}"#,
        ),
        (
            r#"{"type":"image","source":"http://e","title":"t"}"#,
            "media_urls",
            r#"{"type":"search_result","source":"http://e","title":"t"}"#,
        ),
        (
            r#"{"type":"document","source":{"type":"file","file_id":"f"}}"#,
            "stored_files",
            r#"{"type":"document"}"#,
        ),
        (
            r#"{"type":"tool_result","content":[{"type":"image","source":{"type":"url","url":"http://e"}}]}"#,
            "media_urls",
            r#"{"type":"tool_result","content":[{"type":"text","text":"http://e"}]}"#,
        ),
        (
            r#"{"type":"tool_use","input":{},"image_url":"http://e"}"#,
            "media_urls",
            r#"{"type":"tool_use","input":{"image_url":"http://e","type":"mcp"}}"#,
        ),
        (r#"{"type":"container_upload","file_id":null}"#, "stored_files", r#"{"type":"text"}"#),
        (r#"{"type":"novelty"}"#, "unlisted_content", r#"{"type":null}"#),
        (r#"{"type":7}"#, "type type", r#"{"text":7}"#),
        (r#"{"type":"server_tool_use","name":"web_search"}"#, "server_tools", r#"{"type":"tool_use"}"#),
        (r#"{"type":"mcp_tool_use"}"#, "mcp", r#"{"type":"tool_use"}"#),
    ]);
}
