//! Places where a test may kill the process: before and after each write of git data.
//!
//! `AGENTCRAFT_FAILPOINT=name` aborts the process when it comes by that name. Only debug builds listen.

/// Every name, in the order an undisturbed run comes by them.
pub const ALL: &[&str] = &[
    "prepare.manifest.before",
    "prepare.manifest.after",
    "prepare.pin.after",
    "prepare.init.after",
    "prepare.checkout.before",
    "prepare.checkout.after",
    "prepare.include.after",
    "prepare.branch.before",
    "prepare.branch.after",
    "prepare.place.before",
    "prepare.place.after",
    "collect.commit.before",
    "collect.commit.after",
    "bring.objects.before",
    "bring.objects.after",
    "bring.refs.before",
    "bring.refs.after",
    "copy.ref.before",
    "copy.ref.after",
    "copy.index.before",
    "copy.index.after",
    "merge.commit.before",
    "merge.commit.after",
    "merge.lock.before",
    "merge.lock.after",
    "merge.record.before",
    "merge.record.after",
    "merge.prepared",
    "merge.files.before",
    "merge.files.after",
    "merge.ref.before",
    "merge.ref.after",
    "merge.index.before",
    "merge.index.after",
    "merge.unlock.after",
    "remove.move.before",
    "remove.move.after",
    "remove.delete.after",
];

/// Aborts when a test asked for `name`.
pub fn hit(name: &str) {
    #[cfg(debug_assertions)]
    {
        debug_assert!(ALL.contains(&name), "failpoint {name} is not listed");
        if std::env::var_os("AGENTCRAFT_FAILPOINT").is_some_and(|wanted| wanted == name) {
            std::process::abort();
        }
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}
