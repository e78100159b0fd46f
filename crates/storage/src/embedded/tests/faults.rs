//! Files under the log that fail, block and remember, on top of real ones.

use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::embedded::files::{LogDirectory, LogFile, OsDirectory};
use crate::embedded::{EmbeddedOptions, EmbeddedStore};
use crate::store::StoreError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    Create(String),
    Write(String, u64),
    /// Zeros ahead of the frames.
    Grow(String),
    Sync(String),
    Truncate(String),
    Remove(String),
    SyncDirectory,
}

/// Calls that can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Create,
    Write,
    Sync,
    Truncate,
    Remove,
    SyncDirectory,
    Read,
    List,
}

#[derive(Default)]
pub(super) struct Faults {
    state: Mutex<FaultPlan>,
    released: Condvar,
}

#[derive(Default)]
struct FaultPlan {
    events: Vec<Event>,
    /// The call that fails, after how many more that succeed, and with what.
    fault: Option<(Call, u32, i32)>,
    once: bool,
    short_writes: bool,
    growth_refused: bool,
    syncs_blocked: bool,
}

impl Faults {
    pub(super) fn fail(&self, call: Call, after: u32, errno: i32) {
        self.state.lock().fault = Some((call, after, errno));
    }

    /// The next such call fails, and no other.
    pub(super) fn fail_once(&self, call: Call, errno: i32) {
        let mut state = self.state.lock();
        (state.fault, state.once) = (Some((call, 0, errno)), true);
    }

    pub(super) fn heal(&self) {
        let mut state = self.state.lock();
        (state.fault, state.once) = (None, false);
    }

    pub(super) fn write_short(&self) {
        self.state.lock().short_writes = true;
    }

    /// A disk that is full for everything but frames.
    pub(super) fn refuse_growth(&self) {
        self.state.lock().growth_refused = true;
    }

    /// Until the guard is dropped, so that a test that fails does not hang in the end of its store.
    pub(super) fn block_syncs(self: &Arc<Faults>) -> BlockedSyncs {
        self.state.lock().syncs_blocked = true;
        BlockedSyncs(self.clone())
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.state.lock().events.clone()
    }

    pub(super) fn count(&self, wanted: impl Fn(&Event) -> bool) -> usize {
        self.state.lock().events.iter().filter(|event| wanted(event)).count()
    }

    fn call(&self, call: Call, event: Option<Event>) -> io::Result<()> {
        let mut state = self.state.lock();
        while call == Call::Sync && state.syncs_blocked {
            self.released.wait(&mut state);
        }
        if let Some((wanted, after, errno)) = &mut state.fault
            && *wanted == call
        {
            if *after == 0 {
                let error = io::Error::from_raw_os_error(*errno);
                if state.once {
                    state.fault = None;
                }
                return Err(error);
            }
            *after -= 1;
        }
        state.events.extend(event);
        Ok(())
    }
}

pub(super) struct BlockedSyncs(Arc<Faults>);

impl Drop for BlockedSyncs {
    fn drop(&mut self) {
        self.0.state.lock().syncs_blocked = false;
        self.0.released.notify_all();
    }
}

pub(super) fn open(
    path: &Path,
    options: EmbeddedOptions,
    faults: &Arc<Faults>,
) -> Result<EmbeddedStore, StoreError> {
    EmbeddedStore::open_with(path, options, |path| {
        Arc::new(FaultyDirectory { inner: OsDirectory { path: path.into() }, faults: faults.clone() })
    })
}

struct FaultyDirectory {
    inner: OsDirectory,
    faults: Arc<Faults>,
}

impl LogDirectory for FaultyDirectory {
    fn list(&self) -> io::Result<Vec<String>> {
        self.faults.call(Call::List, None)?;
        self.inner.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        self.faults.call(Call::Create, Some(Event::Create(name.into())))?;
        let inner = self.inner.create(name)?;
        Ok(Box::new(FaultyFile { inner, name: name.into(), faults: self.faults.clone() }))
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.faults.call(Call::Read, None)?;
        self.inner.read(name)
    }

    fn truncate(&self, name: &str, size_bytes: u64) -> io::Result<()> {
        self.faults.call(Call::Truncate, Some(Event::Truncate(name.into())))?;
        self.inner.truncate(name, size_bytes)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.faults.call(Call::Remove, Some(Event::Remove(name.into())))?;
        self.inner.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.faults.call(Call::SyncDirectory, Some(Event::SyncDirectory))?;
        self.inner.sync()
    }
}

struct FaultyFile {
    inner: Box<dyn LogFile>,
    name: String,
    faults: Arc<Faults>,
}

impl LogFile for FaultyFile {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let growth = bytes.iter().all(|byte| *byte == 0);
        let (short, growth_refused) = {
            let state = self.faults.state.lock();
            (state.short_writes, state.growth_refused)
        };
        if growth && growth_refused {
            let _ = self.inner.write_at(&bytes[..bytes.len() / 2], offset);
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        let length = if short { bytes.len().div_ceil(3) } else { bytes.len() };
        let event = match growth {
            true => Event::Grow(self.name.clone()),
            false => Event::Write(self.name.clone(), offset),
        };
        if let Err(error) = self.faults.call(Call::Write, Some(event)) {
            // A disk that becomes full has often taken a part.
            let _ = self.inner.write_at(&bytes[..bytes.len() / 2], offset);
            return Err(error);
        }
        self.inner.write_at(&bytes[..length], offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.faults.call(Call::Sync, Some(Event::Sync(self.name.clone())))?;
        self.inner.sync()
    }

    fn set_len(&mut self, size_bytes: u64) -> io::Result<()> {
        self.faults.call(Call::Truncate, Some(Event::Truncate(self.name.clone())))?;
        self.inner.set_len(size_bytes)
    }
}
