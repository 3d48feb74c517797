//! Places at which a test kills the process: before and after each git write. Nothing in release builds.

/// Every failpoint's name.
pub const ALL: &[&str] = &[
    "copy:before-init",
    "copy:after-init",
    "copy:after-config",
    "copy:after-refs",
    "copy:after-checkout",
    "copy:after-branch",
    "collect:before-commit",
    "collect:after-objects",
    "collect:after-ref",
    "collect:after-index",
    "bring:before-pack",
    "bring:after-pack",
    "bring:after-ref",
    "merge:before-record",
    "merge:after-record",
    "merge:after-lock",
    "merge:after-ref",
    "merge:after-files",
    "merge:after-index",
    "abandon:before-remove",
    "abandon:half-removed",
];

/// Kills the process when the environment names this point.
#[inline]
pub(crate) fn hit(name: &str) {
    #[cfg(debug_assertions)]
    {
        debug_assert!(ALL.contains(&name), "{name} is not listed");
        if std::env::var_os("AGENTCRAFT_FAILPOINT").is_some_and(|wanted| wanted == *name) {
            std::process::abort();
        }
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}
