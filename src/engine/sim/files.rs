//! The simulated agents' hands: real edits of real files below one directory, and what the log shows of them.
//!
//! Every edit is idempotent: after an interruption the same beats are played again over what is there.

use std::path::{Component, Path, PathBuf};

/// Lines of an edit that the log shows.
const SHOWN: usize = 8;

/// Why an edit was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    #[error("{0} is outside the worktree")]
    Outside(String),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path} has no line with \"{anchor}\"")]
    NoAnchor { path: String, anchor: String },
}

/// What an edit did.
pub(crate) enum Edited {
    /// It was there already.
    Already,
    /// Lines for the log, with + and - in front.
    Changed(String),
}

/// A path below the directory, never through `..` or a link.
pub(crate) fn inside(dir: &Path, path: &str) -> Result<PathBuf, EditError> {
    let outside = || EditError::Outside(path.to_owned());
    let mut at = dir.to_owned();
    for part in Path::new(path).components() {
        let Component::Normal(name) = part else { return Err(outside()) };
        at.push(name);
        if at.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            return Err(outside());
        }
    }
    Ok(at)
}

fn read(path: &Path) -> Result<Option<String>, EditError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(EditError::Io { path: path.to_owned(), source }),
    }
}

fn store(path: &Path, text: &str) -> Result<(), EditError> {
    let io = |source| EditError::Io { path: path.to_owned(), source };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(io)?;
    }
    std::fs::write(path, text).map_err(io)
}

fn shown(name: &str, old: &[&str], new: &[&str]) -> String {
    let mut lines = vec![name.to_owned()];
    lines.extend(old.iter().take(SHOWN).map(|line| format!("- {line}")));
    lines.extend(new.iter().take(SHOWN).map(|line| format!("+ {line}")));
    if new.len() > SHOWN {
        lines.push(format!("+ ... {} more lines", new.len() - SHOWN));
    }
    lines.join("\n")
}

/// Writes a file whole.
pub(crate) fn write(dir: &Path, name: &str, text: &str, executable: bool) -> Result<Edited, EditError> {
    let path = inside(dir, name)?;
    if read(&path)?.as_deref() == Some(text) {
        return Ok(Edited::Already);
    }
    store(&path, text)?;
    if executable {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
            .map_err(|source| EditError::Io { path: path.clone(), source })?;
    }
    Ok(Edited::Changed(shown(name, &[], &text.lines().collect::<Vec<_>>())))
}

/// Puts text behind the first line that holds the anchor, unless it is in the file already.
pub(crate) fn insert(dir: &Path, name: &str, after: &str, text: &str) -> Result<Edited, EditError> {
    let path = inside(dir, name)?;
    let old = read(&path)?.unwrap_or_default();
    if old.contains(text) {
        return Ok(Edited::Already);
    }
    let mut new = String::new();
    let mut put = false;
    for line in old.split_inclusive('\n') {
        new.push_str(line);
        if !put && line.contains(after) {
            if !line.ends_with('\n') {
                new.push('\n');
            }
            new.push_str(text);
            put = true;
        }
    }
    if !put {
        return Err(EditError::NoAnchor { path: name.to_owned(), anchor: after.to_owned() });
    }
    store(&path, &new)?;
    Ok(Edited::Changed(shown(name, &[], &text.lines().collect::<Vec<_>>())))
}

/// Replaces text once; done already when the new text is there and the old one is not.
pub(crate) fn replace(dir: &Path, name: &str, old: &str, new: &str) -> Result<Edited, EditError> {
    let path = inside(dir, name)?;
    let text = read(&path)?.unwrap_or_default();
    if !text.contains(old) {
        if text.contains(new) {
            return Ok(Edited::Already);
        }
        return Err(EditError::NoAnchor {
            path: name.to_owned(),
            anchor: old.lines().next().unwrap_or_default().to_owned(),
        });
    }
    store(&path, &text.replacen(old, new, 1))?;
    Ok(Edited::Changed(shown(name, &old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>())))
}

/// Adds text at the end, unless it is in the file already.
pub(crate) fn append(dir: &Path, name: &str, text: &str) -> Result<Edited, EditError> {
    let path = inside(dir, name)?;
    let mut old = read(&path)?.unwrap_or_default();
    if old.contains(text.trim_end()) {
        return Ok(Edited::Already);
    }
    if !old.is_empty() && !old.ends_with('\n') {
        old.push('\n');
    }
    old.push_str(text);
    store(&path, &old)?;
    Ok(Edited::Changed(shown(name, &[], &text.lines().collect::<Vec<_>>())))
}

/// Takes the marks of a conflict out, keeping both sides.
pub(crate) fn keep_both(text: &str) -> String {
    text.split_inclusive('\n')
        .filter(|line| !(line.starts_with("<<<<<<< ") || line.starts_with("=======\n") || line.starts_with(">>>>>>> ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_idempotent_and_stay_inside() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(write(dir.path(), "a/b.txt", "one\ntwo\n", false), Ok(Edited::Changed(_))));
        assert!(matches!(write(dir.path(), "a/b.txt", "one\ntwo\n", false), Ok(Edited::Already)));
        assert!(matches!(insert(dir.path(), "a/b.txt", "one", "half\n"), Ok(Edited::Changed(_))));
        assert!(matches!(insert(dir.path(), "a/b.txt", "one", "half\n"), Ok(Edited::Already)));
        assert_eq!(std::fs::read_to_string(dir.path().join("a/b.txt")).unwrap(), "one\nhalf\ntwo\n");
        assert!(matches!(insert(dir.path(), "a/b.txt", "none", "x\n"), Err(EditError::NoAnchor { .. })));
        assert!(matches!(write(dir.path(), "../x", "", false), Err(EditError::Outside(_))));
        std::os::unix::fs::symlink("/tmp", dir.path().join("link")).unwrap();
        assert!(matches!(write(dir.path(), "link/x", "", false), Err(EditError::Outside(_))));
    }

    #[test]
    fn both_sides_of_a_conflict_are_kept() {
        let text = "a\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> main\nb\n";
        assert_eq!(keep_both(text), "a\nours\ntheirs\nb\n");
    }
}
