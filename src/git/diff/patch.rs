//! Reading the text of a unified diff. Names are not taken from it (they are ambiguous there), only hunks.

use crate::protocol::{DiffHunk, DiffLine, DiffLineKind};

/// What is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Lines of one file.
    pub file: usize,
    /// Lines of the whole diff.
    pub total: usize,
    /// Characters of one line.
    pub line: usize,
}

/// The part of a diff that is about one pair of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub hunks: Vec<DiffHunk>,
    /// git says that the contents differ without showing how.
    pub binary: bool,
}

/// Splits a diff into its sections, in order. True: lines were dropped; hunk headers never are.
pub(crate) fn sections(patch: &[u8], limits: Limits) -> (Vec<Section>, bool) {
    let mut found: Vec<Section> = Vec::new();
    let mut truncated = false;
    let (mut total, mut in_file) = (0, 0);
    // Lines that the current hunk still has to give, by its header.
    let (mut old_left, mut new_left) = (0_u32, 0_u32);
    let (mut old_no, mut new_no) = (0_u32, 0_u32);
    for line in patch.split(|b| *b == b'\n') {
        if old_left == 0 && new_left == 0 {
            if line.starts_with(b"diff --git ") {
                found.push(Section::default());
                in_file = 0;
                continue;
            }
            let Some(section) = found.last_mut() else { continue };
            if line.starts_with(b"Binary files ") {
                section.binary = true;
            } else if let Some(hunk) = header(line) {
                (old_left, new_left) = (hunk.old_lines, hunk.new_lines);
                (old_no, new_no) = (hunk.old_start, hunk.new_start);
                section.hunks.push(hunk);
            }
            continue;
        }
        let (kind, old, new) = match line.first() {
            Some(b'+') => (DiffLineKind::Add, 0, 1),
            Some(b'-') => (DiffLineKind::Del, 1, 0),
            // "\ No newline at end of file" belongs to the line before.
            Some(b'\\') => continue,
            _ => (DiffLineKind::Ctx, 1, 1),
        };
        let entry = DiffLine {
            kind,
            text: String::new(),
            old_no: (old == 1).then_some(old_no),
            new_no: (new == 1).then_some(new_no),
        };
        old_left = old_left.saturating_sub(old);
        new_left = new_left.saturating_sub(new);
        (old_no, new_no) = (old_no.saturating_add(old), new_no.saturating_add(new));
        if in_file >= limits.file || total >= limits.total {
            truncated = true;
            continue;
        }
        if let Some(hunk) = found.last_mut().and_then(|section| section.hunks.last_mut()) {
            let mut text = String::from_utf8_lossy(line.get(1..).unwrap_or_default()).into_owned();
            if text.len() > limits.line {
                let end = text.floor_char_boundary(limits.line);
                text.truncate(end);
                truncated = true;
            }
            hunk.lines.push(DiffLine { text, ..entry });
            in_file += 1;
            total += 1;
        }
    }
    (found, truncated)
}

/// Reads "@@ -12,6 +12,9 @@ context"; counts default to 1.
fn header(line: &[u8]) -> Option<DiffHunk> {
    let text = String::from_utf8_lossy(line);
    let mut words = text.strip_prefix("@@ ")?.split(' ');
    let range = |word: Option<&str>, sign: char| {
        let word = word?.strip_prefix(sign)?;
        let (start, count) = word.split_once(',').unwrap_or((word, "1"));
        Some((start.parse::<u32>().ok()?, count.parse::<u32>().ok()?))
    };
    let (old_start, old_lines) = range(words.next(), '-')?;
    let (new_start, new_lines) = range(words.next(), '+')?;
    (words.next() == Some("@@")).then(|| DiffHunk {
        header: text.clone().into_owned(),
        old_start,
        old_lines,
        new_start,
        new_lines,
        lines: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Limits = Limits { file: usize::MAX, total: usize::MAX, line: usize::MAX };

    /// Lines that look like headers inside a hunk are content, for the header's counts say where it ends.
    #[test]
    fn content_that_looks_like_a_header_is_content() {
        let patch = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@ fn a\n-diff --git a/y b/y\n+@@ -1 +1 @@\n \
            \n+-- z\n\\ No newline at end of file\ndiff --git a/bin b/bin\nBinary files a/bin and b/bin differ\n";
        let (found, truncated) = sections(patch, NONE);
        assert!(!truncated);
        assert_eq!(found.len(), 2);
        assert!(found[1].binary && found[1].hunks.is_empty());
        let lines: Vec<_> =
            found[0].hunks[0].lines.iter().map(|l| (l.kind, l.text.as_str(), l.old_no, l.new_no)).collect();
        assert_eq!(
            lines,
            [
                (DiffLineKind::Del, "diff --git a/y b/y", Some(1), None),
                (DiffLineKind::Add, "@@ -1 +1 @@", None, Some(1)),
                (DiffLineKind::Ctx, "", Some(2), Some(2)),
                (DiffLineKind::Add, "-- z", None, Some(3)),
            ]
        );
    }

    /// Beyond the limits lines go and headers stay.
    #[test]
    fn limits_drop_lines_and_keep_headers() {
        let patch = b"diff --git a/x b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n@@ -9 +11 @@ x\n-c\n+d\n";
        let (found, truncated) = sections(patch, Limits { file: 1, total: 10, line: 10 });
        assert!(truncated);
        assert_eq!(found[0].hunks.len(), 2);
        assert_eq!(found[0].hunks[0].lines.len(), 1);
        assert_eq!(found[0].hunks[1].header, "@@ -9 +11 @@ x");
        assert_eq!((found[0].hunks[1].old_lines, found[0].hunks[1].new_lines), (1, 1));
    }
}
