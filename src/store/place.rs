//! Where the database may lie: a directory of the person alone, on a local disk.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::error::StoreError;

/// Makes a directory (and its parents) for the person alone, or narrows one that is there already. Refuses what
/// belongs to another user.
pub(crate) fn private_directory(dir: &Path) -> Result<(), StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    if let Err(error) = made {
        return Err(StoreError::io(dir, "making the directory", error));
    }
    let about = fs::metadata(dir).map_err(|error| StoreError::io(dir, "looking at the directory", error))?;
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(StoreError::OtherOwner { path: dir.to_owned() });
    }
    if about.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(dir, Permissions::from_mode(0o700))
            .map_err(|error| StoreError::io(dir, "narrowing its permissions", error))?;
    }
    Ok(())
}

/// Makes an empty file for the person alone, which must not be there yet.
pub(crate) fn private_file(path: &Path) -> Result<fs::File, StoreError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| StoreError::io(path, "making the file", error))
}

/// Takes the permissions of group and others off a file that is there; none: nothing to do.
pub(crate) fn narrow_file(path: &Path) -> Result<(), StoreError> {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io(path, "looking at the file", error)),
    };
    if about.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(0o600))
        .map_err(|error| StoreError::io(path, "narrowing its permissions", error))
}

/// Makes a rename or a new file in `dir` last over a power cut.
pub(crate) fn sync_directory(dir: &Path) -> Result<(), StoreError> {
    fs::File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|error| StoreError::io(dir, "writing the directory to disk", error))
}

/// Refuses a directory on a network file system.
pub(crate) fn local_disk(dir: &Path) -> Result<(), StoreError> {
    match network_kind(dir) {
        Some(kind) => Err(StoreError::Network { path: dir.to_owned(), kind }),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn network_kind(dir: &Path) -> Option<String> {
    // A file system that cannot be asked is judged by whether the write-ahead log can be switched on.
    #[allow(clippy::useless_conversion, reason = "the field's type differs by platform")]
    let magic = i64::from(rustix::fs::statfs(dir).ok()?.f_type) & 0xffff_ffff;
    if let Some(name) = network_magic(magic) {
        return Some(name.to_owned());
    }
    if magic != FUSE {
        return None;
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let at = fs::canonicalize(dir).ok()?;
    mount_type(&mounts, &at).filter(|kind| !LOCAL_FUSE.contains(&kind.as_str()))
}

#[cfg(not(target_os = "linux"))]
fn network_kind(_dir: &Path) -> Option<String> {
    None
}

/// `FUSE_SUPER_MAGIC` of linux/magic.h, also virtiofs.
#[cfg(target_os = "linux")]
const FUSE: i64 = 0x6573_5546;

/// User-space file systems over a local disk, as in containers and virtual machines.
#[cfg(target_os = "linux")]
const LOCAL_FUSE: [&str; 6] =
    ["fuse.fuse-overlayfs", "virtiofs", "fuseblk", "fuse.gocryptfs", "fuse.encfs", "fuse.bindfs"];

/// Magic numbers of statfs(2) that stand for network file systems.
#[cfg(target_os = "linux")]
fn network_magic(magic: i64) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "nfs",
        0x517b => "smb",
        0xff53_4d42 => "cifs",
        0xfe53_4d42 => "smb2",
        0x5346_414f => "afs",
        0x7375_7245 => "coda",
        0x00c3_6400 => "ceph",
        0x0102_1997 => "9p",
        0x0bd0_0bd0 => "lustre",
        0x4750_4653 => "gpfs",
        _ => return None,
    })
}

/// File system type of the mount that `at` lies on: the longest mount point that holds it, the last one of equals.
#[cfg(target_os = "linux")]
fn mount_type(mountinfo: &str, at: &Path) -> Option<String> {
    let mut best: Option<(usize, String)> = None;
    for line in mountinfo.lines() {
        // proc(5): the fifth field is the mount point, the type follows the separator "-".
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let (Some(point), Some(kind)) = (left.split(' ').nth(4), right.split(' ').next()) else { continue };
        let point = point.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
        if at.starts_with(&point) && best.as_ref().is_none_or(|(length, _)| *length <= point.len()) {
            best = Some((point.len(), kind.to_owned()));
        }
    }
    best.map(|(_, kind)| kind)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        assert_eq!(network_magic(0x6969), Some("nfs"));
        assert_eq!(network_magic(0xff53_4d42), Some("cifs"));
        assert_eq!(network_magic(0xef53), None, "ext4 is a local disk");
    }

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                      30 22 0:50 / /home/me/far\\040away rw,nosuid shared:1 - fuse.sshfs me@there: rw\n";
        assert_eq!(mount_type(mounts, Path::new("/home/me/far away/x")).as_deref(), Some("fuse.sshfs"));
        assert_eq!(mount_type(mounts, Path::new("/home/me/near")).as_deref(), Some("ext4"));
    }

    #[test]
    fn a_wide_open_directory_is_narrowed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/b");
        fs::create_dir_all(&dir).unwrap();
        fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        private_directory(&dir).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
