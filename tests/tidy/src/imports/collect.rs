//! collect walks a syntax tree and notes each path as it is written, with the module it stands in.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Ident, Spacing, TokenStream, TokenTree};
use syn::{
    Attribute, ImplItemFn, Item, ItemExternCrate, ItemMod, ItemUse, Macro, MetaList, Path, UseTree,
    Visibility,
    visit::{self, Visit},
};

use crate::items::{attributes, is_for_tests, plain};

/// A path as it is written.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) line: usize,
    /// The module it stands in.
    pub(super) module: Vec<String>,
    /// Begins with an empty segment for `::a::b`, which never means a module of this crate.
    pub(super) segments: Vec<String>,
    pub(super) is_glob: bool,
    pub(super) in_tests: bool,
}

/// The paths that a file names, and the meaning of its names.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) named: Vec<Named>,
    /// Modules that are declared in this file.
    pub(super) declared: BTreeSet<Vec<String>>,
    /// The path that a `use` gave a name in a module.
    pub(super) aliases: BTreeMap<(Vec<String>, String), Vec<String>>,
    module: Vec<String>,
    in_tests: bool,
}

/// Notes all paths of the file of `module`.
pub(super) fn collect(module: &[String], syntax: &syn::File) -> Collected {
    let mut collected = Collected { module: module.to_vec(), ..Collected::default() };
    collected.visit_file(syntax);
    collected
}

impl Collected {
    fn note(&mut self, line: usize, segments: Vec<String>) {
        let (module, in_tests) = (self.module.clone(), self.in_tests);
        self.named.push(Named { line, module, segments, is_glob: false, in_tests });
    }

    /// Notes each leaf of a `use` tree below `prefix`.
    fn note_tree(&mut self, tree: &UseTree, prefix: &[String]) {
        let below = |ident: &Ident| [prefix, &[plain(ident)]].concat();
        match tree {
            UseTree::Path(path) => self.note_tree(&path.tree, &below(&path.ident)),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.note_tree(tree, prefix);
                }
            }
            UseTree::Name(name) if name.ident == "self" && !prefix.is_empty() => {
                let own = prefix.last().cloned().unwrap_or_default();
                self.note_use(&name.ident, own, prefix.to_vec());
            }
            UseTree::Name(name) => {
                self.note_use(&name.ident, plain(&name.ident), below(&name.ident));
            }
            UseTree::Rename(rename) if rename.ident == "self" => {
                self.note_use(&rename.ident, plain(&rename.rename), prefix.to_vec());
            }
            UseTree::Rename(rename) => {
                self.note_use(&rename.ident, plain(&rename.rename), below(&rename.ident));
            }
            UseTree::Glob(glob) => {
                self.note(glob.star_token.spans[0].start().line, prefix.to_vec());
                if let Some(last) = self.named.last_mut() {
                    last.is_glob = true;
                }
            }
        }
    }

    fn note_use(&mut self, at: &Ident, name: String, segments: Vec<String>) {
        self.aliases.insert((self.module.clone(), name), segments.clone());
        self.note(at.span().start().line, segments);
    }

    /// Notes the paths inside a macro call, which has an unknown syntax.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<Ident> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(colon) if colon.as_char() == ':' => {
                    colons += usize::from(colons > 0 || colon.spacing() == Spacing::Joint);
                    continue;
                }
                TokenTree::Ident(ident) if colons == 2 && !path.is_empty() => path.push(ident),
                TokenTree::Ident(ident) => {
                    self.note_idents(&path);
                    path = vec![ident];
                }
                TokenTree::Group(group) => {
                    self.note_idents(&path);
                    path.clear();
                    self.note_tokens(group.stream());
                }
                TokenTree::Literal(literal) => {
                    self.note_text(&literal.to_string(), literal.span().start().line)
                }
                TokenTree::Punct(_) => {
                    self.note_idents(&path);
                    path.clear();
                }
            }
            colons = 0;
        }
        self.note_idents(&path);
    }

    fn note_idents(&mut self, path: &[Ident]) {
        if let [first, _, ..] = path {
            self.note(first.span().start().line, path.iter().map(plain).collect());
        }
    }

    /// Notes a path that an attribute gives as text, such as serde's `default = "crate::a::b"`.
    fn note_text(&mut self, literal: &str, line: usize) {
        let text = literal.trim_matches('"');
        if ["crate::", "super::", "self::"].iter().any(|start| text.starts_with(start)) {
            self.note(line, text.split("::").map(str::to_owned).collect());
        }
    }

    /// Visits below an item, as a part of the tests if its attributes say so.
    fn within(&mut self, attributes: &[Attribute], visit: impl FnOnce(&mut Self)) {
        let before = self.in_tests;
        self.in_tests |= attributes.iter().any(is_for_tests);
        visit(self);
        self.in_tests = before;
    }
}

impl<'ast> Visit<'ast> for Collected {
    fn visit_item(&mut self, item: &'ast Item) {
        self.within(attributes(item), |collected| visit::visit_item(collected, item));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.within(&function.attrs, |collected| visit::visit_impl_item_fn(collected, function));
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        self.module.push(plain(&module.ident));
        self.declared.insert(self.module.clone());
        visit::visit_item_mod(self, module);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let outside = [String::new()];
        self.note_tree(&item.tree, if item.leading_colon.is_some() { &outside } else { &[] });
    }

    fn visit_item_extern_crate(&mut self, item: &'ast ItemExternCrate) {
        let name = item.rename.as_ref().map_or(&item.ident, |(_, rename)| rename);
        self.note_use(&item.ident, plain(name), vec![String::new(), plain(&item.ident)]);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if let (Some(first), true) = (path.segments.first(), path.segments.len() > 1) {
            let outside = path.leading_colon.as_ref().map(|_| String::new());
            let segments = path.segments.iter().map(|segment| plain(&segment.ident));
            self.note(first.ident.span().start().line, outside.into_iter().chain(segments).collect());
        }
        visit::visit_path(self, path);
    }

    /// Passes over `pub(in crate::a)`, which names no item.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.note_tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_meta_list(&mut self, list: &'ast MetaList) {
        self.note_tokens(list.tokens.clone());
        visit::visit_meta_list(self, list);
    }
}
