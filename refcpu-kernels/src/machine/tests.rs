use super::*;
use crate::region::{self, Builder, RegionError, Val};
use crate::tile::TileOp;
use crate::{DType, Dst, Pool, Src};

/// The number of elements of the arrays: more than the lanes of a vector, and not a multiple of them.
const N: usize = 21;

/// Returns memory that is aligned for every element type.
fn words(bytes: &[u8]) -> Vec<u128> {
    bytes
        .chunks(16)
        .map(|c| {
            let mut word = [0; 16];
            word[..c.len()].copy_from_slice(c);
            u128::from_le_bytes(word)
        })
        .collect()
}

fn bytes_of(words: &[u128], len: usize) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).take(len).collect()
}

fn with_src<R>(bytes: &[u8], dtype: DType, dims: &[usize], work: impl FnOnce(Src<'_>) -> R) -> R {
    let words = words(bytes);
    // SAFETY: the words are aligned for every element, hold the array's bytes and live as long as the view.
    work(unsafe { Src::from_raw(std::ptr::NonNull::from(&*words).cast(), dtype, dims) })
}

/// Returns small numbers of any type, of both signs and zero.
fn elements(dtype: DType, seed: usize, count: usize) -> Vec<u8> {
    let mut b = Builder::new(&[count]);
    let i = b.iota(DType::S32, 0).unwrap();
    let constant = |b: &mut Builder, v: i32| b.constant(DType::S32, u128::from(v.cast_unsigned())).unwrap();
    let (factor, shift) = (constant(&mut b, 7 + 6 * seed as i32), constant(&mut b, 11));
    let (modulus, middle) = (constant(&mut b, 23), constant(&mut b, 9));
    let v = b.op(TileOp::Multiply, &[i, factor]).unwrap();
    let v = b.op(TileOp::Add, &[v, shift]).unwrap();
    let v = b.op(TileOp::Remainder, &[v, modulus]).unwrap();
    let v = b.op(TileOp::Subtract, &[v, middle]).unwrap();
    let v = if dtype.is_float() || dtype.is_complex() {
        let f = b.convert(v, DType::F32).unwrap();
        let quarter = b.constant_f64(DType::F32, 0.37).unwrap();
        b.op(TileOp::Multiply, &[f, quarter]).unwrap()
    } else {
        v
    };
    let v = b.convert(v, dtype).unwrap();
    b.output(v).unwrap();
    let mut out = vec![0u128; (count * dtype.size()).div_ceil(16)];
    let dims = [count];
    // SAFETY: as in `with_src`; nothing else uses the words while the view exists.
    let dst = unsafe { Dst::from_raw(std::ptr::NonNull::from(&mut *out).cast(), dtype, &dims) };
    region::run(&Pool::inline(), &b.finish().unwrap(), &[], &mut [dst]);
    bytes_of(&out, count * dtype.size())
}

/// Returns the result of a function of three arrays as a region.
fn by_region(
    dtypes: [DType; 3],
    inputs: &[Vec<u8>; 3],
    f: &dyn Fn(&mut Builder, [Val; 3]) -> Result<Val, RegionError>,
) -> Option<(DType, Vec<u8>)> {
    let mut b = Builder::new(&[N]);
    let v = dtypes.map(|d| b.linear_input(d).unwrap());
    let r = f(&mut b, v).ok()?;
    b.output(r).ok()?;
    let region = b.finish().ok()?;
    let dtype = r.dtype();
    let mut out = vec![0u128; (N * dtype.size()).div_ceil(16)];
    let dims = [N];
    with_src(&inputs[0], dtypes[0], &dims, |x| {
        with_src(&inputs[1], dtypes[1], &dims, |y| {
            with_src(&inputs[2], dtypes[2], &dims, |z| {
                // SAFETY: as in `elements`.
                let dst = unsafe { Dst::from_raw(std::ptr::NonNull::from(&mut *out).cast(), dtype, &dims) };
                region::run(&Pool::inline(), &region, &[x, y, z], &mut [dst]);
            });
        });
    });
    Some((dtype, bytes_of(&out, N * dtype.size())))
}

/// Compiles a program to machine code, which its runs then use.
fn compile(code: &Code) {
    let supported = crate::isa::level() >= crate::isa::Level::Avx2;
    assert_eq!(code.native.compiled(&code.program).is_some(), supported, "{code:?}");
}

/// Returns the result of the function as a program: on whole arrays, or element by element in a loop.
fn by_machine(
    dtypes: [DType; 3],
    inputs: &[Vec<u8>; 3],
    result: DType,
    looped: bool,
    compiled: bool,
    f: &dyn Fn(&mut Builder, [Val; 3]) -> Result<Val, RegionError>,
) -> Vec<u8> {
    let mut asm = Assembler::new(3, 1);
    let arrays = [0, 1, 2].map(|k| asm.read(k, dtypes[k], N).unwrap());
    let out = asm.write(0, result, N).unwrap();
    asm.enter();
    if looped {
        let i = asm.cells(DType::S32, 1).unwrap();
        let zero = asm.constant(DType::S32, &0i32.to_le_bytes()).unwrap();
        asm.copy(zero, i).unwrap();
        let top = asm.label();
        asm.bind(top);
        asm.leave();
        asm.enter();
        let start = [Start { index: i, limit: N - 1, step: 1 }];
        let values = [0, 1, 2].map(|k| {
            let place = asm.cells(dtypes[k], 1).unwrap();
            asm.load(arrays[k], &start, &[0], 1, place).unwrap();
            asm.value(place).unwrap()
        });
        let r = f(asm.builder(), values).unwrap();
        let place = asm.place(r).unwrap();
        asm.store(out, &start, &[0], 1, Outside::Clamp, place).unwrap();
        let old = asm.value(i).unwrap();
        let b = asm.builder();
        let one = b.constant(DType::S32, 1).unwrap();
        let next = b.op(TileOp::Add, &[old, one]).unwrap();
        let next = asm.place(next).unwrap();
        asm.copy_all(&[(next, i)]).unwrap();
        asm.leave();
        asm.enter();
        let now = asm.value(i).unwrap();
        let b = asm.builder();
        let end = b.constant(DType::S32, N as u128).unwrap();
        let more = b.compare(crate::region::Direction::Lt, crate::region::Order::Partial, now, end).unwrap();
        let more = asm.place(more).unwrap();
        asm.jump_if(more, top).unwrap();
    } else {
        let values = [0, 1, 2].map(|k| {
            let place = asm.cells(dtypes[k], N).unwrap();
            asm.load(arrays[k], &[], &[0], N, place).unwrap();
            asm.value(place).unwrap()
        });
        let r = f(asm.builder(), values).unwrap();
        let place = asm.full(r, N).unwrap();
        asm.store(out, &[], &[0], N, Outside::Clamp, place).unwrap();
    }
    asm.leave();
    let code = asm.finish().unwrap();
    if compiled {
        compile(&code);
    }
    let mut words = vec![0u128; (N * result.size()).div_ceil(16)];
    let dims = [N];
    with_src(&inputs[0], dtypes[0], &dims, |x| {
        with_src(&inputs[1], dtypes[1], &dims, |y| {
            with_src(&inputs[2], dtypes[2], &dims, |z| {
                // SAFETY: as in `elements`.
                let dst =
                    unsafe { Dst::from_raw(std::ptr::NonNull::from(&mut *words).cast(), result, &dims) };
                let mut call = |_: usize, _: &[Src<'_>], _: &mut [Dst<'_>]| Err("nothing is called");
                assert_eq!(run(&code, &[x, y, z], &mut [dst], &mut call, &|| false), Ok(true));
            });
        });
    });
    bytes_of(&words, N * result.size())
}

/// Checks that a function returns the same bits as a region and as both kinds of program. Returns `false` if
/// the function does not exist.
fn same(
    what: &str,
    dtypes: [DType; 3],
    f: &dyn Fn(&mut Builder, [Val; 3]) -> Result<Val, RegionError>,
) -> bool {
    let inputs = [0, 1, 2].map(|k| elements(dtypes[k], k, N));
    let Some((result, expected)) = by_region(dtypes, &inputs, f) else { return false };
    for (looped, compiled) in [(false, false), (true, false), (false, true), (true, true)] {
        let got = by_machine(dtypes, &inputs, result, looped, compiled, f);
        assert_eq!(got, expected, "{what} of {dtypes:?}, looped: {looped}, compiled: {compiled}");
    }
    true
}

#[test]
fn every_operation_gives_the_bits_that_a_region_gives() {
    let mut tried = 0;
    for dtype in DType::ALL.iter().copied() {
        for op in TileOp::ALL.iter().copied() {
            let f = |b: &mut Builder, v: [Val; 3]| b.op(op, &v[..op.arity()]);
            tried += usize::from(same(&format!("{op:?}"), [dtype; 3], &f));
        }
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn comparisons_selections_and_conversions_give_the_bits_that_a_region_gives() {
    use crate::region::{Direction, Order};
    for dtype in DType::ALL.iter().copied() {
        for direction in
            [Direction::Eq, Direction::Ne, Direction::Ge, Direction::Gt, Direction::Le, Direction::Lt]
        {
            for order in [Order::Partial, Order::Total] {
                let f = |b: &mut Builder, [x, y, z]: [Val; 3]| {
                    let p = b.compare(direction, order, x, y)?;
                    b.select(p, z, x)
                };
                same("compare", [dtype; 3], &f);
            }
        }
        same("clamp", [dtype; 3], &|b, [x, y, z]| b.clamp(x, y, z));
        for to in DType::ALL.iter().copied() {
            same("convert", [dtype; 3], &|b, [x, _, _]| b.convert(x, to));
        }
    }
}

#[test]
fn products_are_rounded_before_they_are_added() {
    for dtype in [DType::F32, DType::F64, DType::S32, DType::U32, DType::S64] {
        for swapped in [false, true] {
            for op in [TileOp::Add, TileOp::Subtract] {
                let f = |b: &mut Builder, [x, y, z]: [Val; 3]| {
                    let p = b.op(TileOp::Multiply, &[x, y])?;
                    b.op(op, &if swapped { [z, p] } else { [p, z] })
                };
                assert!(same("product and sum", [dtype; 3], &f));
            }
        }
    }
}

#[test]
fn a_window_outside_is_moved_or_left_out() {
    for (index, outside, expected) in [
        (-3i64, Outside::Clamp, [9, 8, 0, 0]),
        (2, Outside::Clamp, [0, 0, 9, 8]),
        (i64::MAX, Outside::Clamp, [0, 0, 9, 8]),
        (1, Outside::Skip, [0, 9, 8, 0]),
        (3, Outside::Skip, [0; 4]),
        (-1, Outside::Skip, [0; 4]),
    ] {
        let mut asm = Assembler::new(0, 1);
        let out = asm.write(0, DType::U8, 4).unwrap();
        let at = asm.constant(DType::S64, &index.to_le_bytes()).unwrap();
        let part = asm.constant(DType::U8, &[9, 8]).unwrap();
        let start = [Start { index: at, limit: 2, step: 1 }];
        asm.store(out, &start, &[0], 2, outside, part).unwrap();
        let code = asm.finish().unwrap();
        let mut bytes = [0u8; 4];
        let dims = [4];
        let mut call = |_: usize, _: &[Src<'_>], _: &mut [Dst<'_>]| Err(());
        run(&code, &[], &mut [Dst::new(&mut bytes, DType::U8, &dims)], &mut call, &|| false).unwrap();
        assert_eq!(bytes, expected, "{index} {outside:?}");
    }
}

#[test]
fn what_would_leave_an_array_is_refused() {
    let mut asm = Assembler::new(1, 0);
    let array = asm.read(0, DType::F32, 10).unwrap();
    let place = asm.cells(DType::F32, 2).unwrap();
    let index = asm.cells(DType::S32, 1).unwrap();
    let start = |limit| [Start { index, limit, step: 2 }];
    assert!(asm.load(array, &start(4), &[0], 2, place).is_ok());
    assert!(asm.load(array, &start(5), &[0], 2, place).is_err());
    assert!(asm.load(array, &start(4), &[1], 2, place).is_err());
    assert!(asm.load(array, &[], &[0], 3, place).is_err());
    assert!(asm.store(array, &start(4), &[0], 2, Outside::Clamp, place).is_err());
    assert!(asm.read(1, DType::F32, 1).is_err());
    assert!(asm.write(0, DType::F32, 1).is_err());
}

#[test]
fn a_run_that_is_stopped_says_so() {
    let mut asm = Assembler::new(0, 0);
    let always = asm.constant(DType::Pred, &[1]).unwrap();
    let top = asm.label();
    asm.bind(top);
    asm.jump_if(always, top).unwrap();
    let code = asm.finish().unwrap();
    let mut call = |_: usize, _: &[Src<'_>], _: &mut [Dst<'_>]| Ok::<(), ()>(());
    assert_eq!(run(&code, &[], &mut [], &mut call, &|| true), Ok(false));
    compile(&code);
    assert_eq!(run(&code, &[], &mut [], &mut call, &|| true), Ok(false));
}
