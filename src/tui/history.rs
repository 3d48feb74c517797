//! The console's history file: one line per entry, line breaks and backslashes escaped. Only for the person: 0600.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes of the file that are read at most; older lines are forgotten.
const READ_BYTES: usize = 512 * 1024;

/// The entries of the file, oldest first; a file that is not there is an empty history.
///
/// # Errors
/// When the file is there and cannot be read.
pub(super) fn load(path: &Path, most: usize) -> io::Result<Vec<String>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let start = bytes.len().saturating_sub(READ_BYTES);
    let text = String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned();
    // A cut in the middle of a line leaves half of it at the beginning.
    let lines = text.lines().skip(usize::from(start > 0)).filter(|l| !l.trim().is_empty()).map(unescape);
    let all: Vec<String> = lines.collect();
    Ok(all.into_iter().rev().take(most).rev().collect())
}

/// Appends an entry.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn append(path: &Path, entry: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.write_all(format!("{}\n", escape(entry)).as_bytes())
}

fn escape(entry: &str) -> String {
    entry.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescape(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some(other)) => out.push(other),
            (c, _) => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was typed comes back, line breaks and backslashes too; nobody else may read it.
    #[test]
    fn entries_survive_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history");
        assert_eq!(load(&path, 10).unwrap(), Vec::<String>::new());
        let entries = ["/answer d2 Merge", "two\nlines", "a \\n that is no break", "ends with \\"];
        for entry in entries {
            append(&path, entry).unwrap();
        }
        assert_eq!(load(&path, 10).unwrap(), entries);
        assert_eq!(load(&path, 2).unwrap(), entries[2..]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
