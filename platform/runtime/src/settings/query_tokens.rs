//! Splits a template of PromQL into tokens.

use platform_core::invalid::InvalidValue;

/// Token of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    Word(&'t str),
    Placeholder(&'t str),
    Text(&'t str),
    Number(&'t str),
    Sign(&'t str),
}

/// Splits a template.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, InvalidValue> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = |text: &str| text.find(|c| !is_name(c)).unwrap_or(text.len());
        let length = match first {
            '#' => return Err("it has a comment".into()),
            '$' => 1 + name(&rest[1..]),
            '"' | '\'' | '`' => text_length(rest, first)?,
            c if c.is_ascii_digit() => number_length(rest),
            c if is_name(c) => rest.find(|c| !is_name(c) && c != ':').unwrap_or(rest.len()),
            c if c.is_ascii() => c.len_utf8(),
            c => return Err(format!("`{}` is not a sign of PromQL", c.escape_default()).into()),
        };
        let (token, left) = rest.split_at(length);
        tokens.push(match first {
            '$' if length > 1 => Token::Placeholder(&token[1..]),
            '$' => return Err("`$` stands alone".into()),
            '"' | '\'' | '`' => Token::Text(token),
            c if c.is_ascii_digit() => Token::Number(token),
            c if is_name(c) => Token::Word(token),
            _ => Token::Sign(token),
        });
        rest = left.trim_start();
    }
    Ok(join_signs(text, tokens))
}

/// Returns the length of the number or duration at the beginning of `text`, with a fraction and an exponent.
fn number_length(text: &str) -> usize {
    let mut before = ' ';
    let mut is_part = |c: char| {
        let is_exponent = matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
        before = c;
        c.is_ascii_alphanumeric() || c == '.' || is_exponent
    };
    text.chars().take_while(|c| is_part(*c)).count()
}

/// Returns the length of the string at the beginning of `text`.
pub(super) fn text_length(text: &str, quote: char) -> Result<usize, InvalidValue> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' && quote != '`' {
            is_escaped = true;
        } else if c == quote {
            return Ok(at + c.len_utf8());
        }
    }
    Err("a string has no end".into())
}

/// Joins signs that stand together, such as `>=` and `=~`, because a space between them would be an error.
fn join_signs<'t>(text: &'t str, tokens: Vec<Token<'t>>) -> Vec<Token<'t>> {
    const PAIRS: [&str; 6] = ["==", "!=", ">=", "<=", "=~", "!~"];
    let mut joined: Vec<Token<'t>> = Vec::new();
    let mut offset = 0;
    for token in tokens {
        let (Token::Word(part)
        | Token::Placeholder(part)
        | Token::Text(part)
        | Token::Number(part)
        | Token::Sign(part)) = token;
        let at = offset + text[offset..].find(part).unwrap_or_default();
        offset = at + part.len();
        if let (Token::Sign(_), Some(Token::Sign(before))) = (token, joined.last())
            && before.len() == 1
            && at > 0
            && PAIRS.contains(&&text[at - 1..offset])
        {
            joined.pop();
            joined.push(Token::Sign(&text[at - 1..offset]));
            continue;
        }
        joined.push(token);
    }
    joined
}
