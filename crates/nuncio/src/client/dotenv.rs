//! `.env` files: lines of `NAME=value`.

use std::collections::BTreeMap;

/// A line that is neither a setting nor a comment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is not of the form NAME=value")]
pub(crate) struct DotenvError {
    pub(crate) line: usize,
}

/// Reads the settings of a file.
///
/// `#` begins a comment at the start of a line, or after a blank outside of quotes. Single quotes
/// keep everything, double quotes know `\n`, `\t`, `\"` and `\\`. `export` in front is allowed.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, String>, DotenvError> {
    let mut settings = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = DotenvError { line: index + 1 };
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').ok_or(wrong.clone())?;
        let name = name.trim();
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(good) {
            return Err(wrong);
        }
        settings.insert(name.to_owned(), unquote(value.trim()).ok_or(wrong)?);
    }
    Ok(settings)
}

fn unquote(value: &str) -> Option<String> {
    match value.chars().next() {
        Some('\'') => {
            let (inner, rest) = value[1..].split_once('\'')?;
            is_comment(rest).then(|| inner.to_owned())
        }
        Some('"') => double_quoted(&value[1..]),
        _ => Some(
            value
                .split(" #")
                .next()
                .unwrap_or_default()
                .trim_end()
                .to_owned(),
        ),
    }
}

fn double_quoted(value: &str) -> Option<String> {
    let mut inner = String::new();
    let mut chars = value.chars();
    loop {
        match chars.next()? {
            '"' => return is_comment(chars.as_str()).then_some(inner),
            '\\' => inner.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                other => other,
            }),
            other => inner.push(other),
        }
    }
}

fn is_comment(rest: &str) -> bool {
    let rest = rest.trim();
    rest.is_empty() || rest.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_comments_and_export_are_understood() {
        let text = "# a file\nA=1\nexport B = two words # not this\nC='a#b \"c\"'\nD=\"x\\ny\" # z\nE=\n F=a#b\n";
        let read = parse(text).unwrap();
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "a#b \"c\""),
            ("D", "x\ny"),
            ("E", ""),
            ("F", "a#b"),
        ];
        assert_eq!(read.len(), expected.len());
        for (name, value) in expected {
            assert_eq!(read[name], value, "{name}");
        }
    }

    #[test]
    fn a_bad_line_is_named() {
        for (text, line) in [
            ("A=1\nnonsense", 2),
            ("=x", 1),
            ("A='x", 1),
            ("A=\"x", 1),
            ("A B=1", 1),
        ] {
            assert_eq!(parse(text), Err(DotenvError { line }), "{text}");
        }
    }
}
