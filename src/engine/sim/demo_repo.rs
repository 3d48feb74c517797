//! The demo repository *pocket-notes*: a small real program that is tested with a POSIX shell alone.

use std::path::{Path, PathBuf};

use crate::git::safety::foreman_git;

/// One file: path, content, executable, the commit (from 0) it comes with.
struct DemoFile {
    path: &'static str,
    text: &'static str,
    executable: bool,
    commit: usize,
}

const FILES: [DemoFile; 7] = [
    DemoFile { path: ".gitignore", text: include_str!("../../../assets/demo/gitignore"), executable: false, commit: 0 },
    DemoFile {
        path: "lib/store.sh",
        text: include_str!("../../../assets/demo/lib/store.sh"),
        executable: false,
        commit: 0,
    },
    DemoFile {
        path: "lib/format.sh",
        text: include_str!("../../../assets/demo/lib/format.sh"),
        executable: false,
        commit: 1,
    },
    DemoFile { path: "bin/notes", text: include_str!("../../../assets/demo/bin/notes"), executable: true, commit: 1 },
    DemoFile {
        path: "test/run.sh",
        text: include_str!("../../../assets/demo/test/run.sh"),
        executable: true,
        commit: 2,
    },
    DemoFile {
        path: "test/notes_test.sh",
        text: include_str!("../../../assets/demo/test/notes_test.sh"),
        executable: false,
        commit: 2,
    },
    DemoFile { path: "README.md", text: include_str!("../../../assets/demo/README.md"), executable: false, commit: 3 },
];

const COMMITS: [&str; 4] =
    ["Keep notes in one plain file", "Add the notes command", "Test the commands", "Write a README"];

/// What went wrong while the demo repository was made.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error("the demo repository could not be made: {path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("the demo repository could not be made in {dir}: git {command}: {words}")]
    Git { dir: PathBuf, command: String, words: String },
}

/// Makes the demo repository in `dir`, or leaves it as it is when it is there.
///
/// # Errors
/// [`DemoError`]; what was made so far is left for a look.
pub fn create(dir: &Path) -> Result<(), DemoError> {
    if dir.join(".git").exists() && git(dir, &["rev-parse", "--verify", "--quiet", "HEAD"]).is_ok() {
        return Ok(());
    }
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| DemoError::Io { path, source }
    };
    std::fs::create_dir_all(dir).map_err(io(dir))?;
    git(dir, &["init", "--quiet", "--template=", "--initial-branch=main"])?;
    for (key, value) in [("user.name", "Demo Author"), ("user.email", "demo@example.com"), ("commit.gpgsign", "false")]
    {
        git(dir, &["config", key, value])?;
    }
    for (number, subject) in COMMITS.iter().enumerate() {
        for file in FILES.iter().filter(|file| file.commit == number) {
            let path = dir.join(file.path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(io(parent))?;
            }
            std::fs::write(&path, file.text).map_err(io(&path))?;
            if file.executable {
                use std::os::unix::fs::PermissionsExt;
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).map_err(io(&path))?;
            }
        }
        git(dir, &["add", "--all"])?;
        git(dir, &["commit", "--quiet", "--no-verify", "-m", subject])?;
    }
    Ok(())
}

fn git(dir: &Path, args: &[&str]) -> Result<(), DemoError> {
    let failed = |words: String| DemoError::Git { dir: dir.to_owned(), command: args.join(" "), words };
    let output = foreman_git(dir).args(args).output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four commits on main, clean, and its own tests are green.
    #[test]
    fn the_demo_repository_is_real_and_green() {
        let dir = tempfile::tempdir().unwrap();
        create(dir.path()).unwrap();
        create(dir.path()).unwrap();
        let count = foreman_git(dir.path()).args(["rev-list", "--count", "main"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&count.stdout).trim(), "4");
        let status = foreman_git(dir.path()).args(["status", "--porcelain"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&status.stdout), "");
        let tests = std::process::Command::new("sh").arg("test/run.sh").current_dir(dir.path()).output().unwrap();
        let text = String::from_utf8_lossy(&tests.stdout).into_owned();
        assert!(tests.status.success() && text.contains("# pass 10"), "{text}");
    }
}
