//! Gives freed memory back to the operating system.
//!
//! glibc keeps what a flushed memtable has freed: after a load the process holds some 100 MB that it does not use.
//! Other allocators return memory by themselves.

/// Takes a few milliseconds: for an idle store only.
pub(super) fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code)]
    {
        // SAFETY: `malloc_trim` takes no pointer, may be called from any thread at any time, and changes no live
        // allocation.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
