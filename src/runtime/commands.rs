//! The person's commands in a worktree: set-up and tests.
use super::effects::Places;
use crate::foreman::effect::*;
use tokio_util::sync::CancellationToken;
pub(crate) async fn set_up(
    _: &Places,
    _: &PrepareWorktree,
    _: PreparedWorktree,
    _: &str,
    _: CancellationToken,
) -> Option<Result<PreparedWorktree, PrepareFailure>> {
    None
}
pub(crate) async fn run_tests(
    _: &Places,
    _: &WorktreeRef,
    _: Option<String>,
    _: CancellationToken,
) -> Option<CiOutcome> {
    None
}
