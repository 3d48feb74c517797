//! The state of a diff on screen: what was asked, what came, where one is in it.
//!
//! The rows are laid out once, when the diff arrives, so that a frame touches only the rows in view.

use std::collections::{BTreeMap, BTreeSet};

use super::highlight::{HighlightJob, Highlighted, LineColours};
use super::theme::ThemeName;
use crate::protocol::{
    DecisionId, Diff, DiffFile, DiffLine, DiffLineKind, DiffRequest, RepoId, WorktreeId,
};

/// One row of the diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    File(usize),
    /// A line instead of hunks: binary, cut, renamed only.
    Note(usize),
    Hunk(usize, usize),
    Line(usize, usize, usize),
    Gap,
}

/// What there is to show.
#[derive(Clone, Debug, PartialEq)]
pub enum DiffState {
    Loading,
    Ready(Box<Diff>),
    Failed(String),
}

/// Which half has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffSide {
    Files,
    Lines,
}

/// A diff on screen.
#[derive(Clone, Debug)]
pub struct DiffUi {
    pub repo: RepoId,
    pub worktree: WorktreeId,
    /// The decision that it was opened from.
    pub decision: Option<DecisionId>,
    pub state: DiffState,
    pub side: DiffSide,
    /// The first row in view.
    pub top: usize,
    /// Columns that the lines are shifted to the left by.
    pub shift: usize,
    rows: Vec<Row>,
    starts: Vec<usize>,
    waiting: Option<String>,
    /// A file that is fetched whole: request and path.
    fetching: Option<(String, String)>,
    colours: BTreeMap<usize, Vec<Vec<LineColours>>>,
    asked: BTreeSet<usize>,
}

impl DiffUi {
    /// A diff that is about to be asked for.
    pub fn new(repo: RepoId, worktree: WorktreeId, decision: Option<DecisionId>) -> Self {
        Self {
            repo,
            worktree,
            decision,
            state: DiffState::Loading,
            side: DiffSide::Lines,
            top: 0,
            shift: 0,
            rows: Vec::new(),
            starts: Vec::new(),
            waiting: None,
            fetching: None,
            colours: BTreeMap::new(),
            asked: BTreeSet::new(),
        }
    }

    /// The request for the whole diff, or for one file whole. Its id is set when it is sent.
    pub fn request(&self, path: Option<String>) -> DiffRequest {
        DiffRequest {
            request_id: String::new(),
            repo_id: self.repo.clone(),
            worktree: self.worktree.clone(),
            path,
        }
    }

    /// Notes that a request went out.
    pub fn sent(&mut self, request: &DiffRequest) {
        match &request.path {
            None => self.waiting = Some(request.request_id.clone()),
            Some(path) => self.fetching = Some((request.request_id.clone(), path.clone())),
        }
    }

    /// Whether the whole diff has not come yet.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.state, DiffState::Loading)
    }

    /// The path that is being fetched whole.
    pub fn fetching(&self) -> Option<&str> {
        self.fetching.as_ref().map(|(_, path)| path.as_str())
    }

    /// Whether an answer to this request is for this diff.
    pub fn awaits(&self, request: &str) -> bool {
        self.waiting.as_deref() == Some(request) || self.fetching.as_ref().is_some_and(|(id, _)| id == request)
    }

    /// Takes an answer in: the whole, or one file in place of its cut self.
    pub fn arrived(&mut self, diff: Diff) {
        if self.fetching.as_ref().is_some_and(|(id, _)| *id == diff.request_id) {
            self.fetching = None;
            if let Some(why) = diff.error {
                self.note_failure(why);
                return;
            }
            if let (DiffState::Ready(held), Some(file)) = (&mut self.state, diff.files.into_iter().next())
                && let Some(at) = held.files.iter().position(|f| f.path == file.path)
                && let Some(slot) = held.files.get_mut(at)
            {
                *slot = file;
                self.colours.remove(&at);
                self.asked.remove(&at);
            }
        } else {
            self.waiting = None;
            self.state = match &diff.error {
                Some(why) => DiffState::Failed(why.clone()),
                None => DiffState::Ready(Box::new(diff)),
            };
            self.colours.clear();
            self.asked.clear();
            self.top = 0;
        }
        self.lay_out();
    }

    fn note_failure(&mut self, why: String) {
        if self.rows.is_empty() {
            self.state = DiffState::Failed(why);
        }
    }

    /// The request was refused.
    pub fn fail(&mut self, why: String) {
        self.waiting = None;
        self.fetching = None;
        self.note_failure(why);
    }

    fn lay_out(&mut self) {
        self.rows.clear();
        self.starts.clear();
        let DiffState::Ready(diff) = &self.state else { return };
        for (at, file) in diff.files.iter().enumerate() {
            if at > 0 {
                self.rows.push(Row::Gap);
            }
            self.starts.push(self.rows.len());
            self.rows.push(Row::File(at));
            for (nth, hunk) in file.hunks.iter().enumerate() {
                self.rows.push(Row::Hunk(at, nth));
                self.rows.extend((0..hunk.lines.len()).map(|line| Row::Line(at, nth, line)));
            }
            if file.binary || file.hunks.is_empty() || is_cut(file) {
                self.rows.push(Row::Note(at));
            }
        }
        self.top = self.top.min(self.rows.len().saturating_sub(1));
    }

    /// The files, in the order of the diff.
    pub fn files(&self) -> &[DiffFile] {
        match &self.state {
            DiffState::Ready(diff) => &diff.files,
            DiffState::Loading | DiffState::Failed(_) => &[],
        }
    }

    /// Every row.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The file that the first row in view belongs to.
    pub fn file_at_top(&self) -> usize {
        self.starts.partition_point(|start| *start <= self.top).saturating_sub(1)
    }

    /// A line.
    pub fn line(&self, file: usize, hunk: usize, line: usize) -> Option<&DiffLine> {
        self.files().get(file)?.hunks.get(hunk)?.lines.get(line)
    }

    /// The line of the other side that a changed line stands against: in a run of removed lines followed by as many
    /// added ones, the one at the same place.
    pub fn counterpart(&self, file: usize, hunk: usize, line: usize) -> Option<&DiffLine> {
        let lines = &self.files().get(file)?.hunks.get(hunk)?.lines;
        let kind = lines.get(line)?.kind;
        if kind == DiffLineKind::Ctx {
            return None;
        }
        // Runs longer than this are rewrites; pairing their lines would say nothing and cost much.
        const RUN: usize = 40;
        let run = |from: usize, kind: DiffLineKind| {
            lines.iter().skip(from).take(RUN + 1).take_while(|l| l.kind == kind).count()
        };
        let back = lines.iter().take(line).rev().take(RUN + 1).take_while(|l| l.kind == kind).count();
        let start = line - back;
        let (removed_at, added_at) = match kind {
            DiffLineKind::Del => (start, start + run(start, DiffLineKind::Del)),
            DiffLineKind::Add => {
                let removed =
                    lines.iter().take(start).rev().take(RUN + 1).take_while(|l| l.kind == DiffLineKind::Del).count();
                (start - removed, start)
            }
            DiffLineKind::Ctx => return None,
        };
        let removed = run(removed_at, DiffLineKind::Del);
        if removed == 0 || removed > RUN || removed != run(added_at, DiffLineKind::Add) {
            return None;
        }
        match kind {
            DiffLineKind::Del => lines.get(added_at + (line - removed_at)),
            DiffLineKind::Add | DiffLineKind::Ctx => lines.get(removed_at + (line - added_at)),
        }
    }

    /// The colours of a line, once the worker has made them.
    pub fn colours(&self, file: usize, hunk: usize, line: usize) -> Option<&LineColours> {
        self.colours.get(&file)?.get(hunk)?.get(line)
    }

    /// Moves by rows.
    pub fn scroll(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by).min(self.rows.len().saturating_sub(1));
    }

    /// Moves to a file.
    pub fn to_file(&mut self, at: usize) {
        if let Some(start) = self.starts.get(at) {
            self.top = *start;
        }
    }

    /// Moves by files.
    pub fn by_files(&mut self, by: isize) {
        let last = self.starts.len().saturating_sub(1);
        self.to_file(self.file_at_top().saturating_add_signed(by).min(last));
    }

    /// Moves to the next hunk, or the one before.
    pub fn by_hunk(&mut self, forward: bool) {
        let is_hunk = |row: &Row| matches!(row, Row::Hunk(..));
        let found = if forward {
            self.rows.iter().skip(self.top + 1).position(is_hunk).map(|at| self.top + 1 + at)
        } else {
            self.rows.iter().take(self.top).rposition(is_hunk)
        };
        if let Some(at) = found {
            self.top = at;
        }
    }

    /// The hunk in view as a patch that `git apply` takes.
    pub fn patch(&self) -> Option<String> {
        let (file, hunk) = self.rows.iter().skip(self.top).find_map(|row| match row {
            Row::Hunk(file, hunk) | Row::Line(file, hunk, _) => Some((*file, *hunk)),
            Row::File(_) | Row::Note(_) | Row::Gap => None,
        })?;
        let file = self.files().get(file)?;
        let hunk = file.hunks.get(hunk)?;
        let old = file.old_path.as_deref().unwrap_or(&file.path);
        let mut patch = format!("--- a/{old}\n+++ b/{}\n{}\n", file.path, hunk.header);
        for line in &hunk.lines {
            patch.push(match line.kind {
                DiffLineKind::Add => '+',
                DiffLineKind::Del => '-',
                DiffLineKind::Ctx => ' ',
            });
            patch.push_str(&line.text);
            patch.push('\n');
        }
        Some(patch)
    }

    /// The file in view and the one after it, to be coloured, unless they are or were asked for.
    pub fn next_jobs(&mut self, theme: ThemeName) -> Vec<HighlightJob> {
        let here = self.file_at_top();
        let DiffState::Ready(diff) = &self.state else { return Vec::new() };
        let mut jobs = Vec::new();
        for (at, file) in diff.files.iter().enumerate().skip(here).take(2) {
            if self.asked.insert(at) {
                jobs.extend(HighlightJob::of(&diff.request_id, at, file, theme));
            }
        }
        jobs
    }

    /// Takes colours in; false when they are for another diff.
    pub fn take_colours(&mut self, done: Highlighted) -> bool {
        let DiffState::Ready(diff) = &self.state else { return false };
        if diff.request_id != done.request || !self.asked.contains(&done.file) {
            return false;
        }
        self.colours.insert(done.file, done.hunks);
        true
    }

    /// Forgets the colours: the theme has changed.
    pub fn bleach(&mut self) {
        self.colours.clear();
        self.asked.clear();
    }
}

/// Whether the Foreman left out lines of a file: its counts say more than its hunks hold.
pub(crate) fn is_cut(file: &DiffFile) -> bool {
    let held = |kind: DiffLineKind| {
        file.hunks.iter().flat_map(|h| &h.lines).filter(|l| l.kind == kind).count()
    };
    !file.binary
        && (usize::try_from(file.additions).is_ok_and(|n| n > held(DiffLineKind::Add))
            || usize::try_from(file.deletions).is_ok_and(|n| n > held(DiffLineKind::Del)))
}
