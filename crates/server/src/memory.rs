//! How the memory of the process is divided: `--memory-limit`, and what of it requests may hold.
//!
//! ```text
//! memory limit                                   e.g. 4 GB
//!   − caches            --cache-size                 256 MB   blocks, items, columns, graphs
//!   − store             memtables, queue of commits   78 MB   what the store holds before it is on disk
//!   − results           rows of later pages           67 MB   kept by queries for their next page
//!   − base              program, threads, indexes     34 MB
//!   = left                                          3565 MB
//!   × 2 / 3             requests                    2377 MB   the pool that budgets take from
//! ```
//!
//! The last third is for what nobody counts: what the allocator keeps of freed memory and loses to sizes it rounds up
//! (a fifth to a quarter was measured under sorts and large pages), small structures of requests, buffers of
//! connections.
//!
//! Without a word from the operator the limit is half of the machine's memory, for a machine runs other things too, or
//! four fifths of what the control group of a container may have, if that is less; containers are made for one program.

use std::path::Path;

use orrery_engine::RESULT_CACHE_BYTES_MAX;
use orrery_storage::EmbeddedOptions;

use crate::config::Config;

const MIB: u64 = 1024 * 1024;

/// Program, threads, catalog, indexes of tables.
const BASE_BYTES: u64 = 32 * MIB;
/// Commits that wait for the log, and memtables that wait for their flush beside the active ones.
const COMMIT_QUEUE_BYTES: u64 = 32 * MIB;
const MEMTABLES_WAITING: u64 = 3;
/// The least that requests need to be useful: a page, a body, a batch and some sorts at one time.
const REQUESTS_BYTES_MIN: u64 = 32 * MIB;
const CACHE_BYTES_DEFAULT: u64 = 256_000_000;
/// Where the system does not tell its memory.
const MACHINE_BYTES_UNKNOWN: u64 = 4096 * MIB;

/// What all requests together may hold.
pub fn requests_bytes(config: &Config) -> usize {
    let left = config.memory_limit_bytes.saturating_sub(fixed_bytes(config));
    // A machine or container too small for its defaults still has to serve; `check` has refused wrong settings.
    usize::try_from(share(left).max(REQUESTS_BYTES_MIN)).unwrap_or(usize::MAX / 2)
}

/// Refuses a limit that leaves requests too little.
pub fn check(config: &Config) -> Result<(), String> {
    let needed = fixed_bytes(config).saturating_add(REQUESTS_BYTES_MIN / 2 * 3);
    match config.memory_limit_bytes >= needed {
        true => Ok(()),
        false => Err(format!(
            "--memory-limit {} MB is too little: with --cache-size {} MB the server needs {} MB at least. Raise the limit, or \
             lower --cache-size",
            config.memory_limit_bytes / 1_000_000,
            config.cache_size_bytes / 1_000_000,
            needed.div_ceil(1_000_000),
        )),
    }
}

pub fn cache_default_bytes(memory_limit_bytes: u64) -> u64 {
    CACHE_BYTES_DEFAULT.min(memory_limit_bytes / 8)
}

/// Half of the machine, or four fifths of the control group's limit.
pub fn limit_default_bytes() -> u64 {
    let machine = machine_bytes().unwrap_or(MACHINE_BYTES_UNKNOWN) / 2;
    let group = group_limit_bytes(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup"));
    group.map_or(machine, |group| machine.min(group / 5 * 4))
}

/// What does not grow with requests.
fn fixed_bytes(config: &Config) -> u64 {
    let memtables = EmbeddedOptions::default().memtable_bytes;
    let waiting = MEMTABLES_WAITING * memtables.iter().max().copied().unwrap_or_default();
    let store = match config.ephemeral {
        true => 0,
        false => memtables.iter().sum::<u64>() + waiting + COMMIT_QUEUE_BYTES,
    };
    // The api takes an eighth of what requests have, which is less than a sixteenth of all.
    let results = (RESULT_CACHE_BYTES_MAX as u64).min(config.memory_limit_bytes / 16);
    config.cache_size_bytes.saturating_add(store + results + BASE_BYTES)
}

fn share(left: u64) -> u64 {
    left / 3 * 2
}

fn machine_bytes() -> Option<u64> {
    // SAFETY: two questions to the system that take a number and give one.
    #[allow(unsafe_code)]
    let (pages, page_bytes) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).ok()?.checked_mul(u64::try_from(page_bytes).ok()?)
}

/// The least limit of the control groups that this process is in: version 2 (`0::/path`, `memory.max`) and version 1
/// (`4:memory:/path`, `memory/…/memory.limit_in_bytes`). The limit of an outer group holds for the inner ones.
fn group_limit_bytes(membership: &Path, root: &Path) -> Option<u64> {
    let groups = std::fs::read_to_string(membership).ok()?;
    let limit_of = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let (base, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let inside = base.join(path);
        let outwards = inside.ancestors().take_while(|group| group.starts_with(&base));
        outwards.filter_map(|group| std::fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()).min()
    };
    groups.lines().filter_map(limit_of).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::defaults;

    fn config(memory_limit: u64, cache: u64) -> Config {
        Config { memory_limit_bytes: memory_limit, cache_size_bytes: cache, ..defaults() }
    }

    #[test]
    fn requests_get_two_thirds_of_what_caches_and_store_leave() {
        let config = config(4_000_000_000, 256_000_000);
        let bytes = requests_bytes(&config) as u64;
        assert!((2_300_000_000..2_400_000_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn too_little_is_refused_with_what_to_do() {
        let refusal = check(&config(300_000_000, 256_000_000)).unwrap_err();
        assert!(refusal.contains("needs 437 MB") && refusal.contains("lower --cache-size"), "{refusal}");
        assert!(check(&config(470_000_000, 256_000_000)).is_ok());
        assert!(check(&config(220_000_000, 30_000_000)).is_ok());
        assert!(check(&config(1 << 40, u64::MAX)).is_err(), "absurd sizes do not wrap");
    }

    #[test]
    fn small_containers_serve_with_their_defaults() {
        for limit in [512 * MIB / 5 * 4, 256 * MIB] {
            assert_eq!(check(&config(limit, cache_default_bytes(limit))), Ok(()));
        }
    }

    #[test]
    fn the_least_limit_of_all_groups_around_holds() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        let put = |path: &str, text: &str| {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), text).unwrap();
        };
        let limit = |membership: &str| {
            put("membership", membership);
            group_limit_bytes(&at("membership"), &at("fs"))
        };
        put("fs/outer/memory.max", "1000000\n");
        put("fs/outer/inner/memory.max", "max\n");
        put("fs/memory/docker/x/memory.limit_in_bytes", "2000000\n");
        assert_eq!(limit("0::/outer/inner\n"), Some(1_000_000));
        assert_eq!(limit("0::/\n"), None, "no limit at the top");
        assert_eq!(limit("5:cpu,memory:/docker/x\n3:pids:/docker/x\n"), Some(2_000_000));
        assert_eq!(limit("0::/outer\n5:memory:/docker/x\n"), Some(1_000_000));
        assert_eq!(limit("nonsense\n"), None);
    }
}
