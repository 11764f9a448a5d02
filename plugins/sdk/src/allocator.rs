//! The plugin's memory: an arena that only grows, since an instance lives for one delivery.
//!
//! 32 KiB of static memory serve the usual delivery: growing linear memory costs system calls in the
//! host for every instance, zeroed pages that are already there cost none. A delivery that needs more
//! grows linear memory and goes on there. Nothing is ever given back: with a release that does nothing
//! the compiler removes all code that drops values. The block last handed out grows in place, which
//! covers buffers. The only hand-written `unsafe` of the SDK.
#![allow(unsafe_code, reason = "an allocator hands out raw memory")]

use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32::{memory_grow, unreachable};
use core::cell::{Cell, UnsafeCell};
use core::ptr;

const ARENA_BYTES: usize = 32 * 1024;
const PAGE_BYTES: usize = 64 * 1024;

#[global_allocator]
static ALLOCATOR: Arena = Arena {
    memory: UnsafeCell::new([0; ARENA_BYTES]),
    top: Cell::new(0),
    end: Cell::new(0),
};

/// A bump allocator. `top` and `end` are addresses; both are 0 before the first allocation.
struct Arena {
    memory: UnsafeCell<[u8; ARENA_BYTES]>,
    top: Cell<usize>,
    end: Cell<usize>,
}

// SAFETY: the target has no threads, and no method calls code that could allocate while it runs.
unsafe impl Sync for Arena {}

impl Arena {
    /// Reserves `size` bytes at a multiple of `align`; traps where the memory's limit is reached.
    fn bump(&self, size: usize, align: usize) -> usize {
        let start = self.top.get().next_multiple_of(align);
        if self.end.get() == 0 {
            self.open();
            return self.bump(size, align);
        }
        if size > self.end.get().saturating_sub(start) {
            self.grow(size.saturating_add(align));
            return self.bump(size, align);
        }
        self.top.set(start + size);
        start
    }

    fn open(&self) {
        self.top.set(self.memory.get() as usize);
        self.end.set(self.memory.get() as usize + ARENA_BYTES);
    }

    /// Adds pages for at least `size` bytes. Pages that follow the present block extend it.
    fn grow(&self, size: usize) {
        let pages = size.div_ceil(PAGE_BYTES);
        let previous = memory_grow::<0>(pages);
        if previous == usize::MAX {
            // The host reports the trap as this delivery's failure; nothing here could go on.
            unreachable()
        }
        let start = previous * PAGE_BYTES;
        if start != self.end.get() {
            self.top.set(start);
        }
        self.end.set(start + pages * PAGE_BYTES);
    }

    fn fits_in_place(&self, address: usize, old: usize, new: usize) -> bool {
        address + old == self.top.get() && new <= self.end.get() - address
    }
}

// SAFETY: `bump` returns aligned addresses of ranges that it hands out once, within memory that is
// either the arena's static or pages that `memory.grow` added; `realloc` moves `top` only where the
// block is the last one, so no live block lies above it.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.bump(layout.size(), layout.align()) as *mut u8
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size <= layout.size() {
            return block;
        }
        let address = block as usize;
        if self.fits_in_place(address, layout.size(), size) {
            self.top.set(address + size);
            return block;
        }
        let moved = self.bump(size, layout.align()) as *mut u8;
        // SAFETY: the new block is disjoint from the old one and longer than it.
        unsafe { ptr::copy_nonoverlapping(block, moved, layout.size()) };
        moved
    }
}
