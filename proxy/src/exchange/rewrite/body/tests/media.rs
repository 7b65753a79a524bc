//! Media that somebody would fetch for the agent. For the rows see `super::hold`.

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn media_that_would_be_fetched() {
    hold_parts(&[
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
