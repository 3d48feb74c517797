//! What is known of git's command line.
//!
//! Owns which words push, sign or undo the git guard ([`is_push`], [`forbidden`]), which repository a call works on
//! (`repository`) and what each subcommand may do (`subcommands`). Entry points: [`subcommand`], [`is_push`],
//! [`forbidden`], [`commands_within`] for the scan; [`judge`](subcommands::judge) for the judge.

pub(crate) mod repository;
pub(crate) mod subcommands;

use super::word::UNKNOWN;

/// Where the subcommand stands among the words after `git`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subcommand {
    /// Only global options.
    None,
    /// Known only at run time.
    Unknown,
    At(usize),
}

/// Global options that take the next word as their value.
const WITH_VALUE: [&str; 8] =
    ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source"];

/// Skips git's global options.
pub(crate) fn subcommand(words: &[String]) -> Subcommand {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if WITH_VALUE.contains(&word.as_str()) {
            at += 2;
        } else if word.starts_with('-') && word.len() > 1 {
            at += 1;
        } else if word.contains(UNKNOWN) {
            return Subcommand::Unknown;
        } else {
            return Subcommand::At(at);
        }
    }
    Subcommand::None
}

/// Whether a subcommand (first word) with its arguments sends something to another repository.
pub(crate) fn is_push(words: &[String]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    match first.as_str() {
        "push" | "send-pack" | "http-push" | "svn" | "p4" => true,
        "lfs" => {
            rest.iter().find(|word| !word.starts_with('-')).is_some_and(|word| word == "push" || word == "pre-push")
        }
        "subtree" => rest.iter().any(|word| word == "push"),
        _ => false,
    }
}

/// Subcommands that can sign, their short options with a value, and their long options with one.
const SIGNING: [(&str, &str, &[&str]); 8] = [
    (
        "commit",
        "mFCct",
        &[
            "message",
            "file",
            "reuse-message",
            "reedit-message",
            "template",
            "author",
            "date",
            "fixup",
            "squash",
            "cleanup",
            "trailer",
            "pathspec-from-file",
        ],
    ),
    ("merge", "mFsX", &["message", "file", "strategy", "strategy-option", "cleanup", "into-name"]),
    ("revert", "mX", &["mainline", "strategy", "strategy-option", "cleanup"]),
    ("cherry-pick", "mX", &["mainline", "strategy", "strategy-option", "cleanup"]),
    ("am", "p", &["directory", "exclude", "include", "patch-format", "whitespace", "resolvemsg"]),
    ("rebase", "xXs", &["onto", "exec", "strategy", "strategy-option"]),
    ("commit-tree", "pmF", &[]),
    ("pull", "sX", &["strategy", "strategy-option", "upload-pack"]),
];

const SIGNS: &str = "agents never sign: leave the signing option out";

/// Why the words after `git` are denied whatever is stored, push aside.
pub(crate) fn forbidden(words: &[String]) -> Option<String> {
    let sub = match subcommand(words) {
        Subcommand::At(at) => at,
        Subcommand::None | Subcommand::Unknown => words.len(),
    };
    let global = words.get(..sub.min(words.len())).unwrap_or(&[]);
    let rest = words.get(sub..).unwrap_or(&[]);
    let mut options = global.iter();
    while let Some(option) = options.next() {
        if option.starts_with("--config-env") {
            return Some("--config-env could undo the git guard".into());
        }
        if option == "-c"
            && let Some(reason) = options.next().and_then(|setting| forbidden_setting(setting))
        {
            return Some(reason);
        }
    }
    let (name, rest) = rest.split_first()?;
    if matches!(name.as_str(), "clone" | "submodule") {
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            let setting = match word.as_str() {
                "-c" | "--config" => words.next().map(String::as_str),
                _ => word.strip_prefix("--config="),
            };
            if let Some(reason) = setting.and_then(forbidden_setting) {
                return Some(reason);
            }
        }
    }
    if name == "tag" {
        return signs(
            rest,
            "mF",
            &["message", "file", "cleanup", "sort", "points-at", "format"],
            &['s', 'u'],
            &["sign", "local-user"],
        )
        .then(|| SIGNS.to_string());
    }
    let (_, short, long) = SIGNING.iter().find(|(sub, _, _)| sub == name)?;
    signs(rest, short, long, &['S'], &["gpg-sign"]).then(|| SIGNS.to_string())
}

/// A `-c key=value` that would undo the guard or sign.
fn forbidden_setting(setting: &str) -> Option<String> {
    let (key, value) = match setting.split_once('=') {
        Some((key, value)) => (key, Some(value.to_ascii_lowercase())),
        None => (setting, None),
    };
    let key = key.to_ascii_lowercase();
    let off = value.as_deref().is_some_and(|value| matches!(value, "false" | "no" | "off" | "0" | ""));
    if ["protocol.", "url.", "remote."].iter().any(|section| key.starts_with(section)) {
        return Some(format!("the setting {key} could undo the git guard"));
    }
    let signs = match key.as_str() {
        "commit.gpgsign" | "tag.gpgsign" | "tag.forcesignannotated" => !off,
        _ => key == "user.signingkey" || key.starts_with("gpg."),
    };
    signs.then(|| format!("agents never sign: leave the setting {key} out"))
}

/// Whether one of the signing options is among the arguments, as git's option parser reads them.
fn signs(args: &[String], with_value: &str, long_with_value: &[&str], short: &[char], long: &[&str]) -> bool {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--" {
            return false;
        }
        if let Some(name) = arg.strip_prefix("--") {
            let (name, glued) = name.split_once('=').map_or((name, false), |(name, _)| (name, true));
            if name.is_empty() {
                continue;
            }
            // An exact name of another option is not an abbreviation of this one.
            if long_with_value.contains(&name) {
                if !glued {
                    args.next();
                }
                continue;
            }
            if long.iter().any(|long| long.starts_with(name)) {
                return true;
            }
            if !glued && long_with_value.iter().filter(|long| long.starts_with(name)).count() == 1 {
                args.next();
            }
        } else if let Some(cluster) = arg.strip_prefix('-') {
            for (at, letter) in cluster.char_indices() {
                if short.contains(&letter) {
                    return true;
                }
                if with_value.contains(letter) {
                    if at + letter.len_utf8() == cluster.len() {
                        args.next();
                    }
                    break;
                }
            }
        }
    }
    false
}

/// Command texts that git would run for the caller, from the words after `git`.
pub(crate) fn commands_within(words: &[String]) -> Vec<String> {
    let mut commands = Vec::new();
    let sub = match subcommand(words) {
        Subcommand::At(at) => at,
        Subcommand::None | Subcommand::Unknown => words.len(),
    };
    for setting in settings(words.get(..sub.min(words.len())).unwrap_or(&[])) {
        let Some((key, value)) = setting.split_once('=') else { continue };
        match value.strip_prefix('!') {
            Some(command) => commands.push(command.to_string()),
            None if key.to_ascii_lowercase().starts_with("alias.") => commands.push(format!("git {value}")),
            None => commands.push(value.to_string()),
        }
    }
    let rest = words.get(sub..).unwrap_or(&[]);
    if let Some((name, rest)) = rest.split_first()
        && matches!(
            name.as_str(),
            "rebase" | "submodule" | "filter-branch" | "difftool" | "mergetool" | "bisect" | "hook"
        )
    {
        for word in rest {
            let value = match word.strip_prefix("--") {
                Some(long) => long.split_once('=').map_or("", |(_, value)| value),
                None => word.strip_prefix("-x").unwrap_or(word),
            };
            if value.contains([' ', '\t', '\n']) {
                commands.push(value.to_string());
            }
        }
    }
    commands
}

/// The values of `-c` among global options.
pub(crate) fn settings(global: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    let mut words = global.iter();
    while let Some(word) = words.next() {
        if word == "-c" {
            found.extend(words.next().map(String::as_str));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_string).collect()
    }

    #[test]
    fn signing_is_seen_in_every_spelling() {
        for text in [
            "commit -S -m x",
            "commit -aS",
            "commit -aSm x",
            "commit --gpg-sign=0xB",
            "commit --gpg",
            "merge --g main",
            "tag -s v1",
            "tag -as v1",
            "tag -u me v1",
            "tag --local-user=me v1",
            "revert -S HEAD",
            "rebase -S main",
            "-c commit.gpgsign=true commit",
            "-c COMMIT.GPGSIGN commit",
            "-c user.signingkey=A commit",
            "-c gpg.program=x log",
            "cherry-pick -xS HEAD",
            "commit -m x --no-gpg-sign -S",
        ] {
            assert!(forbidden(&words(text)).is_some(), "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_signing_is_not() {
        for text in [
            "commit -m -S",
            "commit -amS",
            "commit --no-gpg-sign -m x",
            "log -S text",
            "tag -m -s v1",
            "commit -- -S",
            "-c commit.gpgsign=false commit",
            "commit --message -S",
            "merge -s ours main",
            "tag -a v1 -m x",
            "tag -l",
        ] {
            assert_eq!(forbidden(&words(text)), None, "{text}");
        }
    }
}
