//! How many files and connections this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More are not asked for: programs that we start inherit the limit, and some of them close every
/// descriptor that there might be, one by one.
const ENOUGH: u64 = 65_536;

/// Uses what the system allows: every host costs a connection, and the usual 1024 are few.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let Some(wished) = raised(limit) else {
        return;
    };
    // Without it all works, with fewer hosts.
    match setrlimit(Resource::Nofile, wished) {
        Ok(()) => tracing::debug!(?wished, "raised the limit of open files"),
        Err(error) => tracing::warn!(%error, "could not raise the limit of open files: {error}"),
    }
}

/// A higher limit, where there is one.
fn raised(limit: Rlimit) -> Option<Rlimit> {
    let wished = limit.maximum.unwrap_or(ENOUGH).min(ENOUGH);
    let current = limit.current?;
    (current < wished).then_some(Rlimit {
        current: Some(wished),
        maximum: limit.maximum,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soft(current: Option<u64>, maximum: Option<u64>) -> Option<u64> {
        raised(Rlimit { current, maximum }).and_then(|limit| limit.current)
    }

    #[test]
    fn a_limit_only_grows_and_not_without_end() {
        assert_eq!(soft(Some(1024), Some(4096)), Some(4096));
        assert_eq!(soft(Some(1024), Some(1_073_741_816)), Some(ENOUGH));
        assert_eq!(soft(Some(1024), None), Some(ENOUGH));
        assert_eq!(soft(Some(4096), Some(4096)), None);
        assert_eq!(soft(Some(1_000_000), None), None);
        assert_eq!(soft(None, None), None);
    }

    #[test]
    fn the_process_has_all_that_it_may_have() {
        raise();
        assert_eq!(raised(getrlimit(Resource::Nofile)).map(|_| ()), None);
    }
}
