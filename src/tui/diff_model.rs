//! The state of a diff on screen: what was asked, what came, where one is in it.
//!
//! The rows are laid out once, when the diff arrives, so that a frame touches only the rows in view.

use std::collections::{BTreeMap, BTreeSet};

use super::field::{content, field};
use super::highlight::{HighlightJob, Highlighted, LineColours};
use super::theme::ThemeName;
use tui_textarea::TextArea;

use crate::protocol::{DecisionId, Diff, DiffFile, DiffLine, DiffLineKind, DiffRequest, RepoId, WorktreeId};

/// One row of the diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    File(usize),
    /// A line instead of hunks: binary, cut, renamed only.
    Note(usize),
    Hunk(usize, usize),
    Line(usize, usize, usize),
    /// A row of the remark on a line: which line, and which row of the remark's text.
    Remark(usize, usize, usize, usize),
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

/// A line of a file by its numbers, so that it is found again when the diff is laid out anew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    path: String,
    new_no: Option<u32>,
    old_no: Option<u32>,
}

/// What the person says about a line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Remark {
    /// The line's text, for the quotation.
    line: String,
    text: String,
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
    /// The row that one is on.
    pub cursor: usize,
    /// The first row in view.
    pub top: usize,
    /// The remark that is being written, on the line that the cursor is on.
    pub writing: Option<TextArea<'static>>,
    remarks: BTreeMap<Spot, Remark>,
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
            cursor: 0,
            top: 0,
            writing: None,
            remarks: BTreeMap::new(),
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
        DiffRequest { request_id: String::new(), repo_id: self.repo.clone(), worktree: self.worktree.clone(), path }
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
            self.cursor = 0;
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
                for (line, content) in hunk.lines.iter().enumerate() {
                    self.rows.push(Row::Line(at, nth, line));
                    // Looking a spot up costs a path's copy; most diffs have no remarks.
                    if self.remarks.is_empty() {
                        continue;
                    }
                    if let Some(remark) = self.remarks.get(&spot(file, content)) {
                        let count = remark.text.lines().count().max(1);
                        self.rows.extend((0..count).map(|row| Row::Remark(at, nth, line, row)));
                    }
                }
            }
            if file.binary || file.hunks.is_empty() || is_cut(file) {
                self.rows.push(Row::Note(at));
            }
        }
        let last = self.rows.len().saturating_sub(1);
        self.top = self.top.min(last);
        self.cursor = self.cursor.min(last);
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

    /// The file that the cursor is in.
    pub fn file_here(&self) -> usize {
        self.starts.partition_point(|start| *start <= self.cursor).saturating_sub(1)
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

    /// Moves by rows; `height` rows are in view.
    pub fn scroll(&mut self, by: isize, height: usize) {
        self.cursor = self.cursor.saturating_add_signed(by).min(self.rows.len().saturating_sub(1));
        self.follow(height);
    }

    /// Brings the cursor into view.
    fn follow(&mut self, height: usize) {
        let height = height.max(1);
        if self.cursor < self.top {
            self.top = self.cursor;
        } else if self.cursor >= self.top + height {
            self.top = self.cursor + 1 - height;
        }
    }

    /// Moves to a file.
    pub fn go_to_file(&mut self, at: usize) {
        if let Some(start) = self.starts.get(at) {
            self.cursor = *start;
            self.top = *start;
        }
    }

    /// Moves by files.
    pub fn by_files(&mut self, by: isize) {
        let last = self.starts.len().saturating_sub(1);
        self.go_to_file(self.file_here().saturating_add_signed(by).min(last));
    }

    /// Moves to the next hunk, or the one before; `height` rows are in view.
    pub fn by_hunk(&mut self, forward: bool, height: usize) {
        let is_hunk = |row: &Row| matches!(row, Row::Hunk(..));
        let found = if forward {
            self.rows.iter().skip(self.cursor + 1).position(is_hunk).map(|at| self.cursor + 1 + at)
        } else {
            self.rows.iter().take(self.cursor).rposition(is_hunk)
        };
        if let Some(at) = found {
            self.cursor = at;
            // A hunk is read downwards: it goes to the upper third unless it is there already.
            if at < self.top || at >= self.top + height / 2 {
                self.top = at.saturating_sub(height / 3);
            }
        }
    }

    /// The line that the cursor is on, or that its remark belongs to.
    fn line_here(&self) -> Option<(&DiffFile, &DiffLine)> {
        let (file, hunk, line) = match self.rows.get(self.cursor)? {
            Row::Line(file, hunk, line) | Row::Remark(file, hunk, line, _) => (*file, *hunk, *line),
            Row::File(_) | Row::Note(_) | Row::Hunk(..) | Row::Gap => return None,
        };
        Some((self.files().get(file)?, self.line(file, hunk, line)?))
    }

    /// Begins a remark on the line under the cursor, with what was said there before; false where there is no line.
    pub fn begin_remark(&mut self) -> bool {
        let Some((file, line)) = self.line_here() else { return false };
        let before = self.remarks.get(&spot(file, line)).map(|r| r.text.clone()).unwrap_or_default();
        self.writing = Some(field(&before));
        true
    }

    /// Keeps what was written; an empty remark goes away.
    pub fn keep_remark(&mut self) {
        let Some(area) = self.writing.take() else { return };
        let text = content(&area).trim().to_owned();
        let Some((file, line)) = self.line_here() else { return };
        let (spot, quoted) = (spot(file, line), line.text.clone());
        if text.is_empty() {
            self.remarks.remove(&spot);
        } else {
            self.remarks.insert(spot, Remark { line: quoted, text });
        }
        self.lay_out();
    }

    /// A row of the remark on a line.
    pub fn remark_row(&self, file: usize, hunk: usize, line: usize, row: usize) -> Option<&str> {
        let file_data = self.files().get(file)?;
        self.remarks.get(&spot(file_data, self.line(file, hunk, line)?))?.text.lines().nth(row)
    }

    /// How many remarks there are.
    pub fn remark_count(&self) -> usize {
        self.remarks.len()
    }

    /// The remarks as the text of *Request changes*: place, quotation, what is said. None: there is no remark.
    pub fn request_text(&self) -> Option<String> {
        if self.remarks.is_empty() {
            return None;
        }
        let parts: Vec<String> = self
            .remarks
            .iter()
            .map(|(spot, remark)| {
                let number = match (spot.new_no, spot.old_no) {
                    (Some(n), _) => n.to_string(),
                    (None, Some(n)) => format!("{n} (removed)"),
                    (None, None) => "?".to_owned(),
                };
                format!("{}:{number}\n> {}\n{}", spot.path, remark.line.trim(), remark.text)
            })
            .collect();
        Some(parts.join("\n\n"))
    }

    /// The hunk in view as a patch that `git apply` takes.
    pub fn patch(&self) -> Option<String> {
        let (file, hunk) = self.rows.iter().skip(self.cursor).find_map(|row| match row {
            Row::Hunk(file, hunk) | Row::Line(file, hunk, _) | Row::Remark(file, hunk, ..) => Some((*file, *hunk)),
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

fn spot(file: &DiffFile, line: &DiffLine) -> Spot {
    Spot { path: file.path.clone(), new_no: line.new_no, old_no: line.old_no }
}

/// Whether the Foreman left out lines of a file: its counts say more than its hunks hold.
pub(crate) fn is_cut(file: &DiffFile) -> bool {
    let held = |kind: DiffLineKind| file.hunks.iter().flat_map(|h| &h.lines).filter(|l| l.kind == kind).count();
    !file.binary
        && (usize::try_from(file.additions).is_ok_and(|n| n > held(DiffLineKind::Add))
            || usize::try_from(file.deletions).is_ok_and(|n| n > held(DiffLineKind::Del)))
}
