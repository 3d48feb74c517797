//! Which repository a git call in a directory works on, and whether it is still the one we expect.
//!
//! Owns git's search upwards, nested and bare repositories, and the tamper check of the worktree's own `.git`. Reads
//! the disk only. Entry point: [`at`].

use std::path::{Path, PathBuf};

use super::super::Area;
use super::super::disk::Kind;
use super::super::paths::{Place, Places, is_git_name};

/// The repository that git would find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Repository {
    /// The agent's own, unchanged.
    Own,
    /// Another one, nearest at this directory; `None` if the search leaves the worktree.
    Other(PathBuf),
    /// The worktree's own `.git` is not what it should be.
    Tampered(String),
}

/// Longest `.git` file, `commondir` or alternates file that is believed, in bytes.
const SMALL: u64 = 4096;

/// The repository that git finds from `directory` (resolved), searching upwards.
pub(crate) fn at(directory: &Path, area: &Area, places: &Places<'_>) -> Repository {
    let Ok(below) = directory.strip_prefix(&places.root) else {
        return Repository::Other(directory.to_path_buf());
    };
    // Inside a git directory git takes it for the repository.
    if below.components().any(|part| is_git_name(part.as_os_str())) {
        return Repository::Other(directory.to_path_buf());
    }
    for here in directory.ancestors() {
        if here == places.root {
            return own(area, places);
        }
        match places.disk.kind(here) {
            Kind::Directory => {}
            // What does not exist yet may become anything before git runs.
            Kind::Absent | Kind::File | Kind::Link(_) | Kind::Special | Kind::Unreadable => {
                return Repository::Other(here.to_path_buf());
            }
        }
        let nested = places.disk.kind(&here.join(".git")) != Kind::Absent;
        let bare = ["HEAD", "objects", "refs"].iter().all(|part| places.disk.kind(&here.join(part)) != Kind::Absent);
        if nested || bare {
            return Repository::Other(here.to_path_buf());
        }
    }
    Repository::Other(directory.to_path_buf())
}

/// The worktree's own `.git`, held against the git directory that the area names.
fn own(area: &Area, places: &Places<'_>) -> Repository {
    let entry = places.root.join(".git");
    let expected = places.find(Path::new("/"), &area.git_dir).map(|found| found.real);
    let Some(expected) = expected.filter(|_| area.git_dir.is_absolute()) else {
        return Repository::Tampered("the git directory can't be found".into());
    };
    match places.disk.kind(&entry) {
        Kind::Directory if entry == expected => {
            if places.disk.kind(&entry.join("commondir")) != Kind::Absent {
                return Repository::Tampered("a `commondir` file was put into the git directory".into());
            }
            own_directory(&entry, places)
        }
        Kind::Directory => Repository::Tampered("`.git` is a directory, but not the expected one".into()),
        Kind::File => {
            let text = places.disk.text(&entry, SMALL).unwrap_or_default();
            let target = text.strip_prefix("gitdir: ").map(|target| target.trim_end_matches(['\n', '\r']));
            let found = target.and_then(|target| places.find(&places.root, Path::new(target)));
            if found.is_none_or(|found| found.real != expected) || expected == entry {
                return Repository::Tampered("`.git` is a file that leads to another repository".into());
            }
            linked(&expected, places)
        }
        Kind::Link(_) => Repository::Tampered("`.git` is a link".into()),
        Kind::Absent | Kind::Special | Kind::Unreadable => Repository::Tampered("`.git` is missing".into()),
    }
}

/// A git directory of its own: its parts are in it, and it borrows objects from one place at most.
fn own_directory(git_dir: &Path, places: &Places<'_>) -> Repository {
    for part in ["HEAD", "objects", "refs", "config"] {
        if let Kind::Link(_) = places.disk.kind(&git_dir.join(part)) {
            return Repository::Tampered(format!("`.git/{part}` is a link"));
        }
    }
    let alternates = git_dir.join("objects/info/alternates");
    match places.disk.kind(&alternates) {
        Kind::Absent => Repository::Own,
        Kind::File => {
            let text = places.disk.text(&alternates, SMALL).unwrap_or_default();
            let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
            // The Foreman writes one absolute line; it never points into what an agent may write.
            let plain = match lines.as_slice() {
                [line] => {
                    let path = Path::new(line);
                    let found = places.find(Path::new("/"), path);
                    path.is_absolute()
                        && path.ends_with("objects")
                        && found.is_some_and(|found| found.place == Place::Outside)
                }
                _ => false,
            };
            if plain { Repository::Own } else { Repository::Tampered("the borrowed objects were changed".into()) }
        }
        Kind::Directory | Kind::Link(_) | Kind::Special | Kind::Unreadable => {
            Repository::Tampered("the borrowed objects were changed".into())
        }
    }
}

/// The git directory of a linked worktree: its `commondir` leads to the repository that it lies in.
fn linked(git_dir: &Path, places: &Places<'_>) -> Repository {
    match places.disk.kind(&git_dir.join("commondir")) {
        Kind::Absent => Repository::Own,
        Kind::File => {
            let text = places.disk.text(&git_dir.join("commondir"), SMALL).unwrap_or_default();
            let common = places.find(git_dir, Path::new(text.trim_end_matches(['\n', '\r'])));
            if common.is_some_and(|common| git_dir.parent().and_then(Path::parent) == Some(&common.real)) {
                Repository::Own
            } else {
                Repository::Tampered("the worktree's `commondir` leads to another repository".into())
            }
        }
        Kind::Directory | Kind::Link(_) | Kind::Special | Kind::Unreadable => {
            Repository::Tampered("the worktree's `commondir` was changed".into())
        }
    }
}

/// Names that make a directory look like a repository once they are written into it.
pub(crate) fn shapes_a_repository(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| ["HEAD", "objects", "refs", "commondir", "gitdir"].iter().any(|part| name == *part))
}
