//! size counts lines, functions, parameters and calls of product code, tests left out.

use syn::{
    Block, Expr, ExprCall, ExprMethodCall, FnArg, ImplItemFn, Item, ItemFn, Signature, TraitItemFn, Type,
    visit::{self, Visit},
};

use crate::{
    Error,
    file::SourceFile,
    items::{attributes, is_for_tests},
};

/// The shape of one function.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// Lines from its name to its closing brace.
    pub lines: usize,
    /// Parameters, `self` among them.
    pub parameters: usize,
    /// Parameters of type `bool`.
    pub flags: usize,
}

/// The counts of one or more files.
#[derive(Debug, Default)]
pub struct Counts {
    /// Functions with a body.
    pub functions: Vec<Function>,
    /// Calls of `drop(…)`.
    pub drops: usize,
    /// Calls of `.unwrap()`.
    pub unwraps: usize,
    /// Calls of `.expect(…)`.
    pub expects: usize,
}

/// Counts what `files` hold.
///
/// # Errors
/// If a file does not parse.
pub fn count<'f>(files: impl Iterator<Item = &'f SourceFile>) -> Result<Counts, Error> {
    let mut counts = Counts::default();
    for file in files {
        counts.visit_file(file.syntax()?);
    }
    Ok(counts)
}

/// Returns the value below which `percent` of the sorted values lie, zero for none.
#[must_use]
pub fn percentile(sorted: &[usize], percent: usize) -> usize {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent / 100).copied().unwrap_or_default()
}

impl Counts {
    fn function(&mut self, signature: &Signature, body: &Block) {
        let (first, last) = (signature.fn_token.span.start().line, body.brace_token.span.close().end().line);
        let parameters = signature.inputs.len();
        let flags = signature.inputs.iter().filter(|parameter| is_flag(parameter)).count();
        self.functions.push(Function { lines: last - first + 1, parameters, flags });
    }
}

impl<'ast> Visit<'ast> for Counts {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !function.attrs.iter().any(is_for_tests) {
            self.function(&function.sig, &function.block);
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.function(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(path) = call.func.as_ref() {
            self.drops += usize::from(path.path.segments.last().is_some_and(|last| last.ident == "drop"));
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.unwraps += usize::from(call.method == "unwrap");
        self.expects += usize::from(call.method == "expect");
        visit::visit_expr_method_call(self, call);
    }
}

fn is_flag(parameter: &FnArg) -> bool {
    matches!(parameter, FnArg::Typed(typed) if is_named(&typed.ty, "bool"))
}

fn is_named(kind: &Type, name: &str) -> bool {
    matches!(kind, Type::Path(path) if path.path.is_ident(name))
}
