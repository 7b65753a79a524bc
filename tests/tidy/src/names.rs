//! names counts what types and tests are called: how many meanings a type name has, how long a test name is.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::{
    Item,
    visit::{self, Visit},
};

use crate::{
    Error, Offender,
    file::SourceFile,
    items::{attributes, is_for_tests, plain},
    language,
};

/// Most characters of a test's name.
pub const TEST_NAME: usize = 45;

/// Type names that always have the meaning of their module.
pub const SHARED: [&str; 5] = ["Error", "Arguments", "State", "Kind", "Command"];

/// Most meanings of any other type name.
pub const MEANINGS: usize = 2;

/// Characters of a text that an offender shows.
const SHOWN: usize = 100;

/// The definitions of each type name.
pub type Meanings = BTreeMap<String, Vec<Offender>>;

/// Returns the types that are defined in `files`, tests left out.
///
/// # Errors
/// If a file does not parse.
pub fn types<'f>(files: impl Iterator<Item = &'f SourceFile>) -> Result<Meanings, Error> {
    let mut meanings = Meanings::new();
    for file in files {
        let mut types = Types::default();
        types.visit_file(file.syntax()?);
        for ident in types.found {
            let (line, what) = (ident.span().start().line, plain(&ident));
            let meaning = Offender { path: file.path.clone(), line, what: what.clone() };
            meanings.entry(what).or_default().push(meaning);
        }
    }
    Ok(meanings)
}

/// Returns the type names with too many meanings, each at its first definition.
#[must_use]
pub fn overused(meanings: &Meanings) -> Vec<Offender> {
    let many =
        meanings.iter().filter(|(name, places)| places.len() > MEANINGS && !SHARED.contains(&name.as_str()));
    let named = many.filter_map(|(name, places)| {
        let others: Vec<String> =
            places.iter().skip(1).map(|place| format!("{}:{}", place.path, place.line)).collect();
        let what = format!("{name} has {} meanings, also at {}", places.len(), others.join(", "));
        places.first().map(|first| Offender { what, ..first.clone() })
    });
    named.collect()
}

#[derive(Default)]
struct Types {
    found: Vec<Ident>,
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).iter().any(is_for_tests) {
            return;
        }
        match item {
            Item::Enum(item) => self.found.push(item.ident.clone()),
            Item::Struct(item) => self.found.push(item.ident.clone()),
            Item::Trait(item) => self.found.push(item.ident.clone()),
            Item::Type(item) => self.found.push(item.ident.clone()),
            Item::Union(item) => self.found.push(item.ident.clone()),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

/// Returns every test function of a file: those with an attribute, inside macros such as `proptest!` too, and those
/// that a macro makes tests of, given a list of their names.
///
/// # Errors
/// If the file does not parse.
pub fn tests(file: &SourceFile) -> Result<Vec<Offender>, Error> {
    let mut functions = Functions::default();
    functions.find(file.tokens()?);
    let names: BTreeSet<String> = functions.all.iter().map(ToString::to_string).collect();
    functions.listed.retain(|ident| names.contains(&ident.to_string()));
    let named = functions.tests.iter().chain(&functions.listed).map(|ident| Offender {
        path: file.path.clone(),
        line: ident.span().start().line,
        what: plain(ident),
    });
    Ok(named.collect())
}

/// Returns the test functions of a file that have too long a name.
///
/// # Errors
/// If the file does not parse.
pub fn long_tests(file: &SourceFile) -> Result<Vec<Offender>, Error> {
    let long = tests(file)?.into_iter().filter(|test| test.what.chars().count() > TEST_NAME);
    Ok(long
        .map(|test| Offender { what: format!("{} {}", test.what.chars().count(), test.what), ..test })
        .collect())
}

/// The names of functions in a file.
#[derive(Default)]
struct Functions {
    all: Vec<Ident>,
    /// Those behind `#[test]`.
    tests: Vec<Ident>,
    /// Names in the lists that are given to a macro `on_…`, such as `on_both!(a, b);`.
    listed: Vec<Ident>,
}

impl Functions {
    fn find(&mut self, tokens: TokenStream) {
        let mut is_test = false;
        let (mut before, mut macro_name) = (String::new(), String::new());
        for token in tokens {
            let this = token.to_string();
            match token {
                TokenTree::Ident(ident) if before == "fn" => {
                    if is_test {
                        self.tests.push(ident.clone());
                    }
                    self.all.push(ident);
                    is_test = false;
                }
                TokenTree::Group(group) => {
                    is_test |= group.delimiter() == Delimiter::Bracket && is_test_attribute(group.stream());
                    if before == "!" && macro_name.starts_with("on_") {
                        self.listed.extend(group.stream().into_iter().filter_map(name));
                    }
                    self.find(group.stream());
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => is_test = false,
                TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            macro_name = std::mem::replace(&mut before, this);
        }
    }
}

fn name(token: TokenTree) -> Option<Ident> {
    match token {
        TokenTree::Ident(ident) => Some(ident),
        _ => None,
    }
}

/// Returns whether an attribute is `test`, or ends in it like `tokio::test`.
fn is_test_attribute(tokens: TokenStream) -> bool {
    let path = tokens.into_iter().take_while(|token| !matches!(token, TokenTree::Group(_)));
    let last = path.last();
    matches!(last, Some(TokenTree::Ident(ident)) if ident == "test")
}

/// Returns each retired word in the names and texts of a file's code.
///
/// # Errors
/// If the file does not parse.
pub fn retired(file: &SourceFile) -> Result<Vec<Offender>, Error> {
    let mut found = BTreeSet::new();
    find_retired(file.tokens()?, &mut found);
    Ok(found.into_iter().map(|(line, what)| Offender { path: file.path.clone(), line, what }).collect())
}

fn find_retired(tokens: TokenStream, found: &mut BTreeSet<(usize, String)>) {
    let mut attribute = false;
    for token in tokens {
        let line = token.span().start().line;
        match token {
            TokenTree::Group(group) if attribute && is_documentation(&group.stream()) => {}
            TokenTree::Group(group) => find_retired(group.stream(), found),
            TokenTree::Ident(ident) => {
                let name = plain(&ident);
                if language::retired(&spaced(&name)).next().is_some() {
                    found.insert((line, name));
                }
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if language::retired(&text).next().is_some() {
                    found.insert((line, text.chars().filter(|c| *c != '\n').take(SHOWN).collect()));
                }
            }
            TokenTree::Punct(punct) => {
                attribute = ['#', '!'].contains(&punct.as_char());
                continue;
            }
        }
        attribute = false;
    }
}

fn is_documentation(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().next().is_some_and(|first| first.to_string() == "doc")
}

/// Puts a space before each capital that begins a word, so that the words of a type name are seen.
fn spaced(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() && words.ends_with(char::is_lowercase) {
            words.push(' ');
        }
        words.push(c);
    }
    words
}
