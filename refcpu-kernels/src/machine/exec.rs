//! The interpreter of programs.

use super::Code;
use super::native::{MachineCode, Native, Outcome};
use super::program::instr::{Instr, Op, with_ops};
use super::program::{Base, Operand, Outside, Place, Program, Window};
use crate::scratch::Scratch;
use crate::tile::{Int, Num};
use crate::{DType, Dst, Src};
use std::ptr::NonNull;

/// The number of loop iterations between two calls of `stop`, and after which machine code is considered.
const STEPS: u32 = 1024;

/// The caller of a program, which performs an action by number.
type Caller<'a, E> = dyn FnMut(usize, &[Src<'_>], &mut [Dst<'_>]) -> Result<(), E> + 'a;

/// Runs a program. `reads` and `writes` are its operands and results; results hold their initial values.
///
/// `call` performs an action that the program requests by number. `stop` is called at intervals; if it
/// returns `true`, the run ends early with incomplete results, and this function returns `false`.
///
/// # Errors
/// Returns the error of `call`.
///
/// # Panics
/// Panics if the arrays do not have the types and sizes that the program expects.
pub fn run<E>(
    code: &Code,
    reads: &[Src<'_>],
    writes: &mut [Dst<'_>],
    call: &mut Caller<'_, E>,
    stop: &dyn Fn() -> bool,
) -> Result<bool, E> {
    let (native, code) = (&*code.native, &code.program);
    assert!(
        reads.len() == code.reads && writes.len() == code.writes,
        "the program has {} operands and {} results, but got {} and {}",
        code.reads,
        code.writes,
        reads.len(),
        writes.len()
    );
    let mut scratch = Scratch::new::<u64>(code.cells.len());
    let cells = scratch.ptr::<u64>();
    // SAFETY: the block has room for this number of cells, and nothing else uses it.
    unsafe { std::ptr::copy_nonoverlapping(code.cells.as_ptr(), cells, code.cells.len()) };
    let bases = code
        .arrays
        .iter()
        .map(|spec| {
            let (ptr, dtype, len) = match spec.base {
                Base::Read(k) => (reads[k].as_ptr().cast_mut(), reads[k].dtype(), reads[k].len()),
                Base::Write(k) => (writes[k].as_mut_ptr(), writes[k].dtype(), writes[k].len()),
                // SAFETY: the assembler allocated these cells.
                Base::Cells(cell) => (unsafe { cells.add(usize::from(cell)).cast() }, spec.dtype, spec.len),
            };
            assert!(
                dtype == spec.dtype && len == spec.len,
                "found {len} elements of {dtype:?}; the program expects {} of {:?}",
                spec.len,
                spec.dtype
            );
            ptr
        })
        .collect();
    let machine = Machine { code, native, cells, bases };
    // SAFETY: cells and arrays have the sizes and types that the program expects (checked above), and nothing
    // else uses them during the run.
    unsafe { machine.run(call, stop) }
}

/// The instruction at which a run paused, or `None` if the program has ended.
type Paused<E> = Result<Option<u16>, E>;

/// The state of a run.
struct Machine<'a> {
    code: &'a Program,
    native: &'a Native,
    cells: *mut u64,
    /// The address of the first byte of each array.
    bases: Vec<*mut u8>,
}

/// Reads the index in a cell. Values that are too large saturate.
///
/// # Safety
/// The cell must hold an integer of that type.
#[inline(always)]
unsafe fn index(cell: *const u64, dtype: DType) -> i64 {
    // SAFETY: a cell has eight bytes; the rest is guaranteed by the caller.
    unsafe {
        match dtype {
            DType::S32 => i64::from(*cell.cast::<i32>()),
            DType::S64 => *cell.cast::<i64>(),
            DType::U64 => i64::try_from(*cell).unwrap_or(i64::MAX),
            DType::U32 => i64::from(*cell.cast::<u32>()),
            DType::S16 => i64::from(*cell.cast::<i16>()),
            DType::U16 => i64::from(*cell.cast::<u16>()),
            DType::S8 | DType::S4 | DType::S2 => i64::from(*cell.cast::<i8>()),
            _ => i64::from(*cell.cast::<u8>()),
        }
    }
}

impl Machine<'_> {
    fn at(&self, place: &Place) -> *mut u8 {
        self.cells.wrapping_add(usize::from(place.cell)).cast()
    }

    /// Returns the first byte of a window, or `None` if the window is out of bounds and must be skipped.
    ///
    /// # Safety
    /// See [`Self::run`].
    #[inline(always)]
    unsafe fn window(&self, w: &Window) -> Option<*mut u8> {
        let mut at = 0;
        for (cell, dtype, limit, step) in &w.starts {
            // SAFETY: the cell is one of the program's (`Code::check`).
            let wanted = unsafe { index(self.cells.add(usize::from(*cell)), *dtype) };
            let inside = wanted.clamp(0, *limit);
            if inside != wanted && w.outside == Outside::Skip {
                return None;
            }
            at += inside as usize * step;
        }
        // SAFETY: indices within their limits keep the window inside its array (checked when it was created).
        Some(unsafe { self.bases[usize::from(w.array.0)].add(at) })
    }

    /// # Safety
    /// See [`Self::run`].
    #[inline(never)]
    unsafe fn load(&self, number: u16, to: *mut u8) {
        let w = &self.code.windows[usize::from(number)];
        // SAFETY: runs lie inside the array and inside the value's cells (checked when the window was
        // created). The cells of a loaded value are disjoint from the array even if that is in cells, because
        // each value has its own cells.
        unsafe {
            let Some(from) = self.window(w) else { return };
            match (w.run, &*w.runs) {
                (4, [at]) => *to.cast::<u32>() = from.add(*at).cast::<u32>().read_unaligned(),
                (8, [at]) => *to.cast::<u64>() = from.add(*at).cast::<u64>().read_unaligned(),
                (run, runs) => {
                    for (i, at) in runs.iter().enumerate() {
                        std::ptr::copy_nonoverlapping(from.add(*at), to.add(i * run), run);
                    }
                }
            }
        }
    }

    /// # Safety
    /// See [`Self::run`].
    #[inline(never)]
    unsafe fn store(&self, number: u16, from: *const u8) {
        let w = &self.code.windows[usize::from(number)];
        // SAFETY: as in `load`; read-only arrays have no stores.
        unsafe {
            let Some(to) = self.window(w) else { return };
            match (w.run, &*w.runs) {
                (4, [at]) => to.add(*at).cast::<u32>().write_unaligned(*from.cast::<u32>()),
                (8, [at]) => to.add(*at).cast::<u64>().write_unaligned(*from.cast::<u64>()),
                (run, runs) => {
                    for (i, at) in runs.iter().enumerate() {
                        std::ptr::copy(from.add(i * run), to.add(*at), run);
                    }
                }
            }
        }
    }

    /// Executes an instruction that takes so long that another dispatch does not matter.
    ///
    /// # Safety
    /// See [`Self::run`]; the instruction is one of the program.
    #[inline(never)]
    unsafe fn array_op(&self, i: &Instr) {
        let code = self.code;
        let at = |c: u16| self.cells.wrapping_add(usize::from(c)).cast::<u8>();
        let x = usize::from(i.x);
        // SAFETY: cells and table entries belong to the program (`Code::check`), and match each other.
        unsafe {
            match i.op {
                Op::Kernel => code.kernels[x].kernel.call(at(i.dst), [at(i.a), at(i.b), at(i.c)], 1),
                Op::Vector => {
                    let v = &code.vectors[x];
                    v.kernel.call(self.at(&v.dst), v.src.map(|s| self.at(&s)), v.n);
                }
                Op::Copy => {
                    let (to, from) = &code.copies[x];
                    std::ptr::copy(self.at(from), self.at(to), to.bytes());
                }
                _ => {
                    debug_assert!(i.op == Op::Splat);
                    let (to, from) = &code.splats[x];
                    crate::region::splat(self.at(to), self.at(from), to.dtype.size(), to.len);
                }
            }
        }
    }

    /// Returns the target of a switch: entry `k` of its table, or the last one if there is no such entry.
    #[inline(never)]
    fn switch(&self, table: u16, k: i32) -> u16 {
        let to = &self.code.switches[usize::from(table)];
        let last = to.len() - 1;
        to[usize::try_from(k).map_or(last, |k| k.min(last))]
    }

    /// # Safety
    /// See [`Self::run`].
    #[inline(never)]
    unsafe fn call<E>(&self, number: u16, call: &mut Caller<'_, E>) -> Result<(), E> {
        let c = &self.code.calls[usize::from(number)];
        let base = |o: &Operand| {
            NonNull::new(self.bases[usize::from(o.array.0)]).expect("the address of an array is not null")
        };
        // SAFETY: arrays have the types and sizes of their operands (checked when the call was created).
        // Results are in cells that are disjoint from all other arrays of the call, and nothing else accesses
        // them during the call.
        let srcs: Vec<Src<'_>> =
            c.reads.iter().map(|o| unsafe { Src::from_raw(base(o), o.dtype, &o.dims) }).collect();
        // SAFETY: as above.
        let mut dsts: Vec<Dst<'_>> =
            c.writes.iter().map(|o| unsafe { Dst::from_raw(base(o), o.dtype, &o.dims) }).collect();
        call(c.what, &srcs, &mut dsts)
    }

    /// Runs the program, as machine code once that exists.
    ///
    /// # Safety
    /// `cells` and `bases` must point to the cells and arrays that the program was created for, which nothing
    /// else uses.
    unsafe fn run<E>(&self, call: &mut Caller<'_, E>, stop: &dyn Fn() -> bool) -> Result<bool, E> {
        let mut next = 0;
        let mut steps = 0;
        loop {
            let machine_code = self.native.after(self.code, steps);
            steps = if machine_code.is_some() { 0 } else { STEPS };
            let paused = match machine_code {
                // SAFETY: guaranteed by the caller.
                Some(code) => unsafe { self.execute(code, next, call)? },
                // SAFETY: as above.
                None => unsafe { self.interpret(next, &mut steps, call)? },
            };
            match paused {
                None => {
                    self.native.after(self.code, steps);
                    return Ok(true);
                }
                Some(_) if stop() => return Ok(false),
                Some(instruction) => next = instruction,
            }
        }
    }

    /// Executes machine code from an instruction.
    ///
    /// # Safety
    /// See [`Self::run`].
    unsafe fn execute<E>(&self, program: &MachineCode, start: u16, call: &mut Caller<'_, E>) -> Paused<E> {
        let mut result = Ok(());
        let mut interpreted = |number: u32| {
            let i = &self.code.instrs[number as usize];
            // SAFETY: the instruction is one of the program. Machine code keeps cells in memory for the
            // instructions that it does not execute itself.
            unsafe {
                match i.op {
                    Op::Load => self.load(i.x, self.cells.add(usize::from(i.dst)).cast()),
                    Op::Store => self.store(i.x, self.cells.add(usize::from(i.a)).cast()),
                    Op::Call => result = self.call(i.x, call),
                    _ => self.array_op(i),
                }
            }
            u64::from(result.is_err())
        };
        // SAFETY: guaranteed by the caller.
        let outcome = unsafe { program.run(self.cells, &self.bases, start, &mut interpreted) };
        result?;
        Ok(match outcome {
            Outcome::Paused(instruction) => Some(instruction),
            Outcome::Ended | Outcome::Failed => None,
        })
    }

    /// Interprets the program from an instruction. If the program ends before it pauses, `steps` becomes the
    /// number of iterations.
    ///
    /// # Safety
    /// See [`Self::run`].
    #[allow(
        unstable_name_collisions,
        reason = "`maximum` and `minimum` are the methods of `Num`, which follow StableHLO"
    )]
    unsafe fn interpret<E>(&self, start: u16, steps: &mut u32, call: &mut Caller<'_, E>) -> Paused<E> {
        // The state that every instruction needs stays in registers. Therefore rare operations are in other
        // functions, instructions are read in place, and all frequent ones are in this one function.
        let (instrs, cells) = (self.code.instrs.as_ptr(), self.cells);
        let mut left = STEPS;
        let mut next = instrs.wrapping_add(usize::from(start));
        macro_rules! cell {
            ($i:expr, $t:ty) => {
                *cells.add(usize::from($i)).cast::<$t>()
            };
        }
        macro_rules! go {
            ($to:expr) => {
                next = instrs.add(usize::from($to))
            };
        }
        macro_rules! again {
            ($to:expr) => {
                go!($to);
                left -= 1;
                if left == 0 {
                    return Ok(Some($to));
                }
            };
        }
        macro_rules! execute {
            (
                binary { $($bin:ident $bin_t:ident $bin_f:ident $tile_op:ident $($bin_ty:ident)|+;)* }
                compare { $($cmp:ident $jump:ident $cmp_t:ident $cmp_op:tt $relation:ident $($cmp_ty:ident)|+;)* }
                convert { $($cvt:ident $from:ident $to:ident $($from_ty:ident)|+ => $($to_ty:ident)|+;)* }
                fused { $($fused:ident $fused_t:ident |$a:ident, $b:ident, $c:ident| $fused_e:expr;)* }
            ) => {
                loop {
                    // SAFETY: the last instruction ends the program and jumps stay inside it (`Code::check`),
                    // so there is a next instruction.
                    let i: &Instr = unsafe { &*next };
                    next = next.wrapping_add(1);
                    // SAFETY: every cell that an instruction names belongs to the program (`Code::check`),
                    // has eight bytes aligned to eight, and holds a value of the type that the instruction
                    // was chosen for. Indices of tables are in bounds.
                    unsafe {
                        match i.op {
                            $(Op::$bin => {
                                cell!(i.dst, $bin_t) = cell!(i.a, $bin_t).$bin_f(cell!(i.b, $bin_t));
                            })*
                            $(Op::$cmp => {
                                cell!(i.dst, u8) = u8::from(cell!(i.a, $cmp_t) $cmp_op cell!(i.b, $cmp_t));
                            })*
                            $(Op::$jump => {
                                if cell!(i.a, $cmp_t) $cmp_op cell!(i.b, $cmp_t) {
                                    again!(i.x);
                                }
                            })*
                            $(Op::$cvt => {
                                cell!(i.dst, $to) = cell!(i.a, $from) as $to;
                            })*
                            $(Op::$fused => {
                                let ($a, $b, $c): ($fused_t, $fused_t, $fused_t) =
                                    (cell!(i.a, $fused_t), cell!(i.b, $fused_t), cell!(i.c, $fused_t));
                                cell!(i.dst, $fused_t) = $fused_e;
                            })*
                            Op::Mov => cell!(i.dst, u64) = cell!(i.a, u64),
                            Op::Select => {
                                let from = if cell!(i.a, u8) != 0 { i.b } else { i.c };
                                cell!(i.dst, u64) = cell!(from, u64);
                            }
                            Op::Kernel | Op::Vector | Op::Copy | Op::Splat => self.array_op(i),
                            Op::Load => self.load(i.x, cells.add(usize::from(i.dst)).cast()),
                            Op::Store => self.store(i.x, cells.add(usize::from(i.a)).cast()),
                            Op::Call => self.call(i.x, call)?,
                            Op::Jump => go!(i.x),
                            Op::JumpIf => {
                                if cell!(i.a, u8) != 0 {
                                    again!(i.x);
                                }
                            }
                            Op::JumpIfNot => {
                                if cell!(i.a, u8) == 0 {
                                    go!(i.x);
                                }
                            }
                            Op::Switch => go!(self.switch(i.x, cell!(i.a, i32))),
                            Op::AddJumpLtS32 => {
                                let sum = cell!(i.dst, i32).wrapping_add(cell!(i.a, i32));
                                cell!(i.dst, i32) = sum;
                                if sum < cell!(i.b, i32) {
                                    again!(i.x);
                                }
                            }
                            Op::AddJumpLtS64 => {
                                let sum = cell!(i.dst, i64).wrapping_add(cell!(i.a, i64));
                                cell!(i.dst, i64) = sum;
                                if sum < cell!(i.b, i64) {
                                    again!(i.x);
                                }
                            }
                            Op::End => {
                                *steps = STEPS - left;
                                return Ok(None);
                            }
                            Op::Nop => {}
                        }
                    }
                }
            };
        }
        with_ops!(execute)
    }
}
