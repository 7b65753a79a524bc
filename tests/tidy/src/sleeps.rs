//! sleeps finds pauses of tests that name no purpose. A test waits for a condition with a bound, so that it neither
//! fails on a busy machine nor waits on an idle one.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::{
    Attribute, Expr, ExprCall, ImplItemFn, Item, Macro,
    visit::{self, Visit},
};

use crate::{
    Error, Offender,
    file::{Area, SourceFile},
    items::{attributes, is_for_tests, plain},
};

/// Functions that wait for time alone. A method of that name is a clock's, which a test moves itself.
const SLEEPS: [&str; 3] = ["sleep", "sleep_until", "park_timeout"];

/// Files with functions that name a pause by its purpose, or poll with a bound.
const NAMED: [&str; 2] = ["tests/harness/eventually.rs", "tests/harness/pace.rs"];

/// Returns the calls of a sleep in a file's tests.
///
/// # Errors
/// If the file does not parse.
pub fn find(file: &SourceFile) -> Result<Vec<Offender>, Error> {
    if NAMED.contains(&file.path.as_str()) {
        return Ok(Vec::new());
    }
    let is_test = file.path.starts_with("tests/")
        || file.area() == Area::Inside
        || file.path.split('/').any(|part| part == "tests");
    let mut finder = Finder { path: &file.path, is_test, found: Vec::new() };
    finder.visit_file(file.syntax()?);
    Ok(finder.found)
}

/// Returns the lines on which a script of the browser's tests waits for time alone, by Playwright's name for it.
#[must_use]
pub fn find_in_script(file: &SourceFile) -> Vec<Offender> {
    let waits = |(index, line): (usize, &str)| {
        let (path, what) = (file.path.clone(), "waitForTimeout".to_owned());
        line.contains(&what).then_some(Offender { path, line: index + 1, what })
    };
    file.text.lines().enumerate().filter_map(waits).collect()
}

struct Finder<'f> {
    path: &'f str,
    is_test: bool,
    found: Vec<Offender>,
}

impl Finder<'_> {
    /// Visits an item that has `attributes`.
    fn inside(&mut self, attributes: &[Attribute], visit: impl FnOnce(&mut Self)) {
        let outside = self.is_test;
        self.is_test |= attributes.iter().any(is_for_tests);
        visit(self);
        self.is_test = outside;
    }

    fn called(&mut self, function: &Ident) {
        let what = plain(function);
        if self.is_test && SLEEPS.contains(&what.as_str()) {
            let line = function.span().start().line;
            self.found.push(Offender { path: self.path.to_owned(), line, what });
        }
    }

    /// Notes calls inside a macro's arguments, which are not parsed.
    fn scan(&mut self, tokens: TokenStream) {
        let mut last = None;
        let mut is_method = false;
        for token in tokens {
            if let TokenTree::Group(group) = &token {
                if let Some(TokenTree::Ident(function)) = &last
                    && group.delimiter() == Delimiter::Parenthesis
                    && !is_method
                {
                    self.called(function);
                }
                self.scan(group.stream());
            }
            is_method = matches!(&last, Some(TokenTree::Punct(dot)) if dot.as_char() == '.');
            last = Some(token);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        self.inside(attributes(item), |finder| visit::visit_item(finder, item));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.inside(&function.attrs, |finder| visit::visit_impl_item_fn(finder, function));
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(function) = call.func.as_ref()
            && let Some(last) = function.path.segments.last()
        {
            self.called(&last.ident);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.scan(call.tokens.clone());
    }
}
