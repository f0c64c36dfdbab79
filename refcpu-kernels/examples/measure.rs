//! Measures the reducing kernels on shapes that programs use: `cargo run --release --example measure
//! [FILTER]`.

use refcpu_kernels::ReduceOp;
use refcpu_kernels::conv::{ConvSpec, convolution};
use refcpu_kernels::dot::{DotDims, dot_general};
use refcpu_kernels::reduce::{ArgReduceOp, arg_reduce, reduce};
use refcpu_kernels::window::{SelectOp, WindowSpec, reduce_window, select_and_scatter};
use refcpu_kernels::{DType, Dst, Pool, Src};
use std::time::Instant;

struct Array {
    dtype: DType,
    dims: Vec<usize>,
    words: Vec<u64>,
}

impl Array {
    fn new(dtype: DType, dims: &[usize]) -> Self {
        let bytes = dims.iter().product::<usize>() * dtype.size();
        let mut array = Self { dtype, dims: dims.to_vec(), words: vec![0; bytes.div_ceil(8)] };
        let mut seed = 1u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        let mut dst = array.dst();
        match dtype {
            DType::F32 | DType::C64 => {
                dst.bytes_mut().chunks_exact_mut(4).for_each(|b| b.copy_from_slice(&next().to_le_bytes()));
            }
            DType::F64 => dst.as_mut_slice::<f64>().fill_with(|| f64::from(next())),
            DType::BF16 => dst.as_mut_slice::<half::bf16>().fill_with(|| half::bf16::from_f32(next())),
            _ => dst.bytes_mut().fill_with(|| (next() * 200.0) as u8),
        }
        array
    }

    fn zero(dtype: DType) -> Self {
        Self { dtype, dims: vec![], words: vec![0; 2] }
    }

    fn src(&self) -> Src<'_> {
        let len = self.dims.iter().product::<usize>() * self.dtype.size();
        // SAFETY: the words hold at least `len` initialized bytes.
        Src::new(
            unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), len) },
            self.dtype,
            &self.dims,
        )
    }

    fn dst(&mut self) -> Dst<'_> {
        let len = self.dims.iter().product::<usize>() * self.dtype.size();
        // SAFETY: the words hold at least `len` initialized bytes, borrowed mutably here.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), len) };
        Dst::new(bytes, self.dtype, &self.dims)
    }
}

struct Bench {
    pool: Pool,
    filter: String,
}

impl Bench {
    /// Prints the median time of a call, and the rate for this number of operations (or bytes) per call.
    fn time(&self, name: &str, work: usize, mut call: impl FnMut(&Pool)) {
        if !name.contains(&self.filter) {
            return;
        }
        call(&self.pool);
        let mut times = Vec::new();
        let start = Instant::now();
        while times.len() < 5 || (start.elapsed().as_millis() < 300 && times.len() < 1000) {
            let t = Instant::now();
            call(&self.pool);
            times.push(t.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        let (median, best) = (times[times.len() / 2], times[times.len() / 20]);
        println!(
            "{name:32} {:10.1} us (best {:10.1})  {:8.1} G/s",
            median * 1e6,
            best * 1e6,
            work as f64 / median / 1e9
        );
    }

    fn dot(&self, name: &str, types: [DType; 3], lhs: &[usize], rhs: &[usize], dims: &DotDims) {
        if !name.contains(&self.filter) {
            return;
        }
        let out_dims = dims.output_dims(lhs, rhs).unwrap();
        let (a, b, mut c) =
            (Array::new(types[0], lhs), Array::new(types[1], rhs), Array::new(types[2], &out_dims));
        let depth: usize = dims.lhs_contract.iter().map(|d| lhs[*d]).product();
        let work = 2 * depth * out_dims.iter().product::<usize>();
        self.time(name, work, |pool| dot_general(pool, a.src(), b.src(), c.dst(), dims));
    }

    fn conv(&self, name: &str, dtype: DType, lhs: &[usize], rhs: &[usize], spec: &ConvSpec) {
        if !name.contains(&self.filter) {
            return;
        }
        let out_dims = spec.output_dims(lhs, rhs).unwrap();
        let (a, b, mut c) = (Array::new(dtype, lhs), Array::new(dtype, rhs), Array::new(dtype, &out_dims));
        let taps: usize = rhs.iter().product::<usize>() / rhs[spec.kernel_output_feature];
        let work = 2 * taps * out_dims.iter().product::<usize>();
        self.time(name, work, |pool| convolution(pool, a.src(), b.src(), c.dst(), spec));
    }

    fn reduce(&self, name: &str, op: ReduceOp, dtype: DType, dims: &[usize], along: &[usize]) {
        if !name.contains(&self.filter) {
            return;
        }
        let out: Vec<usize> = (0..dims.len()).filter(|d| !along.contains(d)).map(|d| dims[d]).collect();
        let (x, init, mut y) = (Array::new(dtype, dims), Array::new(dtype, &[]), Array::new(dtype, &out));
        let work = dims.iter().product::<usize>() * dtype.size();
        self.time(name, work, |pool| reduce(pool, op, x.src(), init.src(), y.dst(), along));
    }

    fn window(&self, name: &str, op: ReduceOp, dtype: DType, dims: &[usize], spec: &WindowSpec) {
        if !name.contains(&self.filter) {
            return;
        }
        let out = spec.output_dims(dims).unwrap();
        let (x, init, mut y) = (Array::new(dtype, dims), Array::zero(dtype), Array::new(dtype, &out));
        let work = dims.iter().product::<usize>() * dtype.size();
        self.time(name, work, |pool| reduce_window(pool, op, x.src(), init.src(), y.dst(), spec));
    }
}

fn nhwc(spatial: usize, same: &[usize], stride: usize, groups: usize) -> ConvSpec {
    let s: Vec<usize> = (1..=spatial).collect();
    ConvSpec {
        input_batch: 0,
        input_feature: spatial + 1,
        input_spatial: s.clone(),
        kernel_input_feature: spatial,
        kernel_output_feature: spatial + 1,
        kernel_spatial: (0..spatial).collect(),
        output_batch: 0,
        output_feature: spatial + 1,
        output_spatial: s,
        strides: vec![stride; spatial],
        padding: same
            .iter()
            .map(|k| ((k - stride) as i64 / 2, (k - stride) as i64 - (k - stride) as i64 / 2))
            .collect(),
        lhs_dilation: vec![1; spatial],
        rhs_dilation: vec![1; spatial],
        reversal: vec![false; spatial],
        feature_groups: groups,
        batch_groups: 1,
    }
}

fn main() {
    use DType::{BF16, C64, F32, F64, S8, S32};
    let filter = std::env::args().nth(1).unwrap_or_default();
    let bench = Bench { pool: Pool::inline(), filter };
    let plain = DotDims::matmul();
    let dims = |lc: usize, rc: usize| DotDims {
        lhs_contract: vec![lc],
        rhs_contract: vec![rc],
        ..DotDims::default()
    };
    let batched = |lc, rc| DotDims {
        lhs_batch: vec![0],
        rhs_batch: vec![0],
        lhs_contract: vec![lc],
        rhs_contract: vec![rc],
    };

    for n in [64, 128, 256, 512, 1024, 2048] {
        bench.dot(&format!("dot f32 {n}"), [F32; 3], &[n, n], &[n, n], &plain);
    }
    bench.dot("dot f32 8192x64x512", [F32; 3], &[8192, 64], &[64, 512], &plain);
    bench.dot("dot f32 128x784x1024", [F32; 3], &[128, 784], &[784, 1024], &plain);
    bench.dot("dot f32 at_b 2048x512", [F32; 3], &[2048, 512], &[2048, 512], &dims(0, 0));
    bench.dot("dot f32 a_bt 512x512", [F32; 3], &[512, 512], &[512, 512], &dims(1, 1));
    bench.dot("dot f32 matvec 4096", [F32; 3], &[4096, 4096], &[4096], &plain);
    bench.dot("dot f32 vecmat 2048x8192", [F32; 3], &[2048], &[2048, 8192], &dims(0, 0));
    bench.dot("dot f32 skinny 8x2048x8192", [F32; 3], &[8, 2048], &[2048, 8192], &plain);
    bench.dot("dot f32 scan_rnn 8x64x64", [F32; 3], &[8, 64], &[64, 64], &plain);
    bench.dot("dot f32 lstm 32x192x512", [F32; 3], &[32, 192], &[192, 512], &plain);
    bench.dot("dot f32 batched 64x128x64x128", [F32; 3], &[64, 128, 64], &[64, 64, 128], &batched(2, 1));
    bench.dot("dot f32 50000x4x4", [F32; 3], &[50000, 4, 4], &[50000, 4, 4], &batched(2, 1));
    bench.dot("dot f32 20000x7x7", [F32; 3], &[20000, 7, 7], &[20000, 7, 7], &batched(2, 1));
    bench.dot("dot f32 attention qk", [F32; 3], &[16, 256, 64], &[16, 256, 64], &batched(2, 2));
    bench.dot("dot f32 attention av", [F32; 3], &[16, 256, 256], &[16, 256, 64], &batched(2, 1));
    let einsum = DotDims { lhs_contract: vec![1, 2], rhs_contract: vec![1, 0], ..DotDims::default() };
    bench.dot("dot f32 einsum abc,cbd->ad", [F32; 3], &[64, 32, 128], &[128, 32, 64], &einsum);
    bench.dot("dot f64 512", [F64; 3], &[512, 512], &[512, 512], &plain);
    bench.dot("dot bf16 1024", [BF16; 3], &[1024, 1024], &[1024, 1024], &plain);
    bench.dot("dot bf16 vecmat 2048x8192", [BF16; 3], &[2048], &[2048, 8192], &dims(0, 0));
    bench.dot("dot i8 512 to i32", [S8, S8, S32], &[512, 512], &[512, 512], &plain);
    bench.dot("dot i32 256", [S32; 3], &[256, 256], &[256, 256], &plain);
    bench.dot("dot c64 256", [C64; 3], &[256, 256], &[256, 256], &plain);

    bench.conv("conv 3x3 64 56", F32, &[4, 56, 56, 64], &[3, 3, 64, 64], &nhwc(2, &[3, 3], 1, 1));
    bench.conv("conv 1x1 256 28", F32, &[4, 28, 28, 256], &[1, 1, 256, 256], &nhwc(2, &[1, 1], 1, 1));
    bench.conv("conv 7x7 s2 224", F32, &[2, 224, 224, 3], &[7, 7, 3, 64], &nhwc(2, &[7, 7], 2, 1));
    bench.conv("conv depthwise 3x3 128", F32, &[4, 56, 56, 128], &[3, 3, 1, 128], &nhwc(2, &[3, 3], 1, 128));
    bench.conv("conv groups 4 3x3 128", F32, &[4, 28, 28, 128], &[3, 3, 32, 128], &nhwc(2, &[3, 3], 1, 4));
    bench.conv("conv 1d k9", F32, &[8, 2048, 64], &[9, 64, 64], &nhwc(1, &[9], 1, 1));
    bench.conv("conv 3d 3x3x3 16", F32, &[1, 24, 24, 24, 16], &[3, 3, 3, 16, 32], &nhwc(3, &[3, 3, 3], 1, 1));
    bench.conv("conv 3x3 first 32", F32, &[32, 32, 32, 3], &[3, 3, 3, 32], &nhwc(2, &[3, 3], 1, 1));
    let nchw = ConvSpec {
        input_feature: 1,
        input_spatial: vec![2, 3],
        kernel_input_feature: 1,
        kernel_output_feature: 0,
        kernel_spatial: vec![2, 3],
        output_feature: 1,
        output_spatial: vec![2, 3],
        ..nhwc(2, &[3, 3], 1, 1)
    };
    bench.conv("conv nchw 3x3", F32, &[4, 64, 28, 28], &[64, 64, 3, 3], &nchw);
    let input_gradient = ConvSpec {
        kernel_input_feature: 3,
        kernel_output_feature: 2,
        reversal: vec![true; 2],
        ..nhwc(2, &[3, 3], 1, 1)
    };
    bench.conv("conv input gradient 3x3 64", F32, &[4, 56, 56, 64], &[3, 3, 64, 64], &input_gradient);
    let kernel_gradient = ConvSpec {
        input_batch: 3,
        input_feature: 0,
        kernel_input_feature: 0,
        kernel_output_feature: 3,
        kernel_spatial: vec![1, 2],
        output_batch: 2,
        output_feature: 3,
        output_spatial: vec![0, 1],
        padding: vec![(1, 1); 2],
        ..nhwc(2, &[3, 3], 1, 1)
    };
    bench.conv("conv kernel gradient 3x3 64", F32, &[4, 56, 56, 64], &[4, 56, 56, 64], &kernel_gradient);
    bench.conv("conv kernel gradient 3x3 32", F32, &[4, 28, 28, 32], &[4, 28, 28, 32], &kernel_gradient);
    let strided_gradient =
        ConvSpec { lhs_dilation: vec![2; 2], padding: vec![(1, 2); 2], ..input_gradient.clone() };
    bench.conv("conv input gradient stride 2", F32, &[4, 28, 28, 64], &[3, 3, 64, 64], &strided_gradient);
    bench.conv("conv bf16 3x3 64 56", BF16, &[4, 56, 56, 64], &[3, 3, 64, 64], &nhwc(2, &[3, 3], 1, 1));

    use ReduceOp::{Add, Maximum};
    bench.reduce("reduce sum 16m", Add, F32, &[16 << 20], &[0]);
    bench.reduce("reduce sum 4096x2048 axis 0", Add, F32, &[4096, 2048], &[0]);
    bench.reduce("reduce sum 4096x2048 axis 1", Add, F32, &[4096, 2048], &[1]);
    bench.reduce("reduce max 4096x1024 axis 1", Maximum, F32, &[4096, 1024], &[1]);
    bench.reduce("reduce sum 64x512x128 axis 1", Add, F32, &[64, 512, 128], &[1]);
    bench.reduce("reduce sum 64x56x56x64 batch norm", Add, F32, &[64, 56, 56, 64], &[0, 1, 2]);
    bench.reduce("reduce sum nchw batch norm", Add, F32, &[64, 64, 28, 28], &[0, 2, 3]);
    bench.reduce("reduce sum 1m x 3 axis 1", Add, F32, &[1 << 20, 3], &[1]);
    bench.reduce("reduce sum 262144x16 axis 1", Add, F32, &[262_144, 16], &[1]);
    bench.reduce("reduce sum bf16 4096x2048 axis 1", Add, BF16, &[4096, 2048], &[1]);
    bench.reduce("reduce sum i32 4096x2048 axis 1", Add, S32, &[4096, 2048], &[1]);
    bench.reduce("reduce or pred 4m", ReduceOp::Or, DType::Pred, &[4 << 20], &[0]);
    bench.reduce("reduce sum 256", Add, F32, &[256], &[0]);
    if "argmax".contains(&bench.filter) {
        for dims in [[4096, 1024], [1024, 4096], [8192, 16]] {
            for dim in [0, 1] {
                let out = [dims[1 - dim]];
                let (x, mut v, mut i) =
                    (Array::new(F32, &dims), Array::new(F32, &out), Array::new(S32, &out));
                bench.time(&format!("argmax {dims:?} axis {dim}"), dims[0] * dims[1] * 4, |pool| {
                    arg_reduce(pool, ArgReduceOp::Maximum, x.src(), v.dst(), i.dst(), dim);
                });
            }
        }
    }

    let cumulative = |dims: &[usize], d: usize| {
        let mut spec = WindowSpec::new(vec![1; dims.len()]);
        spec.size[d] = dims[d];
        spec.padding[d].0 = dims[d] as i64 - 1;
        spec
    };
    for (dims, d) in
        [(&[1 << 20][..], 0), (&[1024, 1024][..], 1), (&[1024, 1024][..], 0), (&[64, 256, 64][..], 1)]
    {
        bench.window(&format!("window cumsum {dims:?} axis {d}"), Add, F32, dims, &cumulative(dims, d));
    }
    bench.window("window cummax 1m", Maximum, F32, &[1 << 20], &cumulative(&[1 << 20], 0));
    let pool = |k: usize, s: usize, low: i64, high: i64| {
        let mut spec = WindowSpec::new(vec![1, k, k, 1]);
        spec.strides = vec![1, s, s, 1];
        spec.padding = vec![(0, 0), (low, high), (low, high), (0, 0)];
        spec
    };
    bench.window("window maxpool 3x3 s2", Maximum, F32, &[8, 112, 112, 64], &pool(3, 2, 0, 1));
    bench.window("window maxpool 2x2 s2", Maximum, F32, &[32, 32, 32, 32], &pool(2, 2, 0, 0));
    bench.window("window avgpool 7x7 s1", Add, F32, &[8, 28, 28, 64], &pool(7, 1, 3, 3));
    let nchw_pool = WindowSpec {
        size: vec![1, 1, 3, 3],
        strides: vec![1, 1, 2, 2],
        padding: vec![(0, 0), (0, 0), (0, 1), (0, 1)],
        ..WindowSpec::new(vec![1; 4])
    };
    bench.window("window maxpool nchw 3x3 s2", Maximum, F32, &[8, 64, 112, 112], &nchw_pool);
    for (name, k, s, dims) in [("2x2 s2", 2, 2, [32, 32, 32, 32]), ("3x3 s2", 3, 2, [8, 112, 112, 64])] {
        let name = format!("window maxpool gradient {name}");
        if !name.contains(&bench.filter) {
            continue;
        }
        let spec = pool(k, s, 0, (k - s) as i64);
        let out = spec.output_dims(&dims).unwrap();
        let (x, dy, init, mut dx) =
            (Array::new(F32, &dims), Array::new(F32, &out), Array::new(F32, &[]), Array::new(F32, &dims));
        bench.time(&name, dims.iter().product::<usize>() * 4, |p| {
            select_and_scatter(p, SelectOp::Ge, Add, x.src(), dy.src(), init.src(), dx.dst(), &spec);
        });
    }
}
