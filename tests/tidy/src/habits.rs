//! habits finds forms that a reviewer asks to change: tuples in place of names, vague constants, errors without causes.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use syn::{
    Expr, FnArg, GenericArgument, ImplItemConst, ImplItemFn, Item, ItemConst, Local, Pat, PathArguments,
    PathSegment, Signature, Type,
    visit::{self, Visit},
};

use crate::{
    Error, Offender,
    file::SourceFile,
    items::{attributes, is_for_tests, plain},
};

/// Words that do not tell an interval from a timeout or a delay.
pub const VAGUE: [&str; 8] = ["PAUSE", "PATIENCE", "LOOK", "GLANCE", "SLACK", "TIDY", "GATHER", "QUIET"];

/// Endings and beginnings that say what a duration is for.
const DURATION_ENDINGS: [&str; 5] = ["_INTERVAL", "_TIMEOUT", "_DELAY", "_GRACE", "_RETENTION"];
const DURATION_BEGINNINGS: [&str; 2] = ["MAX_", "MIN_"];

/// Macros that write to the log.
const LOG: [&str; 6] = ["trace", "debug", "info", "warn", "error", "event"];

/// Names of errors that are logged without their causes by `%`.
const ERRORS: [&str; 3] = ["error", "e", "err"];

/// The forms found in one file, tests left out.
#[derive(Debug, Default)]
pub struct Habits {
    /// `let (a, b) = (x, y);`.
    pub paired_lets: Vec<Offender>,
    /// Functions that take a tuple.
    pub tuple_parameters: Vec<Offender>,
    /// Constants with a vague name.
    pub vague_constants: Vec<Offender>,
    /// Constants of type `Duration` with a name that does not say what it is for.
    pub unnamed_durations: Vec<Offender>,
}

/// Returns the forms found in a file.
///
/// # Errors
/// If the file does not parse.
pub fn find(file: &SourceFile) -> Result<Habits, Error> {
    let mut finder = Finder { path: &file.path, habits: Habits::default() };
    finder.visit_file(file.syntax()?);
    Ok(finder.habits)
}

struct Finder<'f> {
    path: &'f str,
    habits: Habits,
}

impl Finder<'_> {
    fn offender(&self, span: Span, what: &str) -> Offender {
        Offender { path: self.path.to_owned(), line: span.start().line, what: what.to_owned() }
    }

    fn constant(&mut self, ident: &Ident, kind: &Type) {
        let name = plain(ident);
        let offender = self.offender(ident.span(), &name);
        if name.split('_').any(|word| VAGUE.contains(&word)) {
            self.habits.vague_constants.push(offender.clone());
        }
        let says = DURATION_ENDINGS.iter().any(|ending| name.ends_with(ending) || name == ending[1..])
            || DURATION_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
        if is_duration(kind) && !says {
            self.habits.unnamed_durations.push(offender);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !function.attrs.iter().any(is_for_tests) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_const(&mut self, constant: &'ast ItemConst) {
        self.constant(&constant.ident, &constant.ty);
        visit::visit_item_const(self, constant);
    }

    fn visit_impl_item_const(&mut self, constant: &'ast ImplItemConst) {
        self.constant(&constant.ident, &constant.ty);
        visit::visit_impl_item_const(self, constant);
    }

    fn visit_local(&mut self, local: &'ast Local) {
        let pattern = match &local.pat {
            Pat::Type(typed) => &typed.pat,
            pattern => pattern,
        };
        let value = local.init.as_ref().map(|init| init.expr.as_ref());
        if let (Pat::Tuple(_), Some(Expr::Tuple(_))) = (pattern, value) {
            let offender = self.offender(local.let_token.span, "let (…) = (…)");
            self.habits.paired_lets.push(offender);
        }
        visit::visit_local(self, local);
    }

    fn visit_signature(&mut self, signature: &'ast Signature) {
        if signature.inputs.iter().any(is_tuple) {
            let offender = self.offender(signature.ident.span(), &plain(&signature.ident));
            self.habits.tuple_parameters.push(offender);
        }
        visit::visit_signature(self, signature);
    }
}

fn is_duration(kind: &Type) -> bool {
    let Type::Path(path) = kind else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Duration")
}

/// Returns whether a parameter is a tuple, or a reference to one; `()` does not count.
fn is_tuple(parameter: &FnArg) -> bool {
    let FnArg::Typed(parameter) = parameter else { return false };
    let mut kind = parameter.ty.as_ref();
    while let Type::Reference(reference) = kind {
        kind = &reference.elem;
    }
    matches!(kind, Type::Tuple(tuple) if !tuple.elems.is_empty())
}

/// Returns the log calls of a file that show an error without its causes.
///
/// # Errors
/// If the file does not parse.
pub fn bare_errors(file: &SourceFile) -> Result<Vec<Offender>, Error> {
    let mut found = Vec::new();
    find_logs(file.tokens()?, &mut found);
    let bare = found.iter().filter(|(_, call)| shows_bare_error(call.stream()));
    let offender = |(name, _): &(Ident, Group)| Offender {
        path: file.path.clone(),
        line: name.span().start().line,
        what: format!("{name}!(… %error …)"),
    };
    Ok(bare.map(offender).collect())
}

/// Returns the places where a file has a text for an error, `Result<_, String>`; those of its tests count.
///
/// # Errors
/// If the file does not parse.
pub fn text_errors(file: &SourceFile) -> Result<Vec<Offender>, Error> {
    let mut finder = TextErrors { path: &file.path, found: Vec::new() };
    finder.visit_file(file.syntax()?);
    Ok(finder.found)
}

struct TextErrors<'f> {
    path: &'f str,
    found: Vec<Offender>,
}

impl<'ast> Visit<'ast> for TextErrors<'_> {
    fn visit_path_segment(&mut self, segment: &'ast PathSegment) {
        if let PathArguments::AngleBracketed(arguments) = &segment.arguments
            && segment.ident == "Result"
            && let Some(GenericArgument::Type(Type::Path(error))) = arguments.args.iter().nth(1)
            && error.path.is_ident("String")
        {
            let line = segment.ident.span().start().line;
            let what = "Result<_, String>".to_owned();
            self.found.push(Offender { path: self.path.to_owned(), line, what });
        }
        visit::visit_path_segment(self, segment);
    }
}

/// Notes each call of a log macro, wherever it stands.
fn find_logs(tokens: TokenStream, found: &mut Vec<(Ident, Group)>) {
    let mut name: Option<Ident> = None;
    let mut is_call = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let is_log = is_call && group.delimiter() != Delimiter::None;
                if let Some(name) = name.take().filter(|name| is_log && LOG.iter().any(|log| name == log)) {
                    found.push((name, group.clone()));
                }
                find_logs(group.stream(), found);
                is_call = false;
            }
            TokenTree::Ident(ident) => {
                name = Some(ident);
                is_call = false;
            }
            TokenTree::Punct(punct) => is_call = punct.as_char() == '!',
            TokenTree::Literal(_) => is_call = false,
        }
    }
}

/// Returns whether a log call has a field `%error`, or one called `error` that is shown by `%`.
fn shows_bare_error(call: TokenStream) -> bool {
    let mut before: Vec<String> = Vec::new();
    for token in call {
        if let TokenTree::Ident(ident) = &token {
            let shown = before.last().is_some_and(|last| last == "%");
            // Behind a value `%` divides; a field begins the call or follows a comma or `=`.
            let field = before.len() < 2 || [",", "=", ";"].contains(&before[before.len() - 2].as_str());
            if shown && field && ERRORS.iter().any(|error| ident == error) {
                return true;
            }
        }
        let named =
            before.len() >= 2 && before[before.len() - 1] == "=" && before[before.len() - 2] == "error";
        if named && matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '%') {
            return true;
        }
        before.push(if matches!(token, TokenTree::Group(_)) { "()".to_owned() } else { token.to_string() });
    }
    false
}
