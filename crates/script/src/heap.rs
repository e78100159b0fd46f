//! The memory of a script: one stretch of address space that is used again and again.
//!
//! Two things follow from a stretch that never moves. A runtime that was built in it once can be had again by copying
//! its bytes back ([`Heap::restore`]), which costs a twentieth of building it; and a script that takes all the memory
//! it may have asks the system for pages at most, never for mappings, which would hold up every other thread of the
//! server while they are made and unmade. What a script has touched is given back in small pieces.
//!
//! QuickJS serves small values from pieces of four kilobytes of its own, so what arrives here are those pieces and
//! what is larger. Blocks lie one after the other, each behind a header with its own size and that of the block before
//! it; free ones stand in lists by size and neighbours are joined. What lies behind the last block is `top`.
//!
//! ```text
//! | header | in use … | header | free: next, previous … | header | in use … | top →                    | capacity
//! ```
//!
//! Offsets take the place of pointers, so that the lists can be copied as they are.
//!
//! A script asks for memory wherever it is, also deep inside of a built-in or of the parser, where QuickJS does not
//! look at the clock. So this is one more place to ask it ([`Watch`]): a script whose time is over gets no more
//! memory, and what cannot go on without ends. It is also where a script's memory is charged to its request.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::rc::Rc;

use orrery_budget::{Budget, Exceeded, Held};
use rquickjs::allocator::Allocator;

use crate::limits::Until;

/// Sizes of blocks are multiples of this, and addresses too.
const UNIT: usize = 16;
const HEADER: usize = 16;
/// A free block holds its place in a list behind its header.
const BLOCK_MIN: usize = HEADER + 16;
/// Set in the size of a block that is free.
const FREE: usize = 1;
const PAGE: usize = 4096;
/// Address space next to what may be in use: blocks do not fit together without gaps.
const SLACK: usize = 2;
/// Touched memory that is kept for the next script.
const KEPT_BYTES: usize = 4 * 1024 * 1024;
/// The rest goes back in pieces: the system lets nobody else onto the core while it takes one.
const GIVEN_BACK_AT_ONCE: usize = 128 * 1024;

/// The request is charged for this much at a time.
const CHARGED_AT_ONCE: usize = 1024 * 1024;
/// Smaller blocks are handed out without a look at the clock. QuickJS's own pieces are larger.
const ASKED_BYTES: usize = 2048;

/// Lists per power of two, as bits.
const FINE_BITS: u32 = 3;
const FINE: usize = 1 << FINE_BITS;
/// Blocks are shorter than two to this.
const COARSE: usize = 40;
/// No block, in a list.
const NONE: usize = usize::MAX;

/// Where blocks begin and end, without the bytes in them.
#[derive(Clone)]
struct Blocks {
    /// Nothing was handed out from here on.
    top: usize,
    /// The size of the block that ends at `top`; zero when there is none.
    last: usize,
    /// Of all blocks in use together.
    in_use: usize,
    /// Which rows of `first` hold a list that is not empty, and which of their lists are.
    coarse: u64,
    fine: [u8; COARSE],
    first: [[usize; FINE]; COARSE],
}

pub(crate) struct Heap {
    base: NonNull<u8>,
    capacity: usize,
    /// The most that blocks in use may take together. Blocks do not fit together without gaps, so the stretch is
    /// longer.
    in_use_max: usize,
    /// The highest `top` since memory was last given back.
    touched: usize,
    blocks: Blocks,
    watch: Option<Watch>,
    /// Why memory was refused last.
    refused: Option<Refused>,
}

/// Whom a heap works for, and how long.
struct Watch {
    until: Until,
    /// What the request is charged, for everything from `from` on.
    held: Held,
    from: usize,
}

/// Why a heap gave no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The script has what it may have.
    Full,
    /// Its time is over.
    Late,
    /// Its request has what it may have, or all requests together have.
    Budget(Exceeded),
}

/// Everything that a heap held at one moment.
pub(crate) struct Saved {
    bytes: Vec<u8>,
    blocks: Blocks,
}

impl Heap {
    /// A heap for this much in use. `None` when there is no such stretch of address space.
    pub(crate) fn new(in_use_max: usize) -> Option<Heap> {
        let capacity = in_use_max.checked_mul(SLACK)?.next_multiple_of(PAGE);
        let base = NonNull::new(reserve(capacity))?;
        let blocks = Blocks {
            top: 0,
            last: 0,
            in_use: 0,
            coarse: 0,
            fine: [0; COARSE],
            first: [[NONE; FINE]; COARSE],
        };
        Some(Heap { base, capacity, in_use_max, touched: 0, blocks, watch: None, refused: None })
    }

    /// How far the heap is filled.
    pub(crate) fn top(&self) -> usize {
        self.blocks.top
    }

    /// From now on memory is given while there is time, and charged to a request as far as it lies behind `from`.
    pub(crate) fn watch(&mut self, until: Until, budget: &Budget, from: usize) -> Result<(), Exceeded> {
        let held = budget.hold(self.blocks.top.saturating_sub(from))?;
        self.watch = Some(Watch { until, held, from });
        self.refused = None;
        Ok(())
    }

    /// Memory is given without a look at the clock or a charge.
    pub(crate) fn unwatch(&mut self) {
        self.watch = None;
    }

    /// Why memory was refused since the last `watch`, if it was.
    pub(crate) fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// Whether this many more bytes may be in use.
    fn admit(&mut self, bytes: usize) -> bool {
        if self.blocks.in_use.saturating_add(bytes).saturating_add(HEADER) > self.in_use_max {
            self.refused = Some(Refused::Full);
            return false;
        }
        if bytes >= ASKED_BYTES && self.watch.as_ref().is_some_and(|watch| watch.until.is_over()) {
            self.refused = Some(Refused::Late);
            return false;
        }
        true
    }

    pub(crate) fn save(&self) -> Saved {
        let mut bytes = vec![0; self.blocks.top];
        // SAFETY: everything below `top` is inside of the stretch and was written: blocks are handed out from its
        // start.
        unsafe { std::ptr::copy_nonoverlapping(self.base.as_ptr(), bytes.as_mut_ptr(), bytes.len()) };
        Saved { bytes, blocks: self.blocks.clone() }
    }

    /// Puts back what was there when `saved` was made. The caller vouches that nobody holds on to what has come since.
    pub(crate) fn restore(&mut self, saved: &Saved) {
        // SAFETY: the bytes came from the start of this stretch, which is at least as long.
        unsafe {
            std::ptr::copy_nonoverlapping(saved.bytes.as_ptr(), self.base.as_ptr(), saved.bytes.len());
        }
        self.blocks.clone_from(&saved.blocks);
    }

    /// Returns memory that a script has touched and the next one will hardly need.
    pub(crate) fn give_back(&mut self) {
        let kept = (self.blocks.top + KEPT_BYTES).next_multiple_of(PAGE).min(self.capacity);
        let end = self.touched.next_multiple_of(PAGE).min(self.capacity);
        let mut from = kept;
        while from < end {
            let length = GIVEN_BACK_AT_ONCE.min(end - from);
            // SAFETY: `from + length` is inside of the stretch, and nothing lies behind `top`.
            release(unsafe { self.base.as_ptr().add(from) }, length);
            from += length;
        }
        self.touched = self.touched.min(kept);
    }

    fn word(&self, at: usize) -> *mut usize {
        debug_assert!(at.is_multiple_of(8) && at + 8 <= self.capacity);
        // SAFETY: every offset that is asked for lies in a block, and blocks lie inside of the stretch.
        unsafe { self.base.as_ptr().add(at).cast() }
    }

    fn read(&self, at: usize) -> usize {
        // SAFETY: as above; headers and the places of free blocks are written before they are read.
        unsafe { self.word(at).read() }
    }

    fn write(&mut self, at: usize, value: usize) {
        // SAFETY: as above.
        unsafe { self.word(at).write(value) }
    }

    fn size(&self, block: usize) -> usize {
        self.read(block) & !FREE
    }

    fn is_free(&self, block: usize) -> bool {
        self.read(block) & FREE != 0
    }

    /// Writes a header, and what the block behind it says about it.
    fn set(&mut self, block: usize, size: usize, flags: usize) {
        self.write(block, size | flags);
        let next = block + size;
        if next == self.blocks.top {
            self.blocks.last = size;
        } else {
            self.write(next + 8, size);
        }
    }

    /// Takes a block out of its list.
    fn unlink(&mut self, block: usize) {
        let (next, previous) = (self.read(block + HEADER), self.read(block + HEADER + 8));
        if next != NONE {
            self.write(next + HEADER + 8, previous);
        }
        if previous != NONE {
            self.write(previous + HEADER, next);
            return;
        }
        let (coarse, fine) = class_of(self.size(block));
        let blocks = &mut self.blocks;
        blocks.first[coarse][fine] = next;
        if next == NONE {
            blocks.fine[coarse] &= !(1 << fine);
            if blocks.fine[coarse] == 0 {
                blocks.coarse &= !(1 << coarse);
            }
        }
    }

    /// Makes a stretch inside of the blocks a free one, together with its free neighbours.
    fn insert(&mut self, mut block: usize, mut size: usize) {
        let next = block + size;
        if next < self.blocks.top && self.is_free(next) {
            self.unlink(next);
            size += self.size(next);
        }
        let before = self.read(block + 8);
        if before != 0 && self.is_free(block - before) {
            block -= before;
            self.unlink(block);
            size += before;
        }
        if block + size == self.blocks.top {
            self.blocks.last = self.read(block + 8);
            self.blocks.top = block;
            return;
        }
        self.set(block, size, FREE);
        let (coarse, fine) = class_of(size);
        let first = self.blocks.first[coarse][fine];
        self.write(block + HEADER, first);
        self.write(block + HEADER + 8, NONE);
        if first != NONE {
            self.write(first + HEADER + 8, block);
        }
        let blocks = &mut self.blocks;
        blocks.first[coarse][fine] = block;
        blocks.fine[coarse] |= 1 << fine;
        blocks.coarse |= 1 << coarse;
    }

    /// A free block of at least this size: the first of the first list whose blocks are all large enough.
    fn find(&self, size: usize) -> Option<usize> {
        let (coarse, fine) = class_above(size);
        let blocks = &self.blocks;
        if coarse >= COARSE {
            return None;
        }
        let here = if fine < FINE { blocks.fine[coarse] & (u8::MAX << fine) } else { 0 };
        if here != 0 {
            return Some(blocks.first[coarse][here.trailing_zeros() as usize]);
        }
        let above = blocks.coarse & (u64::MAX << (coarse + 1));
        if above == 0 {
            return None;
        }
        let coarse = above.trailing_zeros() as usize;
        Some(blocks.first[coarse][blocks.fine[coarse].trailing_zeros() as usize])
    }

    /// Moves `top` on to `to`, if there is room.
    fn rise(&mut self, to: usize) -> bool {
        if to > self.capacity {
            self.refused = Some(Refused::Full);
            return false;
        }
        if let Some(Watch { held, from, .. }) = &mut self.watch
            && to.saturating_sub(*from) > held.bytes()
            && let Err(exceeded) = held.resize((to - *from).next_multiple_of(CHARGED_AT_ONCE))
        {
            self.refused = Some(Refused::Budget(exceeded));
            return false;
        }
        self.blocks.top = to;
        self.touched = self.touched.max(to);
        true
    }

    fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let size = block_size(bytes)?;
        let block = match self.find(size) {
            Some(block) => {
                self.unlink(block);
                let rest = self.size(block) - size;
                if rest >= BLOCK_MIN {
                    self.set(block, size, 0);
                    self.insert(block + size, rest);
                } else {
                    self.set(block, size + rest, 0);
                }
                block
            }
            None => {
                let (block, before) = (self.blocks.top, self.blocks.last);
                if !self.rise(block.checked_add(size)?) {
                    return None;
                }
                self.write(block + 8, before);
                self.set(block, size, 0);
                block
            }
        };
        Some(block)
    }

    /// Makes a block in use longer or shorter where it lies.
    fn resize(&mut self, block: usize, size: usize) -> bool {
        let now = self.size(block);
        if size <= now {
            let rest = now - size;
            // A few bytes less are not worth a block of their own.
            if rest >= BLOCK_MIN.max(now / 8) {
                self.set(block, size, 0);
                self.insert(block + size, rest);
            }
            return true;
        }
        let next = block + now;
        if next == self.blocks.top {
            if !self.rise(block + size) {
                return false;
            }
            self.set(block, size, 0);
            return true;
        }
        if !self.is_free(next) || now + self.size(next) < size {
            return false;
        }
        self.unlink(next);
        let whole = now + self.size(next);
        self.set(block, whole, 0);
        if whole - size >= BLOCK_MIN {
            self.set(block, size, 0);
            self.insert(block + size, whole - size);
        }
        true
    }

    fn address(&self, block: usize) -> *mut u8 {
        // SAFETY: the block lies inside of the stretch, and is longer than its header.
        unsafe { self.base.as_ptr().add(block + HEADER) }
    }

    fn block_at(&self, address: *mut u8) -> usize {
        address.addr() - self.base.as_ptr().addr() - HEADER
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let layout = layout(self.capacity);
        // SAFETY: made by `reserve` with the same layout.
        unsafe { std::alloc::dealloc(self.base.as_ptr(), layout) };
    }
}

/// A heap that a runtime and its keeper share. Both stay on one thread.
#[derive(Clone)]
pub(crate) struct SharedHeap(pub(crate) Rc<RefCell<Heap>>);

// SAFETY: blocks do not overlap, are aligned to sixteen bytes, as long as was asked for and never move by themselves.
unsafe impl Allocator for SharedHeap {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        let mut heap = self.0.borrow_mut();
        if !heap.admit(size) {
            return std::ptr::null_mut();
        }
        let Some(block) = heap.allocate(size) else { return std::ptr::null_mut() };
        heap.blocks.in_use += heap.size(block);
        heap.address(block)
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let Some(bytes) = count.checked_mul(size) else { return std::ptr::null_mut() };
        let address = self.alloc(bytes);
        if !address.is_null() {
            // SAFETY: the block was just handed out and is at least this long.
            unsafe { address.write_bytes(0, bytes) };
        }
        address
    }

    unsafe fn dealloc(&mut self, address: *mut u8) {
        let mut heap = self.0.borrow_mut();
        let block = heap.block_at(address);
        let size = heap.size(block);
        heap.blocks.in_use -= size;
        heap.insert(block, size);
    }

    unsafe fn realloc(&mut self, address: *mut u8, bytes: usize) -> *mut u8 {
        if address.is_null() {
            return self.alloc(bytes);
        }
        let Some(size) = block_size(bytes) else { return std::ptr::null_mut() };
        let (block, now) = {
            let mut heap = self.0.borrow_mut();
            let block = heap.block_at(address);
            let now = heap.size(block);
            if size > now && !heap.admit(size - now) {
                return std::ptr::null_mut();
            }
            if heap.resize(block, size) {
                heap.blocks.in_use = heap.blocks.in_use - now + heap.size(block);
                return address;
            }
            (block, now)
        };
        let moved = self.alloc(bytes);
        if !moved.is_null() {
            // SAFETY: both blocks are in use, and the old one is the shorter: it would not have had to move otherwise.
            unsafe { std::ptr::copy_nonoverlapping(address, moved, now - HEADER) };
            let mut heap = self.0.borrow_mut();
            heap.blocks.in_use -= now;
            heap.insert(block, now);
        }
        moved
    }

    unsafe fn usable_size(address: *mut u8) -> usize {
        // SAFETY: the caller's block lies behind its header.
        let size = unsafe { address.sub(HEADER).cast::<usize>().read() };
        size - HEADER
    }
}

/// The size of a block with this much room. `None`: no block is that large.
fn block_size(bytes: usize) -> Option<usize> {
    let size = bytes.checked_add(HEADER + UNIT - 1)? & !(UNIT - 1);
    (size < 1 << (COARSE - 1)).then_some(size.max(BLOCK_MIN))
}

/// The list that a free block of this size stands in.
fn class_of(size: usize) -> (usize, usize) {
    let coarse = size.ilog2();
    (coarse as usize, (size >> (coarse - FINE_BITS)) & (FINE - 1))
}

/// The first list in which every block is at least this large.
fn class_above(size: usize) -> (usize, usize) {
    let step = 1usize << (size.ilog2() - FINE_BITS);
    class_of(size + step - 1)
}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, PAGE).expect("a multiple of pages, far from the end of memory")
}

/// Address space; pages come when they are touched.
fn reserve(capacity: usize) -> *mut u8 {
    if capacity == 0 {
        return std::ptr::null_mut();
    }
    // SAFETY: the size is not zero.
    unsafe { std::alloc::alloc(layout(capacity)) }
}

#[cfg(target_os = "linux")]
fn release(from: *mut u8, length: usize) {
    // SAFETY: whole pages of an allocation of ours, whose content nobody needs. That it may fail is fine: they stay.
    unsafe {
        libc::madvise(from.cast(), length, libc::MADV_DONTNEED);
    }
}

#[cfg(not(target_os = "linux"))]
fn release(_from: *mut u8, _length: usize) {}

#[cfg(test)]
mod tests;
