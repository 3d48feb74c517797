//! Where a path leads, as the kernel would find it, and what an agent may do there.
//!
//! Owns resolution (component by component, links followed, `..` after a link to the real parent) and the map of an
//! area: worktree, scratch, read directories, outside. Sees the disk only through [`Disk`]; knows no commands.
//! Entry points: [`Places::new`], [`Places::find`].

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use super::Area;
use super::disk::{Disk, Kind};

/// Links followed in one resolution; the kernel's own bound (`MAXSYMLINKS`).
const LINKS: usize = 40;
/// Components walked in one resolution; a path of the longest length the kernel takes stays below.
const COMPONENTS: usize = 4096;
/// Entries looked at when a whole tree is in question; a bigger tree counts as unknown.
const TREE_ENTRIES: usize = 20_000;

/// The part of the machine a resolved path lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Worktree,
    Scratch,
    ReadDir,
    /// `/dev/null`, the standard streams.
    Harmless,
    /// The shell's `/dev/tcp` and `/dev/udp`.
    Network,
    Outside,
}

/// A path as the kernel finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Free of links and `..`; the last components may not exist yet.
    pub(crate) real: PathBuf,
    pub(crate) place: Place,
    /// Something stands there now.
    pub(crate) kind: Kind,
    /// A component is (spelled like) `.git`.
    pub(crate) git_entry: bool,
    /// It is the root of an area, not something in it.
    pub(crate) root: bool,
}

impl Found {
    pub(crate) fn readable(&self) -> bool {
        match self.place {
            Place::Worktree | Place::Scratch | Place::ReadDir | Place::Harmless => true,
            Place::Network | Place::Outside => false,
        }
    }

    pub(crate) fn writable(&self) -> bool {
        match self.place {
            Place::Worktree | Place::Scratch | Place::Harmless => !self.git_entry,
            Place::ReadDir | Place::Network | Place::Outside => false,
        }
    }
}

/// An area with its roots resolved once.
pub(crate) struct Places<'a> {
    pub(crate) disk: &'a dyn Disk,
    /// The working directory of the call, resolved.
    pub(crate) root: PathBuf,
    scratch: Vec<PathBuf>,
    read_dirs: Vec<PathBuf>,
    pub(crate) home: PathBuf,
}

impl<'a> Places<'a> {
    pub(crate) fn new(area: &Area, disk: &'a dyn Disk) -> Self {
        // A root that cannot be resolved, is relative or is the whole machine protects nothing: it is left out.
        let real = |path: &PathBuf| {
            resolve(disk, Path::new("/"), path).filter(|(real, _)| path.is_absolute() && real.parent().is_some())
        };
        let all = |paths: &[PathBuf]| paths.iter().filter_map(|path| real(path).map(|(real, _)| real)).collect();
        Self {
            disk,
            root: real(&area.cwd).map_or_else(|| PathBuf::from("/nonexistent"), |(real, _)| real),
            scratch: all(&area.scratch),
            read_dirs: all(&area.read_dirs),
            home: area.home.clone(),
        }
    }

    /// The first scratch directory as given to processes in `TMPDIR`.
    pub(crate) fn scratch(&self) -> Option<&Path> {
        self.scratch.first().map(PathBuf::as_path)
    }

    /// Finds `path` (absolute, or relative to `base`); `None` when it can't be followed (a loop, not readable).
    pub(crate) fn find(&self, base: &Path, path: &Path) -> Option<Found> {
        if let Some(found) = device(&base.join(path)) {
            return Some(found);
        }
        let (real, kind) = resolve(self.disk, base, path)?;
        let place = self.place(&real);
        let git_entry = [real.as_path(), path].iter().any(|path| self.has_git_entry(path));
        let root = real == self.root || self.scratch.contains(&real) || self.read_dirs.contains(&real);
        Some(Found { real, place, kind, git_entry, root })
    }

    /// Like [`find`](Self::find), but the last component is the entry itself, not what a link there leads to:
    /// for programs that move, remove or replace entries.
    pub(crate) fn find_entry(&self, base: &Path, path: &Path) -> Option<Found> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return self.find(base, path);
        };
        let text = path.as_os_str().as_encoded_bytes();
        if text.ends_with(b"/") || text.ends_with(b"/.") || device(&base.join(path)).is_some() {
            return self.find(base, path);
        }
        let mut found = self.find(base, if parent.as_os_str().is_empty() { Path::new(".") } else { parent })?;
        found.real.push(name);
        found.place = self.place(&found.real);
        found.kind = self.disk.kind(&found.real);
        found.git_entry |= is_git_name(name);
        found.root = found.real == self.root || self.scratch.contains(&found.real);
        Some(found)
    }

    fn place(&self, real: &Path) -> Place {
        if real.starts_with(&self.root) {
            Place::Worktree
        } else if self.scratch.iter().any(|root| real.starts_with(root)) {
            Place::Scratch
        } else if self.read_dirs.iter().any(|root| real.starts_with(root)) {
            Place::ReadDir
        } else {
            Place::Outside
        }
    }

    /// Components below the worktree's root count: a worktree may itself lie below a directory of that name.
    fn has_git_entry(&self, path: &Path) -> bool {
        let below = [&self.root].into_iter().chain(&self.scratch).find_map(|root| path.strip_prefix(root).ok());
        below.unwrap_or(path).components().any(|part| match part {
            Component::Normal(name) => is_git_name(name),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => false,
        })
    }

    /// What a whole tree below a resolved directory holds.
    pub(crate) fn survey(&self, top: &Path) -> Survey {
        let mut survey = Survey { complete: true, ..Survey::default() };
        let mut queue = VecDeque::from([top.to_path_buf()]);
        let mut seen = 0_usize;
        while let Some(path) = queue.pop_front() {
            match self.disk.kind(&path) {
                Kind::Directory => {
                    // What lies in a git directory is git's own; that there is one is all that matters.
                    if path != top && path.file_name().is_some_and(is_git_name) {
                        continue;
                    }
                    match self.disk.names(&path, TREE_ENTRIES.saturating_sub(seen)) {
                        Some(names) => {
                            seen = seen.saturating_add(names.len());
                            survey.git_entry |= names.iter().any(|name| is_git_name(name));
                            survey.git_entry |= is_bare(&names);
                            queue.extend(names.into_iter().map(|name| path.join(name)));
                        }
                        None => survey.complete = false,
                    }
                }
                Kind::Link(target) => {
                    let inside = self.find(path.parent().unwrap_or(Path::new("/")), &path);
                    survey.links.push(LinkBelow {
                        leads_out: !inside.is_some_and(|found| found.readable()),
                        climbs: target.is_relative() && target.components().any(|part| part == Component::ParentDir),
                        path,
                    });
                }
                Kind::Absent | Kind::File | Kind::Special => {}
                Kind::Unreadable => survey.complete = false,
            }
        }
        survey
    }
}

/// What [`Places::survey`] saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// A `.git` entry or a bare repository is in the tree.
    pub(crate) git_entry: bool,
    pub(crate) links: Vec<LinkBelow>,
    /// Everything was looked at; otherwise nothing may be concluded from what is missing.
    pub(crate) complete: bool,
}

/// A link in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkBelow {
    pub(crate) path: PathBuf,
    pub(crate) leads_out: bool,
    /// Its target climbs with `..`, so moving it changes where it leads.
    pub(crate) climbs: bool,
}

/// A name that file systems or git take for `.git`: any case, trailing dots and spaces, `git~1`.
pub(crate) fn is_git_name(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let name = name.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    name == ".git"
        || name.strip_prefix("git~").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// The names of a directory look like a repository without a worktree.
pub(crate) fn is_bare(names: &[OsString]) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|part| names.iter().any(|name| name == part))
}

fn device(path: &Path) -> Option<Found> {
    let rest = path.strip_prefix("/dev").ok()?;
    let mut parts = rest.components().map(|part| part.as_os_str().to_str());
    let place = match (parts.next()??, parts.next().flatten(), parts.next()) {
        ("null" | "stdin" | "stdout" | "stderr" | "tty", None, None) => Place::Harmless,
        ("fd", Some(number), None) if number.bytes().all(|byte| byte.is_ascii_digit()) => Place::Harmless,
        ("tcp" | "udp", _, _) => Place::Network,
        _ => return None,
    };
    Some(Found { real: path.to_path_buf(), place, kind: Kind::Special, git_entry: false, root: false })
}

/// Follows a path as the kernel does. Once a component is missing the rest is taken as text: nothing that would
/// turn it into a link runs unasked.
fn resolve(disk: &dyn Disk, base: &Path, path: &Path) -> Option<(PathBuf, Kind)> {
    enum Step {
        Root,
        Up,
        Down(OsString),
    }
    fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> + '_ {
        path.components().filter_map(|part| match part {
            Component::RootDir => Some(Step::Root),
            Component::ParentDir => Some(Step::Up),
            Component::Normal(name) => Some(Step::Down(name.to_os_string())),
            Component::CurDir | Component::Prefix(_) => None,
        })
    }
    let mut todo: VecDeque<Step> = steps(&base.join(path)).collect();
    let (mut links, mut walked) = (0, 0);
    let mut real = PathBuf::from("/");
    let mut kind = Kind::Directory;
    while let Some(step) = todo.pop_front() {
        walked += 1;
        if walked > COMPONENTS {
            return None;
        }
        match step {
            Step::Root => {
                real = PathBuf::from("/");
                kind = Kind::Directory;
            }
            Step::Up => {
                real.pop();
                kind = disk.kind(&real);
            }
            Step::Down(name) => {
                real.push(name);
                kind = if kind == Kind::Absent { Kind::Absent } else { disk.kind(&real) };
                match &kind {
                    Kind::Link(target) => {
                        links += 1;
                        if links > LINKS {
                            return None;
                        }
                        real.pop();
                        for step in steps(target).rev() {
                            todo.push_front(step);
                        }
                        kind = Kind::Directory;
                    }
                    Kind::Unreadable => return None,
                    Kind::Absent | Kind::File | Kind::Directory | Kind::Special => {}
                }
            }
        }
    }
    Some((real, kind))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Role;
    use super::*;

    /// A file system that exists only here: a path with a target is a link, one that ends in a slash a directory.
    struct Sketch(BTreeMap<PathBuf, Kind>);

    impl Sketch {
        fn new(entries: &[&str]) -> Self {
            let mut kinds = BTreeMap::from([(PathBuf::from("/"), Kind::Directory)]);
            for entry in entries {
                let (path, kind) = match entry.split_once(" -> ") {
                    Some((path, target)) => (path, Kind::Link(target.into())),
                    None if entry.ends_with('/') => (entry.trim_end_matches('/'), Kind::Directory),
                    None => (*entry, Kind::File),
                };
                let path = Path::new(path);
                for parent in path.ancestors().skip(1) {
                    kinds.entry(parent.to_path_buf()).or_insert(Kind::Directory);
                }
                kinds.insert(path.to_path_buf(), kind);
            }
            Self(kinds)
        }
    }

    impl Disk for Sketch {
        fn kind(&self, path: &Path) -> Kind {
            self.0.get(path).cloned().unwrap_or(Kind::Absent)
        }

        fn names(&self, directory: &Path, limit: usize) -> Option<Vec<OsString>> {
            let names: Vec<OsString> = self
                .0
                .keys()
                .filter(|path| path.parent() == Some(directory))
                .filter_map(|path| path.file_name().map(OsStr::to_os_string))
                .collect();
            (names.len() <= limit).then_some(names)
        }

        fn text(&self, _file: &Path, _limit: u64) -> Option<String> {
            None
        }
    }

    fn area() -> Area {
        Area {
            role: Role::Worker,
            cwd: "/home/u/wt".into(),
            git_dir: "/home/u/wt/.git".into(),
            scratch: vec!["/tmp/s".into()],
            read_dirs: vec!["/home/u/notes".into()],
            home: "/home/u".into(),
            own_server: "crew".into(),
            lead_read_commands: Vec::new(),
        }
    }

    #[test]
    fn paths_lead_where_the_kernel_leads() {
        let disk = Sketch::new(&[
            "/home/u/wt/src/net/a.rs",
            "/home/u/wt/deep -> src/net",
            "/home/u/wt/out -> /home/u/private",
            "/home/u/private/x",
            "/home/u/wt/round -> round",
            "/home/u/wt/dangling -> /home/u/new",
            "/home/u/wt/up -> ..",
            "/tmp/s/",
            "/home/u/notes/n.md",
            "/home/u/wt2/x",
        ]);
        let area = area();
        let places = Places::new(&area, &disk);
        let place = |path: &str| places.find(&places.root, Path::new(path)).map(|found| found.place);
        for (path, wanted) in [
            ("src/net/a.rs", Place::Worktree),
            ("new/file", Place::Worktree),
            ("deep/a.rs", Place::Worktree),
            ("src/../src/./net", Place::Worktree),
            // `..` after a link goes to the real parent: from src/net to src, not to the root.
            ("deep/../../../x", Place::Outside),
            ("deep/../x", Place::Worktree),
            ("out/x", Place::Outside),
            ("out", Place::Outside),
            ("dangling", Place::Outside),
            ("up", Place::Outside),
            ("up/wt/src", Place::Worktree),
            ("..", Place::Outside),
            ("../wt2/x", Place::Outside),
            ("/tmp/s/a", Place::Scratch),
            ("/tmp/s/../x", Place::Outside),
            ("/home/u/notes/n.md", Place::ReadDir),
            ("/dev/null", Place::Harmless),
            ("/dev/fd/3", Place::Harmless),
            ("/dev/fd/../x", Place::Outside),
            ("/dev/tcp/h/1", Place::Network),
            ("/dev/sda", Place::Outside),
            ("/", Place::Outside),
        ] {
            assert_eq!(place(path), Some(wanted), "{path}");
        }
        assert_eq!(place("round"), None);
        assert_eq!(place("round/x"), None);
    }

    #[test]
    fn git_entries_are_known_by_every_spelling() {
        let disk = Sketch::new(&["/home/u/wt/.git/config", "/home/u/wt/g -> .git", "/tmp/s/"]);
        let area = area();
        let places = Places::new(&area, &disk);
        let git = |path: &str| places.find(&places.root, Path::new(path)).unwrap().git_entry;
        for path in
            [".git", ".git/config", ".GIT/x", "a/.git", ".git./x", ".git /x", "git~1", "GIT~2/x", "g/config", "g"]
        {
            assert!(git(path), "{path}");
        }
        for path in [".gitignore", ".github/x", "git", "git~", "git~x", "a.git", ".gitx"] {
            assert!(!git(path), "{path}");
        }
    }

    #[test]
    fn a_survey_sees_links_and_git_directories() {
        let disk = Sketch::new(&[
            "/home/u/wt/a/b -> /etc",
            "/home/u/wt/a/c -> d",
            "/home/u/wt/a/d",
            "/home/u/wt/e/f/.git/HEAD",
            "/home/u/wt/g/HEAD",
            "/home/u/wt/g/objects/",
            "/home/u/wt/g/refs/",
            "/home/u/wt/h/i -> ../h",
        ]);
        let area = area();
        let places = Places::new(&area, &disk);
        let survey = |path: &str| places.survey(&places.root.join(path));
        assert!(survey("a").links.iter().any(|link| link.leads_out));
        assert!(!survey("a").git_entry);
        assert!(survey("e").git_entry && survey("g").git_entry && survey("").git_entry);
        assert!(survey("h").links.iter().all(|link| link.climbs && !link.leads_out));
        assert!(survey("a").complete);
    }

    /// An area whose root is the whole machine, relative or missing protects nothing, so nothing is in it.
    #[test]
    fn a_root_that_is_no_place_of_its_own_holds_nothing() {
        let disk = Sketch::new(&["/home/u/wt/x"]);
        for cwd in ["/", "relative", "/home/.."] {
            let area = Area { cwd: cwd.into(), scratch: vec!["/".into()], ..area() };
            let places = Places::new(&area, &disk);
            let found = places.find(Path::new("/"), Path::new("/home/u/wt/x")).unwrap();
            assert_eq!(found.place, Place::Outside, "{cwd}");
        }
    }
}
