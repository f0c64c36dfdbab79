//! Times the kernels that move, sort, generate, transform and factor: `data_movement [name-part]`.
//!
//! Prints the median and the fastest of some runs into reused memory, in microseconds.

use refcpu_kernels::fft::{FftKind, fft};
use refcpu_kernels::index::{
    Combiner, GatherSpec, ScatterSpec, dynamic_slice, dynamic_update_slice, gather, scatter,
};
use refcpu_kernels::linalg::{
    TransposeA, TriangularSolve, cholesky, householder_product, qr, triangular_solve,
};
use refcpu_kernels::sort::{KeyOrder, SortKey, sort, sort_keys, top_k};
use refcpu_kernels::{DType, Dst, Element, Pool, ReduceOp, Src, copy, rng};
use std::time::Instant;

/// An owned array.
struct Array<T> {
    values: Vec<T>,
    dtype: DType,
    dims: Vec<usize>,
}

impl<T: Element> Array<T> {
    fn new(dtype: DType, dims: &[usize], make: impl FnMut(usize) -> T) -> Self {
        let values = (0..dims.iter().product::<usize>()).map(make).collect();
        Self { values, dtype, dims: dims.to_vec() }
    }

    fn src(&self) -> Src<'_> {
        let bytes = std::mem::size_of_val(&self.values[..]);
        // SAFETY: an `Element` has no padding, and the vector stays borrowed.
        let bytes = unsafe { std::slice::from_raw_parts(self.values.as_ptr().cast(), bytes) };
        Src::new(bytes, self.dtype, &self.dims)
    }

    fn dst(&mut self) -> Dst<'_> {
        let bytes = std::mem::size_of_val(&self.values[..]);
        // SAFETY: as above, borrowed mutably; every bit pattern is an `Element`.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.values.as_mut_ptr().cast(), bytes) };
        Dst::new(bytes, self.dtype, &self.dims)
    }
}

fn hash(i: usize) -> u64 {
    let x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn floats(dims: &[usize]) -> Array<f32> {
    Array::new(DType::F32, dims, |i| (hash(i) >> 40) as f32 / (1 << 23) as f32 - 1.0)
}

fn indices(dims: &[usize], limit: usize) -> Array<i32> {
    Array::new(DType::S32, dims, |i| ((hash(i) >> 32) as usize % limit) as i32)
}

fn zeros(dims: &[usize]) -> Array<f32> {
    Array::new(DType::F32, dims, |_| 0.0)
}

/// Runs `work` for about a quarter of a second and prints how long one run took.
fn time(filter: &str, name: &str, mut work: impl FnMut()) {
    if !name.contains(filter) {
        return;
    }
    work();
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < 5 || (begin.elapsed().as_millis() < 250 && times.len() < 20_000) {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_nanos() as f64 / 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!("{name:24} {:12.2} {:12.2}", times[times.len() / 2], times[0]);
}

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let pool = Pool::inline();
    let t = |name: &str, work: &mut dyn FnMut()| time(&filter, name, work);
    println!("{:24} {:>12} {:>12}", "", "median us", "fastest us");
    copies(&pool, &t);
    indexing(&pool, &t);
    sorts(&pool, &t);
    numbers(&pool, &t);
    factorisations(&pool, &t);
}

type Timer<'a> = dyn Fn(&str, &mut dyn FnMut()) + 'a;

fn copies(pool: &Pool, t: &Timer<'_>) {
    for (name, dims, permutation) in [
        ("transpose_2048", &[2048usize, 2048][..], &[1usize, 0][..]),
        ("transpose_1000x3000", &[1000, 3000], &[1, 0]),
        ("transpose_heads", &[4, 128, 8, 32], &[0, 2, 1, 3]),
        ("transpose_nhwc_nchw", &[8, 56, 56, 64], &[0, 3, 1, 2]),
        ("transpose_last_3", &[1 << 20, 3], &[1, 0]),
    ] {
        let input = floats(dims);
        let mut out = zeros(&permutation.iter().map(|p| dims[*p]).collect::<Vec<_>>());
        t(name, &mut || copy::transpose(pool, input.src(), out.dst(), permutation));
        if name == "transpose_2048" {
            let input = Array::new(DType::BF16, dims, |i| i as u16);
            let mut out = Array::new(DType::BF16, dims, |_| 0u16);
            t("transpose_2048_bf16", &mut || copy::transpose(pool, input.src(), out.dst(), permutation));
            let input = Array::new(DType::U8, dims, |i| i as u8);
            let mut out = Array::new(DType::U8, dims, |_| 0u8);
            t("transpose_2048_u8", &mut || copy::transpose(pool, input.src(), out.dst(), permutation));
            let input = Array::new(DType::F64, dims, |i| i as f64);
            let mut out = Array::new(DType::F64, dims, |_| 0f64);
            t("transpose_2048_f64", &mut || copy::transpose(pool, input.src(), out.dst(), permutation));
        }
    }
    let x = floats(&[1024, 1024]);
    let mut y = zeros(&[1024, 1024]);
    t("copy_1024", &mut || copy::copy(pool, x.src(), y.dst()));
    t("reverse_rows", &mut || copy::reverse(pool, x.src(), y.dst(), &[0]));
    t("reverse_columns", &mut || copy::reverse(pool, x.src(), y.dst(), &[1]));
    let mut wide = zeros(&[1024, 2048]);
    t("concatenate", &mut || copy::concatenate(pool, &[x.src(), x.src()], wide.dst(), 1));
    let zero = zeros(&[]);
    let mut padded = zeros(&[1026, 1028]);
    t("pad", &mut || copy::pad(pool, x.src(), zero.src(), padded.dst(), &[1, 2], &[1, 2], &[0, 0]));
    let mut half = zeros(&[512, 512]);
    t("slice_stride_2", &mut || copy::slice(pool, x.src(), half.dst(), &[0, 0], &[2, 2]));
    let row = floats(&[1024]);
    t("broadcast_rows", &mut || copy::broadcast_in_dim(pool, row.src(), y.dst(), &[1]));
    t("broadcast_columns", &mut || copy::broadcast_in_dim(pool, row.src(), y.dst(), &[0]));
}

fn indexing(pool: &Pool, t: &Timer<'_>) {
    let table = floats(&[50_000, 128]);
    let at = indices(&[64, 128, 1], 50_000);
    let mut out = zeros(&[64, 128, 128]);
    let rows = GatherSpec {
        offset_dims: &[2],
        collapsed_slice_dims: &[0],
        operand_batching_dims: &[],
        start_indices_batching_dims: &[],
        start_index_map: &[0],
        index_vector_dim: 2,
        slice_sizes: &[1, 128],
    };
    t("gather_embedding", &mut || gather(pool, table.src(), at.src(), out.dst(), &rows));
    let x = floats(&[2048, 1024]);
    let at = indices(&[2048, 64, 1], 1024);
    let mut out = zeros(&[2048, 64]);
    let along = GatherSpec {
        offset_dims: &[],
        collapsed_slice_dims: &[1],
        operand_batching_dims: &[0],
        start_indices_batching_dims: &[0],
        start_index_map: &[1],
        index_vector_dim: 2,
        slice_sizes: &[1, 1],
    };
    t("gather_along_axis", &mut || gather(pool, x.src(), at.src(), out.dst(), &along));
    let at = indices(&[500, 1], 1024);
    let mut out = zeros(&[2048, 500]);
    let columns = GatherSpec {
        offset_dims: &[0],
        collapsed_slice_dims: &[1],
        start_index_map: &[1],
        index_vector_dim: 1,
        slice_sizes: &[2048, 1],
        ..rows
    };
    t("gather_columns", &mut || gather(pool, x.src(), at.src(), out.dst(), &columns));
    let n = 1 << 20;
    let (x, at, v) = (floats(&[n]), indices(&[n, 1], n), floats(&[n]));
    let mut out = zeros(&[n]);
    let mut elements = ScatterSpec {
        update_window_dims: &[],
        inserted_window_dims: &[0],
        input_batching_dims: &[],
        scatter_indices_batching_dims: &[],
        scatter_dims_to_operand_dims: &[0],
        index_vector_dim: 1,
        indices_are_sorted: false,
        unique_indices: false,
    };
    t("scatter_add_1m", &mut || {
        scatter(pool, Combiner::Reduce(ReduceOp::Add), x.src(), at.src(), v.src(), out.dst(), &elements)
    });
    let v = floats(&[20_000, 64]);
    let at = Array::new(DType::S32, &[20_000, 1], |i| (i / 20) as i32);
    let x = zeros(&[1000, 64]);
    let mut out = zeros(&[1000, 64]);
    elements.update_window_dims = &[1];
    t("scatter_segment_sum", &mut || {
        scatter(pool, Combiner::Reduce(ReduceOp::Add), x.src(), at.src(), v.src(), out.dst(), &elements)
    });
    let x = floats(&[4096, 64]);
    let mut row = zeros(&[1, 64]);
    t("dynamic_slice_row", &mut || dynamic_slice(pool, x.src(), &[100, 0], row.dst()));
    let mut x = x;
    t("dynamic_update_row", &mut || {
        let pointer = std::ptr::NonNull::from(&mut x.values[..]).cast();
        // SAFETY: `x` is borrowed for this closure alone, and the kernel works in place.
        let (operand, out) = unsafe {
            (Src::from_raw(pointer, DType::F32, &x.dims), Dst::from_raw(pointer, DType::F32, &x.dims))
        };
        dynamic_update_slice(pool, operand, row.src(), &[100, 0], out);
    });
}

fn sorts(pool: &Pool, t: &Timer<'_>) {
    let n = 1 << 20;
    let x = floats(&[n]);
    let mut y = zeros(&[n]);
    t("sort_1m", &mut || sort_keys(pool, x.src(), y.dst(), KeyOrder::Numeric, false, 0));
    let x64 = Array::new(DType::S64, &[n], |i| hash(i) as i64);
    let mut y64 = Array::new(DType::S64, &[n], |_| 0i64);
    t("sort_1m_i64", &mut || sort_keys(pool, x64.src(), y64.dst(), KeyOrder::Numeric, false, 0));
    let key = [SortKey::ascending(0, KeyOrder::Numeric)];
    for (name, dims, dimension) in [
        ("argsort_rows", [1024, 512], 1),
        ("argsort_columns", [512, 1024], 0),
        ("argsort_short", [65_536, 8], 1),
        ("argsort_1m", [1, n], 1),
    ] {
        let x = floats(&dims);
        let last = dims[1];
        let iota = Array::new(DType::S32, &dims, |i| if dimension == 1 { i % last } else { i / last } as i32);
        let mut y = zeros(&dims);
        let mut order = Array::new(DType::S32, &dims, |_| 0i32);
        t(name, &mut || sort(pool, &key, &[x.src(), iota.src()], &mut [y.dst(), order.dst()], dimension));
    }
    let n = 200_000;
    let bits = Array::new(DType::U32, &[n], |i| hash(i) as u32);
    let values = Array::new(DType::S32, &[n], |i| i as i32);
    let (mut a, mut b) = (Array::new(DType::U32, &[n], |_| 0u32), Array::new(DType::S32, &[n], |_| 0i32));
    t("sort_permutation_200k", &mut || {
        sort(pool, &key, &[bits.src(), values.src()], &mut [a.dst(), b.dst()], 0)
    });
    let x = floats(&[256, 32_768]);
    let (mut v, mut i) = (zeros(&[256, 16]), Array::new(DType::S32, &[256, 16], |_| 0i32));
    t("top_k_16", &mut || top_k(pool, x.src(), v.dst(), i.dst(), 16, true));
    let x = Array::new(DType::F32, &[256, 32_768], |i| (i % 32_768) as f32);
    t("top_k_16_ascending", &mut || top_k(pool, x.src(), v.dst(), i.dst(), 16, true));
}

fn numbers(pool: &Pool, t: &Timer<'_>) {
    let n = 4 << 20;
    let mut bits = Array::new(DType::U32, &[n], |_| 0u32);
    t("threefry_bits_4m", &mut || rng::threefry_random_bits(pool, [0, 42], 0, bits.dst()));
    let high = Array::new(DType::U32, &[n], |_| 0u32);
    let low = Array::new(DType::U32, &[n], |i| i as u32);
    let mut other = Array::new(DType::U32, &[n], |_| 0u32);
    t("threefry_2x32_4m", &mut || {
        rng::threefry2x32(pool, [0, 42], high.src(), low.src(), bits.dst(), other.dst())
    });
    for (name, algorithm) in
        [("bits_three_fry_4m", rng::RngAlgorithm::ThreeFry), ("bits_philox_4m", rng::RngAlgorithm::Philox)]
    {
        t(name, &mut || drop(rng::rng_bit_generator(pool, algorithm, &[1, 2], bits.dst())));
    }
    let n = 1 << 20;
    let x = Array::new(DType::C64, &[n], |i| [hash(i) as f32, hash(i + n) as f32]);
    let mut y = Array::new(DType::C64, &[n], |_| [0f32; 2]);
    t("fft_1m", &mut || fft(pool, x.src(), y.dst(), FftKind::Fft, &[n]));
    let x = Array::new(DType::C64, &[64, 4096], |i| [hash(i) as f32, hash(i + n) as f32]);
    let mut y = Array::new(DType::C64, &[64, 4096], |_| [0f32; 2]);
    t("fft_64x4096", &mut || fft(pool, x.src(), y.dst(), FftKind::Fft, &[4096]));
    let x = floats(&[1024, 1024]);
    let mut y = Array::new(DType::C64, &[1024, 513], |_| [0f32; 2]);
    t("rfft2_1024", &mut || fft(pool, x.src(), y.dst(), FftKind::Rfft, &[1024, 1024]));
    let mut z = zeros(&[1024, 1024]);
    t("irfft2_1024", &mut || fft(pool, y.src(), z.dst(), FftKind::Irfft, &[1024, 1024]));
}

fn factorisations(pool: &Pool, t: &Timer<'_>) {
    for n in [64, 512, 1024] {
        let a =
            Array::new(
                DType::F32,
                &[n, n],
                |i| if i / n == i % n { n as f32 } else { 1.0 / (1 + i % 7) as f32 },
            );
        let mut l = zeros(&[n, n]);
        t(&format!("cholesky_{n}"), &mut || cholesky(pool, a.src(), l.dst(), true));
        let b = floats(&[n, 64]);
        let mut x = zeros(&[n, 64]);
        let spec = TriangularSolve {
            left_side: true,
            lower: true,
            unit_diagonal: false,
            transpose_a: TransposeA::NoTranspose,
        };
        t(&format!("triangular_{n}x64"), &mut || triangular_solve(pool, a.src(), b.src(), x.dst(), spec));
    }
    let a = floats(&[256, 256]);
    let (mut r, mut taus) = (zeros(&[256, 256]), zeros(&[256]));
    t("qr_256", &mut || qr(pool, a.src(), r.dst(), taus.dst()));
    let mut q = zeros(&[256, 256]);
    t("householder_256", &mut || householder_product(pool, r.src(), taus.src(), q.dst()));
    let a = Array::new(DType::F32, &[10_000, 4, 4], |i| if i % 16 % 5 == 0 { 8.0f32 } else { 0.5 });
    let mut l = zeros(&[10_000, 4, 4]);
    t("cholesky_10000x4", &mut || cholesky(pool, a.src(), l.dst(), true));
}
