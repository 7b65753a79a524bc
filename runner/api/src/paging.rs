//! Reads what the queries of all lists share: the size of a page, and where it begins.

use std::fmt::Display;

use runner_store::UnixMillis;

use crate::error::Error;

/// Sizes that the pages of a list may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageSizes {
    /// Size, if the client names none.
    pub(crate) usual: u32,
    /// Largest size.
    pub(crate) most: u32,
    /// Word for the objects of the list.
    pub(crate) objects: &'static str,
}

/// Sizes that most lists have.
const USUAL: PageSizes = PageSizes { usual: 50, most: 200, objects: "objects" };

/// Place in a list that is ordered by time: an object and its time.
pub(crate) type Place<K> = (UnixMillis, K);

/// Returns the size of a page, of which a query names `limit`.
///
/// # Errors
/// [`Error::Invalid`] if no page has that size.
pub(crate) fn page_size(limit: Option<u32>) -> Result<u32, Error> {
    USUAL.choose(limit)
}

impl PageSizes {
    /// Returns the size of a page, of which a query names `limit`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no page has that size.
    pub(crate) fn choose(self, limit: Option<u32>) -> Result<u32, Error> {
        let Self { usual, most, objects } = self;
        let limit = limit.unwrap_or(usual);
        let problem = || Error::Invalid(format!("`limit` {limit}: a page has 1 to {most} {objects}"));
        (1..=most).contains(&limit).then_some(limit).ok_or_else(problem)
    }
}

/// Cuts a list of which one object more than a page has was read. Returns the page's last object if others follow.
pub(crate) fn cut_page<T>(objects: &mut Vec<T>, size: u32) -> Option<&T> {
    let has_more = objects.len() > size as usize;
    objects.truncate(size as usize);
    objects.last().filter(|_| has_more)
}

/// Returns the place that a query's `cursor` names; `parse` reads its key.
///
/// # Errors
/// [`Error::Invalid`] if the text is not a cursor.
pub(crate) fn read_cursor<K>(
    cursor: Option<&str>,
    parse: impl Fn(&str) -> Option<K>,
) -> Result<Option<Place<K>>, Error> {
    let read = |text: &str| {
        let (time, key) = text.split_once('.')?;
        Some((UnixMillis(time.parse().ok()?), parse(key)?))
    };
    cursor.map(|text| read(text).ok_or_else(invalid_cursor)).transpose()
}

/// Returns the cursor of a place.
pub(crate) fn write_cursor(time: UnixMillis, key: impl Display) -> String {
    format!("{}.{key}", time.0)
}

/// Returns the error for a text that is not a cursor.
pub(crate) fn invalid_cursor() -> Error {
    Error::Invalid("`cursor` is not a `nextCursor` of this API".to_owned())
}

#[cfg(test)]
mod tests {
    use platform_core::id::RunId;

    use super::*;

    #[test]
    fn a_cursor_is_read_as_written() {
        let run_id = RunId::parse("run-1").unwrap();
        let cursor = write_cursor(UnixMillis(7), &run_id);
        let read = |cursor: &str| read_cursor(Some(cursor), |key| RunId::parse(key).ok());
        assert_eq!(read(&cursor).unwrap(), Some((UnixMillis(7), run_id)));
        for text in ["", "7", "run-1", "x.run-1", "7.RUN"] {
            assert!(matches!(read(text), Err(Error::Invalid(_))), "{text}");
        }
    }

    #[test]
    fn a_page_has_a_bounded_size() {
        assert_eq!(page_size(None).unwrap(), 50);
        assert_eq!(page_size(Some(200)).unwrap(), 200);
        for limit in [0, 201] {
            assert!(matches!(page_size(Some(limit)), Err(Error::Invalid(_))), "{limit}");
        }
    }
}
