//! Keeps the state that all walks through a body share: the cursor, the policy, and the names of the open objects'
//! members.

use std::borrow::Cow;

use platform_core::{capability::Capability, tariff::Service};

use super::{
    findings::Findings,
    json::{Cursor, JsonValue, Name},
};
use crate::{
    policy::{Label, Policy, Reason, Rejection},
    usage::estimate::Media,
};

/// More members than any nested object of the APIs has. It bounds the search for names that are there twice.
const MAX_MEMBERS: usize = 40;

/// A walk through one body.
#[derive(Debug)]
pub(super) struct Walk<'a, 'p> {
    pub(super) cursor: Cursor<'a>,
    pub(super) policy: &'p Policy,
    /// Images, files, recordings that were found.
    pub(super) media: Media,
    /// Service that is asked for.
    pub(super) service: Service,
    /// Faults that were found.
    pub(super) findings: Findings,
    /// Set if tools are offered outside of the top-level list.
    pub(super) offers_tools: bool,
    /// Top-level field that is read.
    pub(super) field: Option<Cow<'a, [u8]>>,
    /// Names of all open objects, the innermost's last.
    names: Vec<Cow<'a, [u8]>>,
}

/// A member of an object, its name free of escapes.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) name: Cow<'a, [u8]>,
    pub(super) at: usize,
}

impl<'a, 'p> Walk<'a, 'p> {
    pub(super) fn new(body: &'a [u8], policy: &'p Policy) -> Self {
        Self {
            cursor: Cursor::new(body),
            policy,
            media: Media::default(),
            service: Service::default(),
            findings: Findings::default(),
            offers_tools: false,
            field: None,
            names: Vec::with_capacity(32),
        }
    }

    /// Calls `visit` for each member of the object that was just opened; it must read the value.
    pub(super) fn members(
        &mut self,
        mut visit: impl FnMut(&mut Self, Member<'a>) -> Result<(), Rejection>,
    ) -> Result<(), Rejection> {
        let outer = self.names.len();
        let mut next = self.cursor.first_member()?;
        while let Some(name) = next {
            let member = self.enter(name, outer)?;
            visit(self, member)?;
            next = self.cursor.next_member()?;
        }
        self.names.truncate(outer);
        Ok(())
    }

    /// Calls `visit` for each element of the array that was just opened; it must read the element.
    pub(super) fn elements(
        &mut self,
        mut visit: impl FnMut(&mut Self) -> Result<(), Rejection>,
    ) -> Result<(), Rejection> {
        let mut next = self.cursor.first_element()?;
        while next.is_some() {
            visit(self)?;
            next = self.cursor.next_element()?;
        }
        Ok(())
    }

    fn enter(&mut self, name: Name<'a>, outer: usize) -> Result<Member<'a>, Rejection> {
        let decoded = name.text.decoded();
        let at = name.at;
        if self.names[outer..].contains(&decoded) {
            return Err(Rejection::new(Reason::Duplicate(Label::of(&decoded)), at));
        }
        // The top level is bounded by its list.
        if outer > 0 && self.names.len() - outer == MAX_MEMBERS {
            return Err(Rejection::new(Reason::Crowded, at));
        }
        self.names.push(decoded.clone());
        Ok(Member { name: decoded, at })
    }

    /// Reads a value of which only the grammar matters.
    pub(super) fn skip(&mut self) -> Result<(), Rejection> {
        Ok(self.cursor.skip()?)
    }

    /// Refuses the body for a fault behind which the check goes on.
    pub(super) fn refuse(&mut self, rejection: Rejection) -> Result<(), Rejection> {
        let rejection = self.in_field(rejection);
        self.findings.note(rejection)
    }

    /// Returns `rejection` with the top-level field that is read.
    pub(super) fn in_field(&self, rejection: Rejection) -> Rejection {
        Rejection { field: self.field.as_deref().map(Label::of), ..rejection }
    }

    /// Refuses `what` unless the run was granted `capability`.
    pub(super) fn need(&mut self, capability: Capability, what: &[u8], at: usize) -> Result<(), Rejection> {
        if self.policy.granted.has(capability) {
            Ok(())
        } else {
            self.refuse(Rejection::not_granted(what, capability, at))
        }
    }

    /// Reads any value; returns it if it is text.
    pub(super) fn text(&mut self) -> Result<Option<Cow<'a, [u8]>>, Rejection> {
        if self.cursor.next_token() != Some(b'"') {
            return self.skip().map(|()| None);
        }
        match self.cursor.value()? {
            JsonValue::Text(text) => Ok(Some(text.decoded())),
            _ => Ok(None),
        }
    }

    /// Reads a `type`: text, or null for none.
    pub(super) fn kind(&mut self, at: usize) -> Result<Option<Cow<'a, [u8]>>, Rejection> {
        match self.cursor.value()? {
            JsonValue::Text(text) => Ok(Some(text.decoded())),
            JsonValue::Null => Ok(None),
            _ => Err(Rejection::wrong_type(b"type", "a string", at)),
        }
    }

    /// Reads a word that needs a grant unless it is one of `words`, or null.
    pub(super) fn among(
        &mut self,
        words: &[&[u8]],
        capability: Capability,
        member: &Member<'a>,
    ) -> Result<(), Rejection> {
        match self.cursor.value()? {
            JsonValue::Null => Ok(()),
            JsonValue::Text(text) if words.contains(&&*text.decoded()) => Ok(()),
            JsonValue::Text(_) => {
                self.need(capability, &member.name, member.at)?;
                self.service = Service::Premium;
                Ok(())
            }
            _ => Err(Rejection::wrong_type(&member.name, "a string", member.at)),
        }
    }

    /// Reads a value that needs a grant unless it is null or false.
    pub(super) fn gated(&mut self, capability: Capability, member: &Member<'a>) -> Result<(), Rejection> {
        // Nothing else begins like null and false.
        if !matches!(self.cursor.next_token(), Some(b'n' | b'f')) {
            self.need(capability, &member.name, member.at)?;
        }
        self.skip()
    }
}
