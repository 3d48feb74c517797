//! The one way in which a base branch moves: an approved merge of exactly the reviewed commit.
//!
//! The merge commit is made off-tree and recorded under `refs/agentcraft/merge/<mark>` before anything else is
//! written. Then, under the checkout's index lock: the base branch moves by compare-and-swap, the files and the index
//! follow. A kill in between leaves the record; asked again with the same mark, the merge is completed, or known to be
//! done, or refused when the person undid it. Hooks never run.

use super::checkout::{self, IndexLock};
use super::error::GitError;
use super::failpoint::hit;
use super::repo::{self, Checkout};
use super::run::{git, nul_fields};
use super::shadow::Shadow;
use super::{GitHome, Identity, MergeRequest, MergeResult, Style};

/// What came of one try to move the base.
enum Move {
    Done,
    /// Somebody else moved the base meanwhile.
    Lost,
    Refused(String),
}

/// Merges, or says why not. A refusal changed nothing but refs below `refs/agentcraft/`.
///
/// # Errors
/// Only when git itself could not be run; nothing was changed then either.
pub fn merge(home: &GitHome, request: &MergeRequest) -> Result<MergeResult, GitError> {
    let repo = &request.repo.path;
    if !repo.is_dir() {
        return Ok(MergeResult::Refused { reason: format!("{} is gone", repo.display()) });
    }
    let merge = Merge { home, request, record: format!("refs/agentcraft/merge/{}", request.mark) };
    if let Some(commit) = merge.recorded()?
        && let Some(result) = merge.take_up(&commit)?
    {
        return Ok(result);
    }
    // A lost race is run once more on the new base.
    for _ in 0..2 {
        let Some(base) = repo::branch_head(repo, &request.repo.base)? else {
            return Ok(MergeResult::Refused {
                reason: format!("branch {} does not exist any more", request.repo.base),
            });
        };
        let commit = match merge.build(&base)? {
            Ok(commit) => commit,
            Err(result) => return Ok(result),
        };
        match merge.apply(&base, &commit)? {
            Move::Done => return merge.done(&base, &commit),
            Move::Lost => {}
            Move::Refused(reason) => {
                merge.forget()?;
                return Ok(MergeResult::Refused { reason });
            }
        }
    }
    merge.forget()?;
    Ok(MergeResult::Refused { reason: format!("{} moved while it was merged, twice: answer again", request.repo.base) })
}

struct Merge<'a> {
    home: &'a GitHome,
    request: &'a MergeRequest,
    record: String,
}

impl Merge<'_> {
    fn repo(&self) -> &std::path::Path {
        &self.request.repo.path
    }

    fn base_ref(&self) -> String {
        format!("refs/heads/{}", self.request.repo.base)
    }

    fn recorded(&self) -> Result<Option<String>, GitError> {
        git(self.repo()).args(["rev-parse", "--verify", "--quiet", "--end-of-options"]).arg(&self.record).maybe()
    }

    fn forget(&self) -> Result<(), GitError> {
        git(self.repo()).args(["update-ref", "-d", &self.record]).run().map(|_| ())
    }

    fn is_ancestor(&self, old: &str, new: &str) -> Result<bool, GitError> {
        Ok(git(self.repo()).args(["merge-base", "--is-ancestor", old, new]).output()?.code == 0)
    }

    /// A merge of this mark was begun before. `None`: it has to be built anew.
    fn take_up(&self, commit: &str) -> Result<Option<MergeResult>, GitError> {
        let old =
            git(self.repo()).args(["rev-parse", "--verify", "--end-of-options"]).arg(format!("{commit}^1")).line()?;
        let now = repo::branch_head(self.repo(), &self.request.repo.base)?;
        let Some(now) = now else { return Ok(None) };
        if now == commit || self.is_ancestor(commit, &now)? {
            self.complete_checkout(&old, commit, &now)?;
            return self.done(&old, commit).map(Some);
        }
        if self.was_on_base(commit)? {
            self.forget()?;
            return Ok(Some(MergeResult::Refused {
                reason: format!(
                    "it was merged and then taken off {} again: answer again if it shall go in",
                    self.request.repo.base
                ),
            }));
        }
        if now == old {
            return Ok(Some(match self.apply(&old, commit)? {
                Move::Done => self.done(&old, commit)?,
                Move::Lost => return Ok(None),
                Move::Refused(reason) => {
                    self.forget()?;
                    MergeResult::Refused { reason }
                }
            }));
        }
        Ok(None)
    }

    /// The base's reflog knows the commit: it was there once.
    fn was_on_base(&self, commit: &str) -> Result<bool, GitError> {
        let log = git(self.repo()).args(["reflog", "show", "--format=%H"]).arg(self.base_ref()).arg("--").output()?;
        Ok(log.code == 0 && String::from_utf8_lossy(&log.stdout).lines().any(|line| line == commit))
    }

    /// The base moved, but files or index may not have followed before a kill.
    fn complete_checkout(&self, old: &str, commit: &str, now: &str) -> Result<(), GitError> {
        let Some(checkout) = repo::checkout_of(self.repo(), &self.request.repo.base)? else { return Ok(()) };
        let place = self.place()?;
        let note = place.join("lock");
        if now != commit || !note.exists() {
            // The person went on from there, or the lock was released after everything was done.
            IndexLock::drop_own_leftover(&checkout.git_dir.join("index.lock"), &note);
            return Ok(());
        }
        match IndexLock::take(&checkout, &note)? {
            Some(lock) => checkout::complete(&checkout, lock, old, commit, &place),
            None => Err(GitError::Failed {
                command: "merge".to_owned(),
                dir: checkout.path,
                stderr: "the index is locked by another git".to_owned(),
            }),
        }
    }

    fn place(&self) -> Result<std::path::PathBuf, GitError> {
        Shadow::open(self.home, &self.request.repo)?.place(&format!("merge-{}", self.request.mark))
    }

    fn done(&self, old: &str, commit: &str) -> Result<MergeResult, GitError> {
        let names = git(self.repo())
            .args(["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--end-of-options", old, commit])
            .run()?;
        let files = u32::try_from(nul_fields(&names).count()).unwrap_or(u32::MAX);
        Ok(MergeResult::Merged { commit: commit.to_owned(), files })
    }

    /// Makes the merge commit and records it; nothing else is written.
    fn build(&self, base: &str) -> Result<Result<String, MergeResult>, GitError> {
        let head = &self.request.head;
        let known = git(self.repo()).args(["cat-file", "-e"]).arg(format!("{head}^{{commit}}")).output()?;
        if known.code != 0 {
            return Ok(Err(MergeResult::Refused {
                reason: format!("the reviewed commit {head} is not in the repository any more"),
            }));
        }
        if self.is_ancestor(head, base)? {
            return Ok(Err(MergeResult::Empty));
        }
        let merged = git(self.repo())
            .args(["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", "--end-of-options"])
            .args([base, head.as_str()])
            .output()?;
        let mut fields = nul_fields(&merged.stdout);
        let tree = fields.next().map(|id| String::from_utf8_lossy(id).into_owned()).unwrap_or_default();
        match merged.code {
            0 => {}
            1 => {
                let files = fields.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
                return Ok(Err(MergeResult::Conflict { files }));
            }
            _ => return Ok(Err(MergeResult::Refused { reason: format!("git could not merge: {}", merged.stderr) })),
        }
        let base_tree =
            git(self.repo()).args(["rev-parse", "--end-of-options"]).arg(format!("{base}^{{tree}}")).line()?;
        if tree == base_tree && self.request.style == Style::Squash {
            return Ok(Err(MergeResult::Empty));
        }
        let person = self.person()?;
        let mut call = Shadow::signed_by(git(self.repo()), &person).args(["commit-tree", &tree, "-p", base]);
        if self.request.style == Style::Merge {
            call = call.args(["-p", head]);
        }
        if self.request.sign
            && git(self.repo()).args(["config", "--type=bool", "--get", "commit.gpgsign"]).maybe()?.is_some()
            && self.person_signs()?
        {
            call = call.arg("-S");
        }
        let commit = call.args(["-F", "-"]).stdin(self.message(base)?).output()?;
        if commit.code != 0 {
            return Ok(Err(MergeResult::Refused {
                reason: format!("the merge commit could not be made: {}", commit.stderr),
            }));
        }
        let commit = String::from_utf8_lossy(&commit.stdout).trim().to_owned();
        hit("merge:before-record");
        git(self.repo()).args(["update-ref", "--no-deref", &self.record, &commit]).run()?;
        hit("merge:after-record");
        Ok(Ok(commit))
    }

    /// `commit.gpgsign` as the person set it, without our own override.
    fn person_signs(&self) -> Result<bool, GitError> {
        let all =
            git(self.repo()).args(["config", "--type=bool", "--show-scope", "--get-all", "commit.gpgsign"]).run()?;
        Ok(String::from_utf8_lossy(&all)
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .rfind(|(scope, _)| *scope != "command")
            .is_some_and(|(_, value)| value == "true"))
    }

    /// The person, as their git knows them in this repository.
    fn person(&self) -> Result<Identity, GitError> {
        let get = |key: &str| git(self.repo()).args(["config", "--get", key]).maybe();
        Ok(match (get("user.name")?, get("user.email")?) {
            (Some(name), Some(email)) if !name.is_empty() && !email.is_empty() => Identity { name, email },
            _ => Identity { name: "AgentCraft".to_owned(), email: "user@agentcraft.local".to_owned() },
        })
    }

    fn message(&self, base: &str) -> Result<String, GitError> {
        let request = self.request;
        let trailer = format!("AgentCraft-Merge: {}", request.mark);
        if request.style == Style::Merge {
            return Ok(format!(
                "Merge {} into {}\n\n{}\n\n{}\n\n{trailer}\n",
                request.branch, request.repo.base, request.message, request.approved
            ));
        }
        let authors = git(self.repo())
            .args(["log", "--format=%an <%ae>", "--end-of-options"])
            .arg(format!("{base}..{}", request.head))
            .run()?;
        let mut seen: Vec<String> = Vec::new();
        for author in String::from_utf8_lossy(&authors).lines() {
            if !seen.iter().any(|known| known == author) {
                seen.push(author.to_owned());
            }
        }
        let authors: String = seen.iter().map(|author| format!("Co-authored-by: {author}\n")).collect();
        Ok(format!(
            "{}\n\nSquashed from {}. {}\n\n{authors}{trailer}\n",
            request.message, request.branch, request.approved
        ))
    }

    /// Moves the base branch, then the checkout that has it.
    fn apply(&self, base: &str, commit: &str) -> Result<Move, GitError> {
        if repo::being_rebased(self.repo(), &self.request.repo.base)? {
            return Ok(Move::Refused(format!(
                "a rebase of {} is in progress: finish or abort it, then answer again",
                self.request.repo.base
            )));
        }
        let Some(checkout) = repo::checkout_of(self.repo(), &self.request.repo.base)? else {
            return self.swap(base, commit);
        };
        let place = self.place()?;
        let Some(lock) = IndexLock::take(&checkout, &place.join("lock"))? else {
            return Ok(Move::Refused(format!(
                "the index of {} is locked by another git (remove {} if none runs), then answer again",
                checkout.path.display(),
                checkout.git_dir.join("index.lock").display()
            )));
        };
        hit("merge:after-lock");
        if let Some(reason) = checkout::refusal(&checkout, base, commit, &place)? {
            return Ok(Move::Refused(reason));
        }
        match self.swap(base, commit)? {
            Move::Done => {}
            other => return Ok(other),
        }
        hit("merge:after-ref");
        match checkout::advance(&checkout, lock, base, commit, &place) {
            Ok(()) => Ok(Move::Done),
            Err(error) => {
                self.roll_back(&checkout, base, commit, &place)?;
                Ok(Move::Refused(format!("the checkout could not be updated, nothing was merged: {error}")))
            }
        }
    }

    /// Takes back a move whose checkout could not follow.
    fn roll_back(
        &self,
        checkout: &Checkout,
        base: &str,
        commit: &str,
        place: &std::path::Path,
    ) -> Result<(), GitError> {
        self.swap(commit, base)?;
        if let Some(lock) = IndexLock::take(checkout, &place.join("lock"))? {
            checkout::complete(checkout, lock, commit, base, place)?;
        }
        Ok(())
    }

    /// Compare-and-swap of the base branch.
    fn swap(&self, from: &str, to: &str) -> Result<Move, GitError> {
        let moved = git(self.repo())
            .args(["update-ref", "-m"])
            .arg(format!("agentcraft: merge {}", self.request.branch))
            .arg(self.base_ref())
            .args([to, from])
            .output()?;
        if moved.code == 0 {
            return Ok(Move::Done);
        }
        let now = repo::branch_head(self.repo(), &self.request.repo.base)?;
        if now.as_deref() == Some(from) {
            return Ok(Move::Refused(format!("{} could not be moved: {}", self.request.repo.base, moved.stderr)));
        }
        Ok(Move::Lost)
    }
}
