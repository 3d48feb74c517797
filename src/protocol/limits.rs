//! Every bound of the wire, with its unit and its reason. Characters are Unicode scalar values.

/// Largest message either side may send, in bytes: clients in the field close the connection above it, and reconnect
/// for ever when it was the snapshot.
pub const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;

/// Size below which a snapshot is kept, in bytes: the frame limit less room for the envelope and the feed line that
/// says what was left out.
pub const SNAPSHOT_BYTES: usize = MAX_FRAME_BYTES - 64 * 1024;

/// Size below which a diff is kept on a socket, in bytes: the frame limit less room for the envelope.
pub const DIFF_BYTES: usize = MAX_FRAME_BYTES - 1024;

/// A goal's text, in characters: some five pages; it goes into prompts whole.
pub const GOAL_TEXT_CHARS: usize = 20_000;

/// A message to an agent, in characters: as a goal, it goes into a prompt whole.
pub const MESSAGE_TEXT_CHARS: usize = 20_000;

/// Free text of an answer, in characters: a review with comments on many lines becomes one answer.
pub const ANSWER_TEXT_CHARS: usize = 100_000;

/// Label of a chosen option, in characters: agents write whole sentences as options.
pub const OPTION_LABEL_CHARS: usize = 2_000;

/// An id that a client sends (task, agent, repository, worktree, request) or an action's `arg`, in characters: ids are
/// made from slugs of 32 characters, the rest is room for paths in memory ids and branch names (255 at most in git).
pub const ID_CHARS: usize = 300;

/// A correlation id, in characters: it is echoed in every answer. Clients count (`c12`) or use a UUID.
pub const CORRELATION_ID_CHARS: usize = 256;

/// Client name and version of a `hello`, in characters: they only go to the log.
pub const NAME_CHARS: usize = 200;

/// A file system path, in characters: `PATH_MAX` of Linux, in bytes there.
pub const PATH_CHARS: usize = 4_096;

/// Largest integer of the wire: what a JavaScript or JSON reader with doubles holds exactly (2^53 - 1).
pub const MAX_INTEGER: i64 = 9_007_199_254_740_991;

/// Issues told about one bad message: enough to mend it, too few to flood a screen.
pub const MAX_ISSUES: usize = 5;

/// Feed items in a snapshot and kept by a client.
pub const FEED_ITEMS: usize = 200;

/// Log entries per agent in a snapshot and kept by a client.
pub const LOG_ENTRIES: usize = 60;

/// A feed line, in characters: one or two lines of a wide terminal.
pub const FEED_TEXT_CHARS: usize = 400;
