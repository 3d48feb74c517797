//! The team's notes on disk: markdown files with front matter, made to be read and edited by hand.
//!
//! Owns the folder `memory/` of a profile: `shared/<slug>.md` and `agents/<agent>/<slug>.md`. Never follows a link.
//! Knows nothing of the loop; [`super::memory_watch`] calls it from one thread. Entry points: [`MemoryFolder::read`]
//! and [`MemoryFolder::write`].

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::foreman::effect::WriteMemory;
use crate::protocol::{EpochMs, MemoryEntry, MemoryId};
use crate::turn::MemoryMode;

/// Longest file that is read or written, bytes: the whole library must fit into a snapshot.
pub(crate) const FILE_BYTES: usize = 256 * 1024;
/// Most files read in one scope.
const SCOPE_FILES: usize = 1000;
/// Longest title, characters.
const TITLE_CHARS: usize = 200;
/// A file changed so much later than its front matter says was edited by hand, ms; file times are coarse.
const BY_HAND_MS: EpochMs = 2000;
/// Tries to write past somebody who saves the same note at the same time.
const WRITE_TRIES: u32 = 8;
/// Heading of a hand-made text that an agent's new text would have replaced.
pub(crate) const KEPT_HEADING: &str = "## Kept: changed by hand while this note was being rewritten";

/// The folder of a profile's notes.
#[derive(Clone, Debug)]
pub(crate) struct MemoryFolder {
    root: PathBuf,
}

/// What a reading of the folder gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Oldest first.
    pub entries: Vec<MemoryEntry>,
    /// Files that were passed over, with the reason.
    pub problems: Vec<String>,
}

/// Why a note could not be written; the text is for the agent and the feed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoteError {
    #[error("not a note's name: {scope:?}/{slug:?}")]
    Name { scope: String, slug: String },
    #[error("{id}: too long, {bytes} bytes; a note holds at most {FILE_BYTES}. Write a shorter one, or a second note")]
    TooLong { id: String, bytes: usize },
    #[error("{}: not a note that can be kept ({why}); it was left as it is", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("{}: somebody else keeps changing it; try again", path.display())]
    Contended { path: PathBuf },
    #[error("{}: {doing} failed: {source}", path.display())]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
}

/// A file's parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Note {
    title: Option<String>,
    author: Option<String>,
    updated: Option<EpochMs>,
    /// Lines of the front matter that are not ours; kept.
    other: Vec<String>,
    body: String,
}

impl Note {
    /// Every text is a note; one without front matter is all body.
    fn parse(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let mut note = Self::default();
        let body = match text.strip_prefix("---\n").and_then(split_front_matter) {
            Some((front, rest)) => {
                for line in front.lines() {
                    let (key, value) = line.split_once(':').unwrap_or((line, ""));
                    let value = value.trim();
                    match key.trim() {
                        "title" => note.title = Some(value.to_owned()).filter(|title| !title.is_empty()),
                        "author" => note.author = Some(value.to_owned()).filter(|author| !author.is_empty()),
                        "updated" => note.updated = value.parse().ok(),
                        _ => note.other.push(line.to_owned()),
                    }
                }
                // One blank line may stand between front matter and body.
                rest.strip_prefix('\n').unwrap_or(rest)
            }
            None => text.as_str(),
        };
        note.body = body.strip_suffix('\n').unwrap_or(body).to_owned();
        note
    }

    fn print(&self) -> String {
        let mut text = String::from("---\n");
        text.push_str(&format!("title: {}\n", one_line(self.title.as_deref().unwrap_or(""))));
        text.push_str(&format!("author: {}\n", one_line(self.author.as_deref().unwrap_or(""))));
        text.push_str(&format!("updated: {}\n", self.updated.unwrap_or(0)));
        for line in &self.other {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str("---\n");
        if self.body.starts_with('\n') {
            // Reading takes one blank line away.
            text.push('\n');
        }
        text.push_str(&self.body);
        text.push('\n');
        text
    }

    fn heading(&self) -> Option<&str> {
        self.body.lines().find_map(|line| line.strip_prefix("# ")).map(str::trim).filter(|title| !title.is_empty())
    }

    fn entry(&self, scope: &str, slug: &str, modified: EpochMs) -> MemoryEntry {
        let title = self.title.as_deref().or_else(|| self.heading()).unwrap_or(slug);
        let updated = match self.updated {
            Some(updated) if modified <= updated.saturating_add(BY_HAND_MS) => updated,
            _ => modified,
        };
        MemoryEntry {
            id: id(scope, slug),
            scope: scope.to_owned(),
            title: title.chars().take(TITLE_CHARS).collect(),
            body: self.body.clone(),
            updated,
            author: self.author.clone(),
        }
    }
}

/// Front matter and the rest after its closing line; none when it is not closed.
fn split_front_matter(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((text.get(..at)?, text.get(at + line.len()..)?));
        }
        at += line.len();
    }
    None
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ").trim().to_owned()
}

fn id(scope: &str, slug: &str) -> MemoryId {
    MemoryId(format!("{scope}/{slug}"))
}

fn is_slug(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

impl MemoryFolder {
    /// The notes below `root`; nothing is made before the first note.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder, made for the person alone if it is not there.
    pub(crate) fn ensure(&self) -> Result<&Path, NoteError> {
        make_dir(CWD, &self.root, &self.root)?;
        let root = self.open_root().map_err(|error| io_error(&self.root, "opening", error))?;
        for name in ["shared", "agents"] {
            make_dir(&root, Path::new(name), &self.root.join(name))?;
        }
        Ok(&self.root)
    }

    /// Every note, oldest first. Files that are no notes are named among the problems; half-written ones of a former
    /// life are removed.
    pub(crate) fn read(&self) -> Reading {
        let mut reading = Reading::default();
        self.read_scope("shared", &mut reading);
        let agents = self.open_root().and_then(|root| open_dir(root, Path::new("agents")));
        match names(agents, &self.root.join("agents")) {
            Ok(mut agents) => {
                agents.sort();
                for agent in agents {
                    if is_scope(&agent) && agent != "shared" {
                        self.read_scope(&agent, &mut reading);
                    } else {
                        let path = self.root.join("agents").join(&agent);
                        reading.problems.push(format!("{}: not an agent's folder", path.display()));
                    }
                }
            }
            Err(error) => reading.problems.push(error.to_string()),
        }
        reading.entries.sort_by(|a, b| (a.updated, &a.id).cmp(&(b.updated, &b.id)));
        reading
    }

    fn read_scope(&self, scope: &str, reading: &mut Reading) {
        let dir = self.scope_dir(scope);
        let fd = match self.open_scope(scope) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return,
            Err(error) => return reading.problems.push(io_error(&dir, "opening", error).to_string()),
        };
        let mut names = match names(Ok(&fd), &dir) {
            Ok(names) => names,
            Err(error) => return reading.problems.push(error.to_string()),
        };
        names.sort();
        let mut count = 0;
        for name in names {
            if name.starts_with('.') {
                if name.ends_with(".tmp") {
                    // Gone already or not ours to remove: either way no note.
                    rustix::fs::unlinkat(&fd, &name, AtFlags::empty()).ok();
                }
                continue;
            }
            let path = dir.join(&name);
            let Some(slug) = name.strip_suffix(".md").filter(|slug| is_slug(slug)) else {
                if name.ends_with(".md") {
                    let why = "a note's name has only a-z, 0-9 and dashes";
                    reading.problems.push(format!("{}: passed over: {why}", path.display()));
                }
                continue;
            };
            count += 1;
            if count > SCOPE_FILES {
                let why = format!("more than {SCOPE_FILES} notes in one folder, the rest was not read");
                return reading.problems.push(format!("{}: {why}", dir.display()));
            }
            match read_file(&fd, &name, &path) {
                Ok(Some(found)) => reading.entries.push(Note::parse(&found.text).entry(scope, slug, found.modified)),
                Ok(None) => {}
                Err(error) => reading.problems.push(error.to_string()),
            }
        }
    }

    /// The folder itself may be a link of the person's; nothing below it may.
    fn open_root(&self) -> Result<OwnedFd, Errno> {
        rustix::fs::open(&self.root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }

    fn open_scope(&self, scope: &str) -> Result<OwnedFd, Errno> {
        let root = self.open_root()?;
        if scope == "shared" {
            open_dir(root, Path::new(scope))
        } else {
            open_dir(open_dir(root, Path::new("agents"))?, Path::new(scope))
        }
    }

    fn scope_dir(&self, scope: &str) -> PathBuf {
        if scope == "shared" { self.root.join("shared") } else { self.root.join("agents").join(scope) }
    }

    /// Times and sizes of all files: when it is the same as before, nothing was edited.
    pub(crate) fn fingerprint(&self) -> Vec<(String, String)> {
        let mut seen = Vec::new();
        let agents = self.open_root().and_then(|root| open_dir(root, Path::new("agents")));
        let agents = names(agents, &self.root).unwrap_or_default();
        for scope in std::iter::once("shared".to_owned()).chain(agents) {
            let Ok(fd) = self.open_scope(&scope) else { continue };
            for name in names(Ok(&fd), &self.root).unwrap_or_default() {
                if let Ok(stat) = rustix::fs::statat(&fd, &name, AtFlags::SYMLINK_NOFOLLOW)
                    && !name.starts_with('.')
                {
                    let state = format!("{} {}.{}", stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
                    seen.push((format!("{scope}/{name}"), state));
                }
            }
        }
        seen.sort();
        seen
    }

    /// Writes a note as the order says, merged with what the file holds by then. The same order again (after a crash)
    /// changes nothing.
    pub(crate) fn write(&self, order: &WriteMemory) -> Result<MemoryEntry, NoteError> {
        let (scope, slug) = (&order.scope, &order.slug);
        if !is_scope(scope) || !is_slug(slug) {
            return Err(NoteError::Name { scope: scope.clone(), slug: slug.clone() });
        }
        self.ensure()?;
        let dir_path = self.scope_dir(scope);
        if scope != "shared" {
            let agents = self.open_root().and_then(|root| open_dir(root, Path::new("agents")));
            let agents = agents.map_err(|error| io_error(&dir_path, "opening", error))?;
            make_dir(agents, Path::new(scope), &dir_path)?;
        }
        let dir = self.open_scope(scope).map_err(|error| io_error(&dir_path, "opening", error))?;
        let (name, draft) = (format!("{slug}.md"), format!(".{slug}.{}.tmp", std::process::id()));
        let path = dir_path.join(&name);
        let mut expected = read_file(&dir, &name, &path)?.map(|found| found.text);
        let mut base = expected.clone();
        for _ in 0..WRITE_TRIES {
            let old = base.as_deref().map(Note::parse);
            let Some(note) = compose(order, old.as_ref()) else {
                return Ok(old.unwrap_or_default().entry(scope, slug, order.now));
            };
            let text = note.print();
            if text.len() > FILE_BYTES {
                return Err(NoteError::TooLong { id: id(scope, slug).0, bytes: text.len() });
            }
            write_draft(&dir, &draft, &path, &text, order.now)?;
            match put_in_place(&dir, &draft, &name, expected.as_deref(), &path)? {
                Placed::Done => {
                    rustix::fs::fsync(&dir).map_err(|error| io_error(&dir_path, "writing to disk", error))?;
                    return Ok(note.entry(scope, slug, order.now));
                }
                // Somebody saved it in between: theirs is the new base, and ours stands in the file.
                Placed::Changed { theirs, standing } => {
                    base = theirs;
                    expected = if standing { Some(text) } else { base.clone() };
                }
            }
        }
        // The newest text of the other one goes back into its place, ours is given up.
        if let Some(theirs) = base.filter(|theirs| expected.as_deref() != Some(theirs)) {
            write_draft(&dir, &draft, &path, &theirs, order.now)?;
            give_back(&dir, &draft, &name, expected.unwrap_or_default(), theirs, &path)?;
        }
        Err(NoteError::Contended { path })
    }
}

/// The note to write; none when the order was carried out already.
fn compose(order: &WriteMemory, old: Option<&Note>) -> Option<Note> {
    let text = order.body.replace("\r\n", "\n");
    let author = Some(order.author.clone()).filter(|author| !author.is_empty());
    let written = old.is_some_and(|old| old.updated == Some(order.now) && old.author == author && old.title.is_some());
    let body = match (order.mode, old) {
        (MemoryMode::Append, Some(old)) => {
            let before = old.body.trim_end_matches('\n');
            if written && (before == text.trim_end_matches('\n') || before.contains(&format!("\n\n{text}"))) {
                return None;
            }
            if before.is_empty() { text } else { format!("{before}\n\n{text}") }
        }
        (MemoryMode::Replace, Some(old)) => {
            let kept = format!("\n\n{KEPT_HEADING}\n\n");
            if written && (old.body == text || old.body.starts_with(&format!("{text}{kept}"))) {
                return None;
            }
            let seen = order.seen.as_ref().is_some_and(|seen| seen.body == old.body);
            if seen || old.body == text || old.body.trim().is_empty() {
                text
            } else {
                format!("{text}{kept}{}", old.body)
            }
        }
        (MemoryMode::Append | MemoryMode::Replace, None) => text,
    };
    Some(Note {
        title: Some(one_line(&order.title)),
        author,
        updated: Some(order.now),
        other: old.map(|old| old.other.clone()).unwrap_or_default(),
        body,
    })
}

enum Placed {
    Done,
    /// The file was not what was expected; `standing`: ours stands there now and theirs was taken out.
    Changed {
        theirs: Option<String>,
        standing: bool,
    },
}

/// Exchanges draft and file in one step and looks at what was taken out, so that not even a save between two system
/// calls is lost.
fn put_in_place(
    dir: &OwnedFd,
    draft: &str,
    name: &str,
    expected: Option<&str>,
    path: &Path,
) -> Result<Placed, NoteError> {
    let fail = |error| io_error(path, "putting the new text in place", error);
    let remove = || rustix::fs::unlinkat(dir, draft, AtFlags::empty()).map_err(fail);
    let Some(expected) = expected else {
        return match rustix::fs::renameat_with(dir, draft, dir, name, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(Placed::Done),
            Err(Errno::EXIST) => {
                remove()?;
                Ok(Placed::Changed { theirs: read_file(dir, name, path)?.map(|found| found.text), standing: false })
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => replace_checked(dir, draft, name, None, path, fail),
            Err(error) => Err(fail(error)),
        };
    };
    match rustix::fs::renameat_with(dir, draft, dir, name, RenameFlags::EXCHANGE) {
        Ok(()) => {
            let taken = read_file(dir, draft, path);
            match taken {
                Ok(taken) => {
                    remove()?;
                    let theirs = taken.map(|found| found.text);
                    if theirs.as_deref() == Some(expected) {
                        Ok(Placed::Done)
                    } else {
                        Ok(Placed::Changed { theirs, standing: true })
                    }
                }
                Err(error) => {
                    // Not a text: back with it.
                    rustix::fs::renameat_with(dir, draft, dir, name, RenameFlags::EXCHANGE).map_err(fail)?;
                    remove()?;
                    Err(error)
                }
            }
        }
        Err(Errno::NOENT) => {
            remove()?;
            Ok(Placed::Changed { theirs: None, standing: false })
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            replace_checked(dir, draft, name, Some(expected), path, fail)
        }
        Err(error) => Err(fail(error)),
    }
}

/// Exchanges until what is taken out is what we put there ourselves: then the newest save of the other one stands.
fn give_back(
    dir: &OwnedFd,
    draft: &str,
    name: &str,
    ours: String,
    theirs: String,
    path: &Path,
) -> Result<(), NoteError> {
    let fail = |error| io_error(path, "putting the other text back", error);
    let (mut standing, mut drafted) = (Some(ours), Some(theirs));
    for _ in 0..1000 {
        match rustix::fs::renameat_with(dir, draft, dir, name, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            // Where there is no exchange, ours never stood there while theirs was taken out.
            Err(_) => break,
        }
        let taken = read_file(dir, draft, path).ok().flatten().map(|found| found.text);
        if taken == standing {
            break;
        }
        (standing, drafted) = (drafted, taken);
    }
    rustix::fs::unlinkat(dir, draft, AtFlags::empty()).map_err(fail)
}

/// For file systems that cannot exchange: looks once more, then replaces.
fn replace_checked(
    dir: &OwnedFd,
    draft: &str,
    name: &str,
    expected: Option<&str>,
    path: &Path,
    fail: impl Fn(Errno) -> NoteError,
) -> Result<Placed, NoteError> {
    let theirs = read_file(dir, name, path)?.map(|found| found.text);
    if theirs.as_deref() != expected {
        rustix::fs::unlinkat(dir, draft, AtFlags::empty()).map_err(fail)?;
        return Ok(Placed::Changed { theirs, standing: false });
    }
    rustix::fs::renameat(dir, draft, dir, name).map_err(fail)?;
    Ok(Placed::Done)
}

fn io_error(path: &Path, doing: &'static str, source: impl Into<io::Error>) -> NoteError {
    NoteError::Io { path: path.to_owned(), doing, source: source.into() }
}

/// Names in a directory; a directory that is not there is empty.
fn names(dir: Result<impl AsFd, Errno>, path: &Path) -> Result<Vec<String>, NoteError> {
    let fail = |error| io_error(path, "listing", error);
    let listing = match dir {
        Ok(fd) => Dir::read_from(fd).map_err(fail)?,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    let mut names = Vec::new();
    for entry in listing {
        let entry = entry.map_err(fail)?;
        if let Ok(name) = entry.file_name().to_str()
            && name != "."
            && name != ".."
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

fn make_dir(at: impl AsFd, dir: &Path, path: &Path) -> Result<(), NoteError> {
    match rustix::fs::mkdirat(at, dir, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(io_error(path, "making the folder", error)),
    }
}

fn open_dir(at: impl AsFd, dir: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, dir, flags, Mode::empty())
}

struct Found {
    text: String,
    modified: EpochMs,
}

/// A note's text; none when it is not there. Links, devices, huge files and bytes that are no text are refused.
fn read_file(dir: &OwnedFd, name: &str, path: &Path) -> Result<Option<Found>, NoteError> {
    let refuse = |why: &str| NoteError::Unreadable { path: path.to_owned(), why: why.to_owned() };
    // Without NONBLOCK a named pipe would hold us for ever.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(refuse("a symbolic link")),
        Err(error) => return Err(io_error(path, "opening", error)),
    };
    let about = file.metadata().map_err(|error| io_error(path, "looking at it", error))?;
    if !about.is_file() {
        return Err(refuse("not a regular file"));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed tells that there is more.
    let limit = FILE_BYTES as u64 + 1;
    (&file).take(limit).read_to_end(&mut bytes).map_err(|error| io_error(path, "reading", error))?;
    if bytes.len() > FILE_BYTES {
        return Err(refuse(&format!("longer than {FILE_BYTES} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| refuse("not UTF-8 text"))?;
    let modified = about
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    Ok(Some(Found { text, modified }))
}

fn write_draft(dir: &OwnedFd, draft: &str, path: &Path, text: &str, now: EpochMs) -> Result<(), NoteError> {
    rustix::fs::unlinkat(dir, draft, AtFlags::empty()).ok();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, draft, flags, Mode::from_raw_mode(0o600))
        .map_err(|error| io_error(path, "making a new file beside it", error))?;
    let mut file = File::from(fd);
    let written = file
        .write_all(text.as_bytes())
        // The file's time says when the note was written, so that a later one means a hand.
        .and_then(|()| file.set_modified(UNIX_EPOCH + Duration::from_millis(now)))
        .and_then(|()| file.sync_all());
    if let Err(error) = written {
        rustix::fs::unlinkat(dir, draft, AtFlags::empty()).ok();
        return Err(io_error(path, "writing", error));
    }
    Ok(())
}

#[cfg(test)]
#[path = "memory_files_tests.rs"]
mod tests;
