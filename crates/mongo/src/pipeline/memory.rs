//! What a blocking stage keeps: charged to the command, and limited for each stage.

use orrery_budget::{Budget, Held};

use crate::error::{Error, Result, code};

/// What one stage may keep: `100 MB`, as everywhere in MongoDB.
pub const STAGE_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Memory is charged in steps of this many bytes.
const STEP_BYTES: usize = 64 * 1024;

pub struct StageMemory {
    stage: &'static str,
    held: Held,
    used_bytes: usize,
}

impl StageMemory {
    pub fn new(stage: &'static str, budget: &Budget) -> Result<StageMemory> {
        Ok(StageMemory { stage, held: budget.hold(0)?, used_bytes: 0 })
    }

    pub fn take(&mut self, bytes: usize) -> Result<()> {
        self.used_bytes += bytes;
        if self.used_bytes > STAGE_BYTES_MAX {
            return Err(Error::new(
                code::QUERY_EXCEEDED_MEMORY_LIMIT,
                format!(
                    "Exceeded memory limit for {}: {STAGE_BYTES_MAX} bytes. Filter or project before it, or add an index \
                     that serves the order.",
                    self.stage
                ),
            ));
        }
        if self.used_bytes > self.held.bytes() {
            self.held.resize(self.used_bytes + STEP_BYTES)?;
        }
        Ok(())
    }

    pub fn give_back(&mut self, bytes: usize) {
        self.used_bytes = self.used_bytes.saturating_sub(bytes);
    }
}
