//! The end of devices, which other tests of the same process would hide. The environment variable `IREE_COMPILER_LIBRARY` names the
//! compiler; `cargo xtask iree --test` sets it.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use iree_runtime::{Array, Compiler, Device, Driver, ElementType, Fence, Program};

const SIZE: usize = 1024;

/// The program takes so long that everything is dropped before its end.
const PRODUCT: &str = "func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] :
        (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %0 : tensor<1024x1024xf32>
}";

/// Returns the code of the program for the processor.
fn code() -> Vec<u8> {
    let path = std::env::var_os("IREE_COMPILER_LIBRARY").expect("IREE_COMPILER_LIBRARY is set");
    let flags = [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ];
    let flags: Vec<String> = flags.into_iter().chain(Program::COMPILER_FLAGS).map(str::to_owned).collect();
    Compiler::load(&PathBuf::from(path)).unwrap().compile(&flags, "test", PRODUCT.as_bytes()).unwrap()
}

/// Memory that owns a reference to the device, as that of a plugin does.
struct Owner(Vec<[u8; 64]>, #[expect(dead_code, reason = "only its drop matters")] Device);

impl Owner {
    /// Returns memory that is aligned to 64 bytes.
    fn new(device: &Device) -> Self {
        Self(vec![[0; 64]; SIZE * SIZE / 16 + 1], device.clone())
    }
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        let bytes = self.0.as_flattened();
        let start = bytes.as_ptr().align_offset(64);
        &bytes[start..start + 4 * SIZE * SIZE]
    }
}

/// Returns the number of threads of devices.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.starts_with("iree-worker")).count()
}

/// Waits until devices have threads, or none.
fn wait_until(has_threads: bool, what: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    while (threads() > 0) != has_threads {
        assert!(Instant::now() < end, "{what}: there are {} threads", threads());
        thread::sleep(Duration::from_millis(10));
    }
}

fn device() -> Device {
    let device = Driver::open("local-task").unwrap().device(0).unwrap();
    // A thread has its name some time after it began.
    wait_until(true, "a device");
    device
}

#[test]
fn a_device_ends_on_whichever_thread_its_last_reference_is_dropped() {
    let code = code();
    // IREE drops imported memory on one of the threads of the device, after it has signaled the fence.
    let device_of_memory = device();
    let program = Program::load(&device_of_memory, &code).unwrap();
    let owner = Owner::new(&device_of_memory);
    let x = Array::import(&device_of_memory, ElementType::F32, &[SIZE, SIZE], owner);
    let x = x.unwrap_or_else(|_| panic!("the memory is not imported"));
    let call = program.call(&[&x]).unwrap();
    drop((call, x, program, device_of_memory));
    wait_until(false, "imported memory");

    let device_of_function = device();
    let program = Program::load(&device_of_function, &code).unwrap();
    let x =
        Array::import(&device_of_function, ElementType::F32, &[SIZE, SIZE], Owner::new(&device_of_function));
    let x = x.unwrap_or_else(|_| panic!("the memory is not imported"));
    let call = program.call(&[&x]).unwrap();
    call.done.on_reached(move |_| drop((program, device_of_function))).unwrap();
    drop((call, x));
    wait_until(false, "a function");

    // Memory and fences need the device, of which the caller has no reference any more.
    let last = device();
    let array = Array::upload(&last, ElementType::F32, &[2], &[0; 8]).unwrap();
    let fence = Fence::new(&last).unwrap();
    drop(last);
    assert_eq!(array.bytes().unwrap(), Some(&[0; 8][..]));
    fence.signal().unwrap();
    drop(array);
    assert!(threads() > 0 && fence.is_reached().unwrap());
    drop(fence);
    wait_until(false, "an array and a fence");
}
