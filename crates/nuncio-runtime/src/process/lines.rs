//! Lines of bytes from a pipe, none longer than a limit.

use std::io;

use memchr::memchr;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// Reads lines. Dropping a read loses nothing.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    max_bytes: usize,
    /// Whether the rest of a line that was cut is passed over.
    passing: bool,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line without its end, or the last one, which had none.
    Whole(Vec<u8>),
    /// The beginning of a line that is longer than the limit; the rest is not given.
    Cut(Vec<u8>),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(from: R, max_bytes: usize) -> Self {
        Self {
            from: BufReader::new(from),
            line: Vec::new(),
            max_bytes,
            passing: false,
        }
    }

    /// The next line; `None` at the end.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let read = self.from.fill_buf().await?;
            if read.is_empty() {
                let rest = std::mem::take(&mut self.line);
                return Ok((!rest.is_empty()).then_some(Line::Whole(rest)));
            }
            let end = memchr(b'\n', read);
            let piece = &read[..end.unwrap_or(read.len())];
            let room = self.max_bytes - self.line.len();
            let cut = !self.passing && piece.len() > room;
            if !self.passing {
                self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            }
            let used = piece.len() + usize::from(end.is_some());
            self.from.consume(used);
            if cut {
                self.passing = end.is_none();
                return Ok(Some(Line::Cut(std::mem::take(&mut self.line))));
            }
            if end.is_some() && !std::mem::take(&mut self.passing) {
                return Ok(Some(Line::Whole(std::mem::take(&mut self.line))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &[u8], max_bytes: usize) -> Vec<Line> {
        let mut lines = Lines::new(text, max_bytes);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn lines_end_where_they_end() {
        let whole = |text: &str| Line::Whole(text.into());
        assert_eq!(all(b"", 9).await, []);
        assert_eq!(
            all(b"a\n\nbc", 9).await,
            [whole("a"), whole(""), whole("bc")]
        );
        assert_eq!(all(b"abc\n", 3).await, [whole("abc")]);
    }

    #[tokio::test]
    async fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let cut = Line::Cut(b"abc".to_vec());
        let next = Line::Whole(b"x".to_vec());
        assert_eq!(all(b"abcd\nx\n", 3).await, [cut, next]);
        let long = [vec![b'y'; 100_000], b"\nx".to_vec()].concat();
        let read = all(&long, 10_000).await;
        assert_eq!(read.len(), 2);
        assert_eq!(read[0], Line::Cut(vec![b'y'; 10_000]));
    }
}
