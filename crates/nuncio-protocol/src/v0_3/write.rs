//! Writing the types of this crate as 0.3 spells them, without a tree in between.

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

use super::Form;

/// A value of 1.0 that is written in a form of 0.3.
pub(super) struct Spelt<'a, T: ?Sized>(pub(super) &'a T, pub(super) Form);

impl<T> Serialize for Spelt<'_, [T]>
where
    for<'x> Spelt<'x, T>: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|item| Spelt(item, self.1)))
    }
}

/// An object that is being written, member by member.
pub(super) struct Out<S: Serializer>(S::SerializeMap);

impl<S: Serializer> Out<S> {
    pub(super) fn new(serializer: S) -> Result<Self, S::Error> {
        serializer.serialize_map(None).map(Self)
    }

    pub(super) fn put<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), S::Error> {
        self.0.serialize_entry(name, value)
    }

    /// Writes a member that is set.
    pub(super) fn some<T: Serialize>(
        &mut self,
        name: &'static str,
        value: Option<T>,
    ) -> Result<(), S::Error> {
        match value {
            Some(value) => self.put(name, &value),
            None => Ok(()),
        }
    }

    /// Writes a text that is set and not empty.
    pub(super) fn text(&mut self, name: &'static str, value: Option<&str>) -> Result<(), S::Error> {
        self.some(name, value.filter(|text| !text.is_empty()))
    }

    /// Writes a list that is not empty.
    pub(super) fn list<T: Serialize>(
        &mut self,
        name: &'static str,
        value: &[T],
    ) -> Result<(), S::Error> {
        self.some(name, Some(value).filter(|list| !list.is_empty()))
    }

    /// Writes a flag that is up.
    pub(super) fn flag(&mut self, name: &'static str, value: bool) -> Result<(), S::Error> {
        self.some(name, value.then_some(true))
    }

    /// Writes `kind`, which only the form of the schema has.
    pub(super) fn kind(&mut self, form: Form, kind: &str) -> Result<(), S::Error> {
        self.text("kind", (form == Form::Schema).then_some(kind))
    }

    pub(super) fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}
