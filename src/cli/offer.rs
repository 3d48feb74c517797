//! A start inside a git repository offers to connect it. A repository once declined for good is not offered again.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::error::CliError;
use super::output;
use crate::client::Mirror;
use crate::git::{self, GitError};

/// Where declined repositories are listed, one path a line, in the profile's directory.
const DECLINED: &str = "declined-repositories";

/// Asks whether the repository around `cwd` should be connected. `None`: there is none, it is connected, it was
/// declined, or nobody can be asked.
pub(super) fn offer(cwd: &Path, mirror: &Mirror, profile_dir: &Path) -> Result<Option<PathBuf>, CliError> {
    let Some(root) = repository_around(cwd) else { return Ok(None) };
    let list = profile_dir.join(DECLINED);
    let connected = mirror.repos.values().any(|repo| Path::new(&repo.path) == root);
    let declined = fs::read_to_string(&list).unwrap_or_default().lines().any(|line| Path::new(line) == root);
    if connected || declined {
        return Ok(None);
    }
    let instead = if mirror.repos.is_empty() { "o (the demo repository)" } else { "o" };
    let question =
        format!("{} is a git repository. Let the team work on it? [y]es, [N]{instead}, ne[v]er:", root.display());
    match output::ask(&question).as_deref() {
        Some("y" | "yes") => Ok(Some(root)),
        Some("v" | "never") => {
            let line = format!("{}\n", root.display());
            let added = fs::OpenOptions::new().append(true).create(true).open(&list);
            added
                .and_then(|mut file| file.write_all(line.as_bytes()))
                .map_err(|source| CliError::File { path: list, source })?;
            Ok(None)
        }
        Some(_) | None => Ok(None),
    }
}

/// The top of the repository that `cwd` lies in, without links, if the team could work there.
fn repository_around(cwd: &Path) -> Option<PathBuf> {
    match git::inspect(cwd) {
        Ok(view) => Some(view.path),
        Err(GitError::NotRoot { root, .. }) => git::inspect(&root).ok().map(|view| view.path),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::sample;

    /// Only a repository around the directory, not connected and not declined, is worth a question.
    #[test]
    fn what_is_offered() {
        let home = tempfile::tempdir().expect("a directory");
        let root = home.path().canonicalize().expect("there");
        let deep = root.join("repo/src/deep");
        fs::create_dir_all(&deep).expect("made");
        assert_eq!(repository_around(&deep), None);
        let repo = root.join("repo");
        for words in [vec!["init", "-q", "-b", "main"], vec!["commit", "-q", "--allow-empty", "-m", "Begin"]] {
            let mut git = git::safety::foreman_git(&repo);
            git.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]).args(words);
            assert!(git.status().expect("git runs").success());
        }
        assert_eq!(repository_around(&deep), Some(repo));

        // Nobody can be asked in a test, so whatever gets as far as the question is not connected.
        let mirror = Mirror::from_snapshot(sample::snapshot());
        assert_eq!(offer(&deep, &mirror, &root).expect("no error"), None);
    }
}
