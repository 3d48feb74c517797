//! Bringing an agent's commits over into the person's repository.
//!
//! Objects leave a copy as a pack that the person's git checks as strictly as `transfer.fsckObjects` would; refs move
//! by compare-and-swap, only in `refs/heads/agentcraft/` and `refs/agentcraft/`.

use std::collections::BTreeSet;
use std::fs::File;

use super::GitHome;
use super::error::GitError;
use super::failpoint::hit;
use super::include::Protected;
use super::lens::Lens;
use super::person::{Person, short, text};

/// Fewer objects than this are stored one by one, so that many small bring-overs do not pile up packs (git's own
/// limit for what it fetches).
const LOOSE_OBJECTS: usize = 100;

/// What to bring.
pub(crate) struct Load<'a> {
    /// Short name, `agentcraft/...`; none when only pins are wanted (a lead's copy).
    pub branch: Option<&'a str>,
    /// The branch's new head.
    pub tip: Option<&'a str>,
    /// Moves the branch only from this head; any other, and nothing is done.
    pub from: Option<&'a str>,
    /// Commits to keep from pruning besides.
    pub pins: Vec<String>,
    /// Commits that the person's repository has already.
    pub known: Vec<String>,
    /// Files that no commit may contain.
    pub protected: Option<&'a Protected>,
}

/// The hidden ref that pins `oid` for the worktree called `name`.
fn pin_ref(home: &GitHome, name: &str, oid: &str) -> String {
    format!("refs/agentcraft/keep/{}/{}/{oid}", ref_part(&home.profile), ref_part(name))
}

/// Any text as one part of a ref name.
pub(crate) fn ref_part(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    if clean.is_empty() { "_".to_owned() } else { clean }
}

/// Keeps commits of the person's repository from being pruned while a copy borrows them.
pub(crate) fn pin(home: &GitHome, person: &Person, name: &str, oids: &[&str]) -> Result<(), GitError> {
    let mut input = Vec::new();
    // git refuses the same ref twice in one transaction.
    for oid in oids.iter().collect::<BTreeSet<_>>() {
        input.extend(format!("update {}\0{oid}\0\0", pin_ref(home, name, oid)).into_bytes());
    }
    person.call().args(["update-ref", "-z", "--stdin"]).input(input).bytes().map(drop)
}

/// Brings objects and refs over. Nothing is written when all is there already.
pub(crate) fn bring_over(
    home: &GitHome,
    person: &Person,
    lens: &Lens,
    name: &str,
    load: &Load<'_>,
) -> Result<(), GitError> {
    let old = match load.branch {
        Some(branch) => person.branch_head(branch)?,
        None => None,
    };
    let moved = load.tip.is_some() && old.as_deref() != load.tip;
    if load.from.is_some() && load.from != old.as_deref() || !moved && load.pins.is_empty() {
        return Ok(());
    }
    if let Some(branch) = load.branch.filter(|_| moved) {
        if !branch.starts_with("agentcraft/") {
            return Err(GitError::Other(format!("{branch} is not a branch of AgentCraft's; it is not moved")));
        }
        if let Some(checkout) = person.checkouts_of(branch)?.into_iter().next() {
            return Err(GitError::BranchInUse { branch: branch.to_owned(), at: checkout.path });
        }
    }
    let mut known: BTreeSet<String> = load.known.iter().cloned().collect();
    known.extend(old.clone());
    let mut range = String::new();
    for tip in load.tip.iter().copied().chain(load.pins.iter().map(String::as_str)) {
        range.push_str(&format!("{tip}\n"));
    }
    for oid in &known {
        range.push_str(&format!("^{oid}\n"));
    }
    let objects = lens.call().args(["rev-list", "--objects", "--stdin"]).cap(256 << 20).input(range.clone()).bytes()?;
    let count = objects.split(|b| *b == b'\n').filter(|line| !line.is_empty()).count();
    if let Some(protected) = load.protected {
        check_secrets(lens, protected, load, &objects, &range)?;
    }
    hit("bring.objects.before");
    if count > 0 {
        let prefix = lens.dir().join("out");
        let packed = lens.call().args(["pack-objects", "-q"]).arg(&prefix).input(objects).text()?;
        let file = lens.dir().join(format!("out-{}.pack", packed.trim()));
        let pack = File::open(&file).map_err(|e| GitError::disk("open", &file, &e))?;
        let store: &[&str] = if count < LOOSE_OBJECTS {
            &["unpack-objects", "-q", "--strict"]
        } else {
            &["index-pack", "--strict", "--stdin"]
        };
        person.call().args(store).input_file(pack).bytes()?;
        // All that the new heads need must be in the person's own store, whatever the pack promised.
        person.call().args(["rev-list", "--objects", "--quiet", "--stdin"]).input(range).bytes()?;
    }
    hit("bring.objects.after");

    let mut refs = Vec::new();
    let mut pins: BTreeSet<&str> = load.pins.iter().map(String::as_str).collect();
    if let (Some(branch), Some(tip)) = (load.branch.filter(|_| moved), load.tip) {
        let none = "0".repeat(tip.len());
        let before = old.as_deref().unwrap_or(&none);
        refs.extend(format!("update refs/heads/{branch}\0{tip}\0{before}\0").into_bytes());
        if let Some(old) = old.as_deref()
            && !person.is_ancestor(old, tip)?
        {
            pins.insert(old);
        }
    }
    for oid in pins {
        refs.extend(format!("update {}\0{oid}\0\0", pin_ref(home, name, oid)).into_bytes());
    }
    hit("bring.refs.before");
    person
        .call()
        .args(["update-ref", "--create-reflog", "-m", "agentcraft: brought over", "-z", "--stdin"])
        .input(refs)
        .bytes()?;
    hit("bring.refs.after");
    Ok(())
}

/// No new object may hold a file that was copied from the person's checkout, under its own name or another.
fn check_secrets(
    lens: &Lens,
    protected: &Protected,
    load: &Load<'_>,
    objects: &[u8],
    range: &str,
) -> Result<(), GitError> {
    let mut hits: Vec<Vec<u8>> = Vec::new();
    for line in objects.split(|b| *b == b'\n') {
        let mut parts = line.splitn(2, |b| *b == b' ');
        let (Some(oid), Some(path)) = (parts.next(), parts.next()) else { continue };
        if protected.is_secret_content(&text(oid)) || protected.is_secret_path(path) {
            hits.push(path.to_vec());
        }
    }
    let Some(path) = hits.into_iter().next() else { return Ok(()) };
    let file = text(&path);
    let found = lens
        .call()
        .args(["rev-list", "--stdin"])
        .input(format!("{range}--\n{file}\n"))
        .text()
        .ok()
        .and_then(|list| list.lines().last().map(str::to_owned));
    Err(GitError::Secret {
        commit: found.as_deref().or(load.tip).map(short).unwrap_or_default().to_owned(),
        branch: load.branch.unwrap_or("the worktree").to_owned(),
        file,
    })
}
