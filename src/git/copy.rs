//! An agent's working copy and its own git directory, handled as files that an enemy may have written.
//!
//! No git runs in here with that directory's configuration. Every open refuses links, also in the middle of a path,
//! and everything that is not a regular file; sizes are bounded.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags};

use super::error::GitError;
use super::manifest::beside;
use super::person::{Person, is_oid, quoted};
use super::{GitHome, HeadAt};

/// Most bytes read of a file with refs.
const REFS_BYTES: u64 = 4 * 1024 * 1024;
/// Most bytes read from the end of a reflog.
const REFLOG_BYTES: u64 = 512 * 1024;
/// Most entries of a reflog looked at, newest first.
const REFLOG_ENTRIES: usize = 200;

/// A working copy whose git directory was found to be as we made it.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub dir: PathBuf,
}

impl Copy {
    /// Looks at everything that git calls over this copy will rely on.
    pub(crate) fn verified(home: &GitHome, person: &Person, dir: &Path) -> Result<Self, GitError> {
        let refuse = |why: &str| GitError::Tampered { dir: dir.to_owned(), why: why.to_owned() };
        if !lies_below(&home.worktrees, dir) {
            return Err(refuse("it does not lie below AgentCraft's own directory"));
        }
        let real = |path: &Path| path.symlink_metadata().ok().filter(std::fs::Metadata::is_dir);
        let Some(tree) = real(dir) else { return Err(refuse("it is gone or no longer a directory")) };
        let git = dir.join(".git");
        match git.symlink_metadata() {
            Err(_) => return Err(refuse("its git directory is gone")),
            Ok(meta) if !meta.is_dir() => return Err(refuse("its .git is not a directory any more")),
            Ok(meta) if meta.uid() != tree.uid() || meta.uid() != rustix::process::geteuid().as_raw() => {
                return Err(refuse("its git directory belongs to someone else"));
            }
            Ok(_) => {}
        }
        for name in ["commondir", "gitdir", "objects/info/http-alternates"] {
            if git.join(name).symlink_metadata().is_ok() {
                return Err(refuse(&format!("its git directory has a file {name} that AgentCraft did not make")));
            }
        }
        for name in ["objects", "objects/info", "refs", "refs/heads"] {
            if real(&git.join(name)).is_none() {
                return Err(refuse(&format!("{name} in its git directory is not a directory of its own")));
            }
        }
        let copy = Self { dir: dir.to_owned() };
        match copy.read("objects/info/alternates", 64 * 1024) {
            Ok(Some(found)) if found == alternates(person) => {}
            _ => return Err(refuse("it no longer borrows the objects of its repository and nothing else")),
        }
        copy.check_objects().map_err(|why| refuse(&why))?;
        copy.head()?;
        Ok(copy)
    }

    /// Its object store.
    pub(crate) fn objects(&self) -> PathBuf {
        self.dir.join(".git/objects")
    }

    /// Where HEAD is.
    pub(crate) fn head(&self) -> Result<HeadAt, GitError> {
        let bytes = self.read("HEAD", 4096)?.ok_or_else(|| self.tampered("its HEAD is gone"))?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end();
        if let Some(name) = text.strip_prefix("ref: ") {
            let branch = name.trim().strip_prefix("refs/heads/").filter(|name| is_ref_path(name));
            return branch
                .map(|branch| HeadAt::Branch(branch.to_owned()))
                .ok_or_else(|| self.tampered("its HEAD points outside its branches"));
        }
        if is_oid(text) {
            return Ok(HeadAt::Detached(text.to_owned()));
        }
        Err(self.tampered("its HEAD cannot be read"))
    }

    /// The object id that a branch of the copy names.
    pub(crate) fn branch(&self, branch: &str) -> Result<Option<String>, GitError> {
        let mut name = format!("refs/heads/{branch}");
        for _ in 0..5 {
            if !name.strip_prefix("refs/").is_some_and(is_ref_path) {
                return Err(self.tampered("a ref points outside its refs"));
            }
            let Some(bytes) = self.read(&name, 4096)? else { return self.packed(&name) };
            let text = String::from_utf8_lossy(&bytes);
            let text = text.trim_end();
            match text.strip_prefix("ref: ") {
                Some(next) => name = next.trim().to_owned(),
                None if is_oid(text) => return Ok(Some(text.to_owned())),
                None => return Err(self.tampered(&format!("its branch {branch} cannot be read"))),
            }
        }
        Err(self.tampered("its refs go round in circles"))
    }

    fn packed(&self, name: &str) -> Result<Option<String>, GitError> {
        let Some(bytes) = self.read("packed-refs", REFS_BYTES)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes);
        let found = text.lines().filter_map(|line| line.split_once(' ')).find(|(_, entry)| *entry == name);
        Ok(found.map(|(oid, _)| oid.to_owned()).filter(|oid| is_oid(oid)))
    }

    /// The commit a merge in the copy waits to record as further parents.
    pub(crate) fn merge_heads(&self) -> Result<Vec<String>, GitError> {
        let bytes = self.read("MERGE_HEAD", 4096)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).lines().filter(|line| is_oid(line)).map(str::to_owned).collect())
    }

    /// Object ids that HEAD or a branch of the copy had lately, newest first, without doubles.
    pub(crate) fn former_heads(&self, branch: &str) -> Vec<String> {
        let mut found = Vec::new();
        for name in ["logs/HEAD".to_owned(), format!("logs/refs/heads/{branch}"), "logs/refs/stash".to_owned()] {
            let Ok(Some(bytes)) = self.read_tail(&name, REFLOG_BYTES) else { continue };
            let text = String::from_utf8_lossy(&bytes);
            for line in text.lines().rev().take(REFLOG_ENTRIES) {
                let mut words = line.split(' ');
                let both = [words.next(), words.next()];
                for oid in both.into_iter().flatten() {
                    if is_oid(oid) && oid.bytes().any(|b| b != b'0') && !found.iter().any(|known| known == oid) {
                        found.push(oid.to_owned());
                    }
                }
            }
        }
        found
    }

    /// Points a branch of the copy at `oid`.
    pub(crate) fn write_branch(&self, branch: &str, oid: &str) -> Result<(), GitError> {
        self.write(&format!("refs/heads/{branch}"), format!("{oid}\n").as_bytes(), None)
    }

    /// Puts HEAD on a branch.
    pub(crate) fn write_head(&self, branch: &str) -> Result<(), GitError> {
        self.write("HEAD", format!("ref: refs/heads/{branch}\n").as_bytes(), None)
    }

    /// Makes `index` the copy's index.
    pub(crate) fn write_index(&self, index: &Path) -> Result<(), GitError> {
        let read = || Ok::<_, std::io::Error>((std::fs::read(index)?, index.metadata()?.modified()?));
        let (bytes, time) = read().map_err(|e| GitError::disk("read", index, &e))?;
        self.write("index", &bytes, Some(time))
    }

    /// Forgets a merge or pick that a commit of ours has ended.
    pub(crate) fn clear_operation(&self) -> Result<(), GitError> {
        let git = self.open_dir(&[])?;
        for name in
            ["MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "SQUASH_MSG", "AUTO_MERGE"]
        {
            let _ = rustix::fs::unlinkat(&git, name, AtFlags::empty());
        }
        Ok(())
    }

    fn tampered(&self, why: &str) -> GitError {
        GitError::Tampered { dir: self.dir.clone(), why: why.to_owned() }
    }

    fn check_objects(&self) -> Result<(), String> {
        let odd = |path: &Path| format!("{} is not what git makes", path.display());
        let objects = self.objects();
        for entry in std::fs::read_dir(&objects).map_err(|e| e.to_string())?.flatten() {
            let meta = entry.path().symlink_metadata().map_err(|e| e.to_string())?;
            let temporary = entry.file_name().as_bytes().starts_with(b"tmp_");
            if !(meta.is_dir() || temporary && meta.is_file()) {
                return Err(odd(&entry.path()));
            }
        }
        if let Ok(packs) = std::fs::read_dir(objects.join("pack")) {
            for entry in packs.flatten() {
                if !entry.path().symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                    return Err(odd(&entry.path()));
                }
            }
        }
        Ok(())
    }

    /// The directory `parts` of the git directory, no link on the way.
    fn open_dir(&self, parts: &[&str]) -> Result<OwnedFd, GitError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let git = self.dir.join(".git");
        let mut fd = rustix::fs::open(&git, flags, Mode::empty()).map_err(|e| self.disk("open", "", e))?;
        for part in parts {
            fd = rustix::fs::openat(&fd, *part, flags, Mode::empty()).map_err(|e| self.disk("open", part, e))?;
        }
        Ok(fd)
    }

    fn disk(&self, action: &'static str, name: &str, errno: rustix::io::Errno) -> GitError {
        GitError::disk(action, self.dir.join(".git").join(name), &errno.into())
    }

    fn open_file(&self, name: &str) -> Result<Option<std::fs::File>, GitError> {
        use rustix::io::Errno;
        let parts: Vec<&str> = name.split('/').collect();
        let Some((file, dirs)) = parts.split_last() else { return Ok(None) };
        let dir_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut fd = self.open_dir(&[])?;
        for part in dirs {
            fd = match rustix::fs::openat(&fd, *part, dir_flags, Mode::empty()) {
                Ok(fd) => fd,
                Err(Errno::NOENT) => return Ok(None),
                // A file where a directory is looked for: another branch's ref.
                Err(Errno::NOTDIR)
                    if rustix::fs::statat(&fd, *part, AtFlags::SYMLINK_NOFOLLOW)
                        .is_ok_and(|s| rustix::fs::FileType::from_raw_mode(s.st_mode).is_file()) =>
                {
                    return Ok(None);
                }
                Err(_) => return Err(self.tampered(&format!("{name} in its git directory goes through a link"))),
            };
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&fd, *file, flags, Mode::empty()) {
            Ok(fd) => std::fs::File::from(fd),
            Err(Errno::NOENT) => return Ok(None),
            Err(_) => return Err(self.tampered(&format!("{name} in its git directory is a link or cannot be read"))),
        };
        match file.metadata() {
            Ok(meta) if meta.is_file() => Ok(Some(file)),
            // refs/heads/a looked up while refs/heads/a/b exists.
            Ok(meta) if meta.is_dir() => Ok(None),
            _ => Err(self.tampered(&format!("{name} in its git directory is not a file"))),
        }
    }

    /// Reads a file of the git directory. None: not there.
    fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, GitError> {
        let Some(file) = self.open_file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes).map_err(|e| GitError::disk("read", self.dir.join(name), &e))?;
        if bytes.len() as u64 > most {
            return Err(self.tampered(&format!("{name} in its git directory is far too large")));
        }
        Ok(Some(bytes))
    }

    /// Reads the last `most` bytes of a file of the git directory.
    fn read_tail(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, GitError> {
        use std::io::{Seek, SeekFrom};
        let Some(mut file) = self.open_file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        let length = file.metadata().map_or(0, |meta| meta.len());
        file.seek(SeekFrom::Start(length.saturating_sub(most)))
            .and_then(|_| file.take(most).read_to_end(&mut bytes))
            .map_err(|e| GitError::disk("read", self.dir.join(name), &e))?;
        Ok(Some(bytes))
    }

    /// Replaces a file of the git directory in one step, making directories on the way.
    fn write(&self, name: &str, bytes: &[u8], time: Option<std::time::SystemTime>) -> Result<(), GitError> {
        let parts: Vec<&str> = name.split('/').collect();
        let Some((file, dirs)) = parts.split_last() else { return Ok(()) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut dir = self.open_dir(&[])?;
        for part in dirs {
            match rustix::fs::mkdirat(&dir, *part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(e) => return Err(self.disk("create", name, e)),
            }
            dir = rustix::fs::openat(&dir, *part, flags, Mode::empty()).map_err(|e| self.disk("open", name, e))?;
        }
        // Not git's lock name: a lock that a killed git of the agent left behind must not stop us.
        let beside = beside(Path::new(file));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&dir, &beside, flags, Mode::from_raw_mode(0o644))
            .map_err(|e| self.disk("write", name, e))?;
        let mut out = std::fs::File::from(fd);
        out.write_all(bytes)
            .and_then(|()| time.map_or(Ok(()), |time| out.set_modified(time)))
            .map_err(|e| GitError::disk("write", self.dir.join(".git").join(name), &e))?;
        rustix::fs::renameat(&dir, &beside, &dir, *file).map_err(|e| self.disk("write", name, e))
    }
}

/// The bytes of `objects/info/alternates` in a copy.
pub(crate) fn alternates(person: &Person) -> Vec<u8> {
    let objects = person.objects();
    // Quoted only where it must be: git alone understands the quotes, other programs read the file too.
    let plain = objects.as_os_str().as_bytes();
    let mut bytes = if plain.contains(&b'\n') { quoted(&objects) } else { plain.to_vec() };
    bytes.push(b'\n');
    bytes
}

/// True when `dir` is a proper place below `root`, with no link between the two.
pub(crate) fn lies_below(root: &Path, dir: &Path) -> bool {
    let Ok(rest) = dir.strip_prefix(root) else { return false };
    let mut at = root.to_owned();
    let mut any = false;
    for part in rest.components() {
        let std::path::Component::Normal(name) = part else { return false };
        any = true;
        at.push(name);
        // The last part is looked at by the caller; it may not be there yet.
        if at != dir && at.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
            return false;
        }
    }
    any
}

/// A relative ref path that stays where it is put.
fn is_ref_path(name: &str) -> bool {
    !name.is_empty()
        && name.split('/').all(|part| !part.is_empty() && part != "." && part != ".." && !part.ends_with(".lock"))
        && !OsStr::new(name).as_bytes().iter().any(|b| b.is_ascii_control())
}
