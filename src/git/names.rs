//! Branch names that are free in every way git could refuse them.

use std::collections::BTreeSet;

use super::error::GitError;
use super::person::Person;

/// Highest number put behind a taken name.
pub(crate) const MOST: u32 = 50;

/// `name`, then `name-2` to `name-50`.
pub(crate) fn candidates(name: &str) -> impl Iterator<Item = String> {
    (1..=MOST).map(move |n| if n == 1 { name.to_owned() } else { format!("{name}-{n}") })
}

/// The branches of a repository as they were at one moment.
pub(crate) struct Branches {
    names: Vec<String>,
    in_use: BTreeSet<String>,
}

/// Whether a new branch can have a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Free {
    Yes,
    /// Another number may do.
    No,
    /// No number helps: this branch stands where a directory is needed.
    Never(String),
}

impl Branches {
    pub(crate) fn of(person: &Person) -> Result<Self, GitError> {
        let text = person.call().args(["for-each-ref", "--format=%(refname)", "refs/heads/"]).text()?;
        let names = text.lines().filter_map(|line| line.strip_prefix("refs/heads/")).map(str::to_owned).collect();
        let in_use = person.checkouts()?.into_iter().filter_map(|checkout| checkout.branch).collect();
        Ok(Self { names, in_use })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// Checked out by the person, so it must not be moved.
    pub(crate) fn is_in_use(&self, name: &str) -> bool {
        self.in_use.contains(name)
    }

    /// Names are compared without case, for disks that keep refs as files without it.
    pub(crate) fn free(&self, name: &str) -> Free {
        let wanted = name.to_lowercase();
        for known in &self.names {
            let lower = known.to_lowercase();
            if wanted.strip_prefix(&lower).is_some_and(|rest| rest.starts_with('/')) {
                return Free::Never(known.clone());
            }
            if wanted == lower || lower.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('/')) {
                return Free::No;
            }
        }
        Free::Yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branches(names: &[&str]) -> Branches {
        Branches { names: names.iter().map(|n| (*n).to_owned()).collect(), in_use: BTreeSet::new() }
    }

    /// Equal names, other case and directories in the way are all taken; a file where a directory is needed never fits.
    #[test]
    fn names_are_taken_in_every_way() {
        let some = branches(&["main", "agentcraft/Kit/t1-a", "agentcraft/kit/t2/x"]);
        assert_eq!(some.free("agentcraft/kit/t1-a"), Free::No);
        assert_eq!(some.free("agentcraft/kit/t2"), Free::No);
        assert_eq!(some.free("agentcraft/kit/t1-a-2"), Free::Yes);
        assert_eq!(branches(&["agentcraft"]).free("agentcraft/kit/t1"), Free::Never("agentcraft".to_owned()));
        assert_eq!(branches(&["AgentCraft/kit"]).free("agentcraft/kit/t1"), Free::Never("AgentCraft/kit".to_owned()));
    }
}
