//! items reads what all rules ask of an item: its name, its attributes, and whether only tests have it.

use proc_macro2::Ident;
use syn::{Attribute, Item};

/// Returns a name without the mark of a raw one.
pub(crate) fn plain(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map_or_else(|| name.clone(), str::to_owned)
}

/// Returns whether an attribute leaves its item to tests.
pub(crate) fn is_for_tests(attribute: &Attribute) -> bool {
    if attribute.path().segments.last().is_some_and(|last| last.ident == "test") {
        return true;
    }
    let Ok(list) = attribute.meta.require_list() else { return false };
    let condition = list.tokens.to_string().replace(' ', "");
    let all = condition.strip_prefix("all(").and_then(|all| all.strip_suffix(')'));
    list.path.is_ident("cfg")
        && (condition == "test" || all.is_some_and(|all| all.split(',').any(|each| each == "test")))
}

/// Returns the attributes of an item.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
