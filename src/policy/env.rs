//! Environment variables: which ones hold the git guard, redirect git, or make another program run code.
//!
//! Entry points: [`is_guard`], [`risk`].

/// Variables that hold the git guard: never set, never unset.
const GUARD: [&str; 10] = [
    "GIT_ALLOW_PROTOCOL",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_PROTOCOL_FROM_USER",
    "GIT_CEILING_DIRECTORIES",
    "GIT_CONFIG_KEY_",
    "GIT_CONFIG_VALUE_",
];

/// Git variables that only say who, when and how much is printed.
const HARMLESS_GIT: [&str; 12] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "GIT_MERGE_AUTOEDIT",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
    "GIT_ADVICE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_FLUSH",
];

/// Variables of other programs by which they find or run code, or which change what a command line means.
const RISKY: [&str; 66] = [
    "PATH",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "PROMPT_COMMAND",
    "CDPATH",
    "HOME",
    "PWD",
    "OLDPWD",
    "TMPDIR",
    "SHELL",
    "PAGER",
    "MANPAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "LESS",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "SSH_ASKPASS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "PERLLIB",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "MAVEN_OPTS",
    "GRADLE_OPTS",
    "RUSTC",
    "RUSTDOC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "GOFLAGS",
    "GOENV",
    "GOPROXY",
    "GONOSUMDB",
    "MAKEFLAGS",
    "MAKEFILES",
    "GNUMAKEFLAGS",
    "RIPGREP_CONFIG_PATH",
    "GREP_OPTIONS",
    "GCONV_PATH",
    "LOCPATH",
    "AWKPATH",
    "AWKLIBPATH",
    "LUA_INIT",
    "LUA_PATH",
    "LUA_CPATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "POSIXLY_CORRECT",
    "GLOBIGNORE",
    "EXECIGNORE",
    "HISTFILE",
    "INPUTRC",
    "TERMINFO",
    "CLASSPATH",
    "BASH_ENV",
    "SUDO_ASKPASS",
    "HOSTALIASES",
];

/// Python's variables that change nothing about where code comes from.
const HARMLESS_PYTHON: [&str; 13] = [
    "UNBUFFERED",
    "DONTWRITEBYTECODE",
    "HASHSEED",
    "IOENCODING",
    "UTF8",
    "FAULTHANDLER",
    "OPTIMIZE",
    "VERBOSE",
    "TRACEMALLOC",
    "DEVMODE",
    "ASYNCIODEBUG",
    "NOUSERSITE",
    "SAFEPATH",
];

const PAGERS: [&str; 3] = ["PAGER", "GIT_PAGER", "MANPAGER"];

/// What setting a variable may lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Risk {
    None,
    /// Another program may run code because of it, or find files elsewhere.
    Runs,
    /// Git would work on another repository.
    RedirectsGit,
}

/// Variables that hold the git guard, by any spelling of their number.
pub(crate) fn is_guard(name: &str) -> bool {
    GUARD.iter().any(|guard| match guard.strip_suffix('_') {
        Some(_) => name.starts_with(guard),
        None => name == *guard,
    })
}

/// The risk of setting `name`, to `value` if that is known.
pub(crate) fn risk(name: &str, value: Option<&str>) -> Risk {
    if PAGERS.contains(&name) && matches!(value, Some("" | "cat")) {
        return Risk::None;
    }
    let upper = name.to_ascii_uppercase();
    if let Some(rest) = name.strip_prefix("GIT_") {
        let plain_trace = rest.starts_with("TRACE") && matches!(value, Some("0" | "1" | "2" | "true" | "false"));
        return match rest {
            _ if plain_trace || HARMLESS_GIT.contains(&name) => Risk::None,
            "PAGER" | "EDITOR" | "SEQUENCE_EDITOR" | "SSH" | "SSH_COMMAND" | "ASKPASS" | "EXTERNAL_DIFF"
            | "EXEC_PATH" | "TEMPLATE_DIR" => Risk::Runs,
            _ => Risk::RedirectsGit,
        };
    }
    let prefixed = ["LD_", "DYLD_", "XDG_", "BASH_", "NPM_CONFIG_", "YARN_", "PIP_", "UV_", "BUN_", "DENO_", "MALLOC_"]
        .iter()
        .any(|prefix| upper.starts_with(prefix));
    let cargo = name.starts_with("CARGO_")
        && ["WRAPPER", "RUNNER", "LINKER", "_RUSTC", "_RUSTDOC", "RUSTFLAGS"].iter().any(|end| name.ends_with(end));
    let python = name.strip_prefix("PYTHON").is_some_and(|rest| !rest.is_empty() && !HARMLESS_PYTHON.contains(&rest));
    let flags = matches!(name, "RUSTFLAGS" | "RUSTDOCFLAGS" | "CFLAGS" | "CXXFLAGS" | "LDFLAGS" | "CPPFLAGS")
        && !value.is_some_and(|value| {
            !["linker", "codegen-backend", "link-arg", "-fplugin", "-wrapper", "-B", "@", "specs"]
                .iter()
                .any(|part| value.contains(part))
        });
    if prefixed || cargo || python || flags || RISKY.contains(&name) { Risk::Runs } else { Risk::None }
}

/// Variables whose value is a place that programs write to or read from.
pub(crate) fn names_a_place(name: &str) -> bool {
    ["DIR", "HOME", "ROOT", "PATH", "FILE", "PREFIX", "CACHE", "OUT", "OUTPUT", "TEMP", "TMP", "LOG", "LOGFILE"]
        .iter()
        .any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_is_known_by_any_number() {
        for name in ["GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_17", "GIT_CONFIG_COUNT", "GIT_ALLOW_PROTOCOL"] {
            assert!(is_guard(name), "{name}");
        }
        for name in ["GIT_CONFIG", "GIT_CONFIG_KEY", "GIT_DIR", "git_config_count", "GIT_CONFIG_COUNTER"] {
            assert!(!is_guard(name), "{name}");
        }
    }

    #[test]
    fn variables_that_run_code_are_told_from_harmless_ones() {
        let runs =
            ["PATH", "LD_PRELOAD", "npm_config_script_shell", "CARGO_TARGET_X86_64_LINKER", "PYTHONPATH", "PAGER"];
        for name in runs {
            assert_eq!(risk(name, Some("x")), Risk::Runs, "{name}");
        }
        for name in ["RUST_LOG", "CI", "NODE_ENV", "FOO", "PYTHONUNBUFFERED", "RUST_BACKTRACE", "GIT_AUTHOR_NAME"] {
            assert_eq!(risk(name, Some("1")), Risk::None, "{name}");
        }
        assert_eq!(risk("GIT_DIR", Some("x")), Risk::RedirectsGit);
        assert_eq!(risk("PAGER", Some("cat")), Risk::None);
        assert_eq!(risk("GIT_TRACE", Some("/tmp/x")), Risk::RedirectsGit);
        assert_eq!(risk("RUSTFLAGS", Some("-D warnings")), Risk::None);
        assert_eq!(risk("RUSTFLAGS", Some("-C linker=./x")), Risk::Runs);
    }
}
