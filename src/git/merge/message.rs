//! The merge commit: whose it is, what it says, whether it is signed.

use super::super::error::GitError;
use super::super::person::Person;
use super::super::run::Call;
use super::super::{MergeRequest, MergeStyle};

/// Trailer that names the effect which made the commit.
const TRAILER: &str = "AgentCraft-Merge";

/// Makes the commit object: `tree` on `base`, by the person.
///
/// # Errors
/// Signing was wanted and failed, or git did.
pub(super) fn commit(person: &Person, request: &MergeRequest, base: &str, tree: &str) -> Result<String, GitError> {
    let setting = |name| Call::setting(&person.path, name, None);
    let name = setting("user.name")?.unwrap_or_else(|| "AgentCraft".to_owned());
    let email = setting("user.email")?.unwrap_or_else(|| "user@agentcraft.local".to_owned());
    let mut call = person
        .call()
        .config("i18n.commitEncoding=UTF-8")
        .env("GIT_AUTHOR_NAME", &name)
        .env("GIT_AUTHOR_EMAIL", &email)
        .env("GIT_COMMITTER_NAME", &name)
        .env("GIT_COMMITTER_EMAIL", &email)
        .args(["commit-tree", tree, "-p", base]);
    let text = match request.style {
        MergeStyle::Merge => {
            call = call.args(["-p", &request.head]);
            merge_text(request)
        }
        MergeStyle::Squash => {
            let range = format!("{base}..{}", request.head);
            let authors = person.call().args(["log", "--no-show-signature", "--format=%an <%ae>", &range]).text()?;
            squash_text(request, &authors)
        }
    };
    if request.sign && Call::setting(&person.path, "commit.gpgsign", Some("bool"))?.as_deref() == Some("true") {
        call = call.arg("-S");
    }
    call.args(["-F", "-"]).input(text.replace('\0', "")).text()
}

/// A commit on the base that an earlier life made for this very request.
pub(super) fn find(person: &Person, request: &MergeRequest, base: &str) -> Result<Option<String>, GitError> {
    let format = format!("--format=%H %(trailers:key={TRAILER},valueonly,separator=%x2C)");
    let wanted = format!("--grep={TRAILER}: {}", request.mark);
    let range = ["log", "--no-show-signature", "--fixed-strings", &wanted, &format, base, "--not", &request.head, "--"];
    let said = person.call().args(range).text()?;
    let found = said.lines().filter_map(|line| line.split_once(' ')).find(|(_, mark)| *mark == request.mark);
    Ok(found.map(|(commit, _)| commit.to_owned()))
}

fn approved(request: &MergeRequest) -> String {
    match &request.task {
        Some(task) => format!("{}, {task}", request.decision),
        None => request.decision.to_string(),
    }
}

fn merge_text(request: &MergeRequest) -> String {
    format!(
        "Merge {} into {}\n\n{}\n\nApproved in AgentCraft ({}).\n\n{TRAILER}: {}\n",
        request.worktree.branch,
        request.repo.base,
        request.message.trim(),
        approved(request),
        request.mark
    )
}

fn squash_text(request: &MergeRequest, authors: &str) -> String {
    let mut unique: Vec<&str> = Vec::new();
    for author in authors.lines().rev() {
        if !unique.contains(&author) {
            unique.push(author);
        }
    }
    let with: String = unique.iter().map(|author| format!("Co-authored-by: {author}\n")).collect();
    format!(
        "{}\n\nSquashed from {}, approved in AgentCraft ({}).\n\n{with}{TRAILER}: {}\n",
        request.message.trim(),
        request.worktree.branch,
        approved(request),
        request.mark
    )
}
