//! Blocks under random use, against what was written to them.

use super::*;

/// A block, its length and what it is filled with.
type Held = (*mut u8, usize, u8);

fn heap(capacity: usize) -> SharedHeap {
    SharedHeap(Rc::new(RefCell::new(Heap::new(capacity).expect("memory"))))
}

/// Walks all blocks: sizes add up, neighbours know each other, no two free ones touch, lists hold exactly these.
fn check(heap: &Heap) {
    let (mut at, mut before, mut free, mut was_free) = (0, 0, 0, false);
    while at < heap.blocks.top {
        assert_eq!(heap.read(at + 8), before);
        assert!(!(was_free && heap.is_free(at)), "two free blocks side by side");
        (before, was_free) = (heap.size(at), heap.is_free(at));
        free += usize::from(was_free);
        at += before;
    }
    assert_eq!((at, before, was_free), (heap.blocks.top, heap.blocks.last, false));
    let mut listed = 0;
    for (coarse, row) in heap.blocks.first.iter().enumerate() {
        for (fine, first) in row.iter().enumerate() {
            assert_eq!(*first != NONE, heap.blocks.fine[coarse] & (1 << fine) != 0);
            let mut block = *first;
            while block != NONE {
                assert!(heap.is_free(block) && class_of(heap.size(block)) == (coarse, fine));
                listed += 1;
                block = heap.read(block + HEADER);
            }
        }
        assert_eq!(heap.blocks.fine[coarse] != 0, heap.blocks.coarse & (1 << coarse) != 0);
    }
    assert_eq!(listed, free);
}

fn random(seed: &mut u64) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed as usize
}

#[test]
fn blocks_keep_what_is_written_to_them_whatever_happens_around_them() {
    for seed in 1..40u64 {
        let (mut shared, mut state) = (heap(1 << 20), seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut held: Vec<Held> = Vec::new();
        let mut saved: Option<(Saved, Vec<Held>)> = None;
        for step in 0..2_000 {
            let bytes = match random(&mut state) % 4 {
                0 => random(&mut state) % 60_000,
                _ => random(&mut state) % 900,
            } + 1;
            let mark = step as u8;
            let verify = |address: *mut u8, bytes: usize, mark: u8| {
                // SAFETY: the block is in use and this long.
                let bytes = unsafe { std::slice::from_raw_parts(address, bytes) };
                assert!(bytes.iter().all(|byte| *byte == mark), "seed {seed}, step {step}");
            };
            match random(&mut state) % 8 {
                0..=3 => {
                    let address = shared.alloc(bytes);
                    if !address.is_null() {
                        assert!(address.addr().is_multiple_of(UNIT));
                        // SAFETY: the block is in use and this long.
                        unsafe {
                            assert!(SharedHeap::usable_size(address) >= bytes);
                            address.write_bytes(mark, bytes);
                        }
                        held.push((address, bytes, mark));
                    }
                }
                4..=5 if !held.is_empty() => {
                    let (address, bytes, mark) = held.swap_remove(random(&mut state) % held.len());
                    verify(address, bytes, mark);
                    // SAFETY: the block is in use.
                    unsafe { shared.dealloc(address) };
                }
                6 if !held.is_empty() => {
                    let place = random(&mut state) % held.len();
                    let (address, old, old_mark) = held[place];
                    // SAFETY: the block is in use; what is read is what both lengths have.
                    unsafe {
                        let moved = shared.realloc(address, bytes);
                        if !moved.is_null() {
                            verify(moved, old.min(bytes), old_mark);
                            moved.write_bytes(mark, bytes);
                            held[place] = (moved, bytes, mark);
                        }
                    }
                }
                7 if step == 700 || saved.is_none() && step > 700 => {
                    saved = Some((shared.0.borrow().save(), held.clone()));
                }
                7 if step % 50 == 0 => {
                    if let Some((saved, then)) = &saved {
                        shared.0.borrow_mut().restore(saved);
                        shared.0.borrow_mut().give_back();
                        held.clone_from(then);
                        held.iter().for_each(|(address, bytes, mark)| verify(*address, *bytes, *mark));
                    }
                }
                _ => {}
            }
            if step % 16 == 0 {
                check(&shared.0.borrow());
            }
        }
        for (address, _, _) in held {
            // SAFETY: the block is in use.
            unsafe { shared.dealloc(address) };
        }
        check(&shared.0.borrow());
        assert_eq!(shared.0.borrow().blocks.top, 0, "all memory is one again");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut shared = heap(64 * 1024);
    assert!(shared.alloc(64 * 1024).is_null());
    assert!(shared.alloc(usize::MAX - 8).is_null() && shared.calloc(usize::MAX, 2).is_null());
    let block = shared.alloc(60 * 1024);
    assert!(!block.is_null() && shared.alloc(8 * 1024).is_null());
    // SAFETY: the block is in use.
    unsafe {
        assert!(shared.realloc(block, 80 * 1024).is_null());
        shared.dealloc(block);
    }
    assert!(!shared.alloc(60 * 1024).is_null());
}

#[test]
fn zeroed_memory_is_zero_also_where_others_have_written() {
    let mut shared = heap(64 * 1024);
    let block = shared.alloc(1000);
    // SAFETY: the block is in use and this long.
    unsafe {
        block.write_bytes(7, 1000);
        shared.dealloc(block);
        let block = shared.calloc(10, 100);
        assert!(std::slice::from_raw_parts(block, 1000).iter().all(|byte| *byte == 0));
    }
}
