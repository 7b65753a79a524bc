//! search_words writes a search of issues in one repository from words that an agent chose. Pure.
//!
//! GitHub reads words with a colon as qualifiers, and `OR`, `NOT` and parentheses as operators. With them a search could
//! leave its repository. Here each word stands in quotation marks, where it is only text.

use crate::repository::RepositoryName;

/// Most words of a search.
const MAX_WORDS: usize = 10;

/// Returns the query for the issues of `repository` that have all words of `text`.
pub(crate) fn search_query(repository: &RepositoryName, text: &str) -> String {
    let mut query = format!("repo:{}/{}", repository.owner(), repository.name());
    let plain: String =
        text.chars().map(|c| if c.is_control() || "\"\\".contains(c) { ' ' } else { c }).collect();
    for word in plain.split_whitespace().take(MAX_WORDS) {
        query.push_str(" \"");
        query.push_str(word);
        query.push('"');
    }
    query
}

#[cfg(test)]
mod tests {
    use runner_git::RepoUrl;

    use super::*;

    #[test]
    fn no_word_of_a_search_leaves_its_repository() {
        let url = RepoUrl::parse("https://github.com/octo/hello").unwrap();
        let repository = RepositoryName::of(&url).unwrap();
        for (text, query) in [
            ("parser crash", r#"repo:octo/hello "parser" "crash""#),
            ("repo:other/secret", r#"repo:octo/hello "repo:other/secret""#),
            ("a OR b) (c", r#"repo:octo/hello "a" "OR" "b)" "(c""#),
            (r#"" repo:other/secret ""#, r#"repo:octo/hello "repo:other/secret""#),
            ("x\\\" org:other", r#"repo:octo/hello "x" "org:other""#),
            ("a\nis:private", r#"repo:octo/hello "a" "is:private""#),
            ("", "repo:octo/hello"),
        ] {
            assert_eq!(search_query(&repository, text), query, "{text}");
        }
    }
}
