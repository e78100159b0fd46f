//! How many files the process may have open, and how many of them connections may be.
//!
//! Every connection is a file, and so is every table and log segment of the store. A store that finds no file left
//! cannot write; a connection that finds none left can be told to come again. So connections get what the store does
//! not need, whatever `--connections-max` says.

/// For the store's tables, log segments and compactions, listeners, the log, certificates.
const RESERVE: u64 = 512;

/// Raises the soft limit, which shells set far below (1024), to the hard one, and returns it.
pub fn raise_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the calls only read or write the struct, which lives on this stack and has the layout libc declares.
    #[allow(unsafe_code)]
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return None;
        }
        if limit.rlim_cur < limit.rlim_max {
            let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 {
                limit = raised;
            }
        }
    }
    Some(limit.rlim_cur)
}

/// The connections that so many files allow, and a line for the log when it is fewer than asked for.
pub fn connections_max(files: Option<u64>, wanted: usize) -> (usize, Option<String>) {
    let Some(files) = files else { return (wanted, None) };
    // A store with few tables needs less than the reserve; below twice of it both get half.
    let reserve = RESERVE.min(files / 2);
    let allowed = usize::try_from(files - reserve).unwrap_or(usize::MAX).max(1);
    match allowed < wanted {
        false => (wanted, None),
        true => (
            allowed,
            Some(format!(
                "at most {allowed} connections instead of {wanted} (--connections-max): the process may open {files} files, of \
                 which {reserve} are for the store; raise the limit of open files (ulimit -n, LimitNOFILE=) for more"
            )),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_store() {
        for (files, wanted, allowed) in [
            (None, 10_000, 10_000),
            (Some(1 << 20), 10_000, 10_000),
            (Some(10_512), 10_000, 10_000),
            (Some(4096), 10_000, 3584),
            (Some(1024), 10_000, 512),
            (Some(256), 10_000, 128),
            (Some(256), 100, 100),
            (Some(1), 10, 1),
        ] {
            let (connections, line) = connections_max(files, wanted);
            assert_eq!((connections, line.is_some()), (allowed, allowed < wanted), "{files:?}");
        }
        let line = connections_max(Some(1024), 10_000).1.unwrap();
        assert!(
            line.contains("at most 512 connections instead of 10000") && line.contains("ulimit -n"),
            "{line}"
        );
    }
}
