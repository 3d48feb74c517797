//! What a judgement has found so far, and the verdict that follows from it.
//!
//! Owns the order of verdicts: any denial denies, else any question asks with the keys of all questions, else the
//! call is allowed. Knows no commands. Entry points: [`Findings`].

use std::collections::BTreeSet;

use super::scope::Scope;
use super::{Area, Ask, Role, Verdict};

/// One thing that needs the person's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Why, in plain words, without a full stop.
    pub(crate) reason: String,
    /// What *always* covers; `None` where only the exact call can be covered.
    pub(crate) scope: Option<Scope>,
}

/// Everything found about one call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) denials: Vec<String>,
    pub(crate) questions: Vec<Question>,
    /// What would change something or run project code: nothing to ask of a worker, but not a lead's to do.
    pub(crate) changes: Vec<String>,
}

impl Findings {
    pub(crate) fn deny(&mut self, reason: impl Into<String>) {
        push_new(&mut self.denials, reason.into());
    }

    /// Asks with a key for exactly this call.
    pub(crate) fn ask(&mut self, reason: impl Into<String>) {
        push_new(&mut self.questions, Question { reason: reason.into(), scope: None });
    }

    pub(crate) fn ask_for(&mut self, reason: impl Into<String>, scope: Scope) {
        push_new(&mut self.questions, Question { reason: reason.into(), scope: Some(scope) });
    }

    pub(crate) fn change(&mut self, reason: impl Into<String>) {
        push_new(&mut self.changes, reason.into());
    }

    /// The verdict; `exact` is the scope of the call as it stands.
    pub(crate) fn verdict(&self, area: &Area, exact: &Scope) -> Verdict {
        if let Some(reason) = self.denials.first() {
            return Verdict::Deny(reason.clone());
        }
        let mut reasons: Vec<&str> = self.questions.iter().map(|question| question.reason.as_str()).collect();
        let mut scopes: BTreeSet<Scope> = BTreeSet::new();
        match area.role {
            Role::Worker => {
                scopes.extend(self.questions.iter().map(|question| question.scope.clone().unwrap_or(exact.clone())));
            }
            Role::Lead => {
                reasons.extend(self.changes.iter().map(String::as_str));
                if !reasons.is_empty() {
                    scopes.insert(exact.clone());
                }
            }
        }
        // The exact text covers itself; naming its parts beside it would only claim more.
        if scopes.contains(exact) {
            scopes = BTreeSet::from([exact.clone()]);
        }
        if scopes.is_empty() {
            return Verdict::Allow;
        }
        let covers: Vec<String> = scopes.iter().map(Scope::covers).collect();
        Verdict::Ask(Ask {
            reason: one_line(&reasons),
            keys: scopes.iter().map(|scope| scope.key(area)).collect(),
            covers: covers.join("; and "),
        })
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// At most three reasons on one line; more would hide the first.
fn one_line(reasons: &[&str]) -> String {
    let shown = reasons.iter().take(3).copied().collect::<Vec<_>>().join("; ");
    match reasons.len().saturating_sub(3) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
