//! Syntax colours for diffs, made on a worker thread and only for what is looked at.
//!
//! Knows nothing of the model: a job goes in, colours come out, stale ones are the receiver's to drop.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};

use syntect::easy::HighlightLines;
use syntect::parsing::SyntaxSet;
use two_face::theme::{EmbeddedLazyThemeSet, EmbeddedThemeName};

use super::theme::ThemeName;
use crate::protocol::{DiffFile, DiffLineKind};

/// Lines of a file beyond which it stays plain.
const LINES: usize = 6_000;

/// Bytes of a line beyond which the file stays plain (minified code).
const LINE_BYTES: usize = 2_000;

/// The colours of a line: lengths in bytes of its raw text, one after the other.
pub(crate) type LineColours = Vec<(usize, (u8, u8, u8))>;

/// A file to be coloured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HighlightJob {
    /// The diff's request id: the generation.
    pub request: String,
    pub file: usize,
    path: String,
    theme: ThemeName,
    hunks: Vec<Vec<(DiffLineKind, String)>>,
}

/// A coloured file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Highlighted {
    pub request: String,
    pub file: usize,
    pub hunks: Vec<Vec<LineColours>>,
}

impl HighlightJob {
    /// The job for a file; none where it would cost more than it is worth.
    pub fn of(request: &str, at: usize, file: &DiffFile, theme: ThemeName) -> Option<Self> {
        let lines = || file.hunks.iter().flat_map(|h| &h.lines);
        if file.binary || lines().count() > LINES || lines().any(|l| l.text.len() > LINE_BYTES) {
            return None;
        }
        let hunks = file.hunks.iter().map(|h| h.lines.iter().map(|l| (l.kind, l.text.clone())).collect()).collect();
        Some(Self { request: request.to_owned(), file: at, path: file.path.clone(), theme, hunks })
    }

    /// Colours the file. Takes milliseconds; the first call loads the grammars. None: no grammar knows the file.
    pub fn run(&self) -> Option<Highlighted> {
        let syntaxes = syntaxes();
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        let extension = name.rsplit_once('.').map_or(name, |(_, extension)| extension);
        let first = self.hunks.first().and_then(|h| h.first()).map_or("", |(_, text)| text.as_str());
        let syntax = syntaxes
            .find_syntax_by_token(name)
            .or_else(|| syntaxes.find_syntax_by_token(extension))
            .or_else(|| syntaxes.find_syntax_by_first_line(first))?;
        let theme = themes().get(match self.theme {
            ThemeName::Dark => EmbeddedThemeName::Base16OceanDark,
            ThemeName::Light => EmbeddedThemeName::InspiredGithub,
        });
        let mut hunks = Vec::with_capacity(self.hunks.len());
        for lines in &self.hunks {
            // Removed and added lines are two texts; each goes through a parser of its own, context through both.
            let mut old = HighlightLines::new(syntax, theme);
            let mut new = HighlightLines::new(syntax, theme);
            let mut out = Vec::with_capacity(lines.len());
            for (kind, text) in lines {
                let line = format!("{text}\n");
                let paint = |parser: &mut HighlightLines<'_>| -> LineColours {
                    parser
                        .highlight_line(&line, syntaxes)
                        .map(|parts| {
                            parts
                                .into_iter()
                                .map(|(style, part)| {
                                    let c = style.foreground;
                                    (part.trim_end_matches('\n').len(), (c.r, c.g, c.b))
                                })
                                .filter(|(length, _)| *length > 0)
                                .collect()
                        })
                        .unwrap_or_default()
                };
                out.push(match kind {
                    DiffLineKind::Del => paint(&mut old),
                    DiffLineKind::Add => paint(&mut new),
                    DiffLineKind::Ctx => {
                        paint(&mut old);
                        paint(&mut new)
                    }
                });
            }
            hunks.push(out);
        }
        Some(Highlighted { request: self.request.clone(), file: self.file, hunks })
    }
}

fn syntaxes() -> &'static SyntaxSet {
    static SET: OnceLock<SyntaxSet> = OnceLock::new();
    SET.get_or_init(two_face::syntax::extra_newlines)
}

fn themes() -> &'static EmbeddedLazyThemeSet {
    static SET: OnceLock<EmbeddedLazyThemeSet> = OnceLock::new();
    SET.get_or_init(two_face::theme::extra)
}

/// The worker: started with the first job, ends when dropped.
pub(crate) struct Worker {
    jobs: Sender<HighlightJob>,
}

impl Worker {
    /// Starts the thread; what it makes is handed to `deliver` there.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(deliver: impl Fn(Highlighted) + Send + 'static) -> std::io::Result<Self> {
        let (jobs, inbox): (Sender<HighlightJob>, Receiver<HighlightJob>) = channel();
        std::thread::Builder::new().name("highlight".to_owned()).spawn(move || {
            while let Ok(job) = inbox.recv() {
                if let Some(done) = job.run() {
                    deliver(done);
                }
            }
        })?;
        Ok(Self { jobs })
    }

    /// Queues a job.
    pub(crate) fn push(&self, job: HighlightJob) {
        // A worker that is gone leaves the diff plain, which is what it is without one.
        let _ = self.jobs.send(job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{DiffFileStatus, DiffHunk, DiffLine};

    /// The colours of a line cover exactly its bytes.
    #[test]
    fn colours_cover_the_line() {
        let text = "export const parse = (s: string) => s.split(\"#\"); // é";
        let line = |kind, text: &str| DiffLine { kind, text: text.to_owned(), old_no: None, new_no: None };
        let file = DiffFile {
            path: "src/tags.ts".to_owned(),
            old_path: None,
            status: DiffFileStatus::Modified,
            binary: false,
            additions: 1,
            deletions: 0,
            hunks: vec![DiffHunk {
                header: "@@ -1 +1 @@".to_owned(),
                old_start: 1,
                old_lines: 1,
                new_start: 1,
                new_lines: 1,
                lines: vec![line(DiffLineKind::Add, text)],
            }],
        };
        let job = HighlightJob::of("r1", 0, &file, ThemeName::Dark).unwrap();
        let done = job.run().unwrap();
        let spans = &done.hunks[0][0];
        assert_eq!(spans.iter().map(|(length, _)| length).sum::<usize>(), text.len());
        let colours: std::collections::BTreeSet<_> = spans.iter().map(|(_, colour)| colour).collect();
        assert!(colours.len() > 2, "{spans:?}");
    }
}
