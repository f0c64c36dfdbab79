//! Compiles and runs programs. The environment variable `IREE_COMPILER_LIBRARY` names the compiler; `cargo xtask iree --test`
//! sets it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread;

use iree_runtime::{
    Array, Code, CodeTarget, Compiler, Device, Driver, ElementType, Error, Fence, Program, Severity,
};

const DRIVERS: [&str; 2] = ["local-task", "local-sync"];

fn compiler() -> &'static Compiler {
    static COMPILER: OnceLock<Compiler> = OnceLock::new();
    COMPILER.get_or_init(|| {
        let path = std::env::var_os("IREE_COMPILER_LIBRARY")
            .expect("IREE_COMPILER_LIBRARY names libIREECompiler.so");
        Compiler::load(&PathBuf::from(path)).unwrap()
    })
}

fn flags() -> Vec<String> {
    let local = [
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
        "--iree-input-demote-f64-to-f32=false",
    ];
    local.into_iter().chain(Program::COMPILER_FLAGS).map(str::to_owned).collect()
}

fn compile(text: &str) -> Vec<u8> {
    compiler().compile(&flags(), "test", text.as_bytes()).unwrap()
}

const SUM: &str = "func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
    %0 = stablehlo.add %x, %y : tensor<4xf32>
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %0, %1 : tensor<4xf32>, tensor<f32>
}";

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn upload(device: &Device, values: &[f32]) -> Array {
    Array::upload(device, ElementType::F32, &[values.len()], &floats(values)).unwrap()
}

#[test]
fn a_call_computes_the_results_of_the_program_on_every_driver_of_the_processor() {
    let code = compile(SUM);
    for driver in DRIVERS {
        let device = Driver::open(driver).unwrap().device(0).unwrap();
        let program = Program::load(&device, &code).unwrap();
        let (x, y) = (upload(&device, &[1.0, 2.0, 3.0, 4.0]), upload(&device, &[10.0, 20.0, 30.0, 40.0]));
        let call = program.call(&[&x, &y]).unwrap();
        call.done.wait().unwrap();
        let results: Vec<Vec<u8>> =
            call.results.iter().map(|result| result.to_vec(&device).unwrap()).collect();
        assert_eq!(results, [floats(&[11.0, 22.0, 33.0, 44.0]), floats(&[110.0])], "{driver}");
        assert!(call.results[0].bytes().unwrap().is_some(), "the host reads results in place");
        assert!(device.memory_statistics().in_use > 0, "{driver}");
    }
}

/// Starts calls from several threads, each of which uses a result that is not written yet.
fn call_from_several_threads(device: &Device, code: &[u8], calls: u8) {
    let program = Arc::new(Program::load(device, code).unwrap());
    let threads = (0..4).map(|_| {
        let (device, program) = (device.clone(), Arc::clone(&program));
        thread::spawn(move || {
            let one = upload(&device, &[1.0; 4]);
            let mut x = upload(&device, &[0.0; 4]);
            for _ in 0..calls {
                let mut call = program.call(&[&x, &one]).unwrap();
                x = call.results.swap_remove(0);
            }
            assert_eq!(x.to_vec(&device).unwrap(), floats(&[f32::from(calls); 4]));
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn calls_from_several_threads_use_results_that_are_not_written_yet() {
    let device = Driver::open("local-task").unwrap().device(0).unwrap();
    call_from_several_threads(&device, &compile(SUM), 50);
}

/// Returns the Vulkan device, which needs a driver such as Mesa's lavapipe, and the code of a program for it.
#[cfg(feature = "vulkan")]
fn on_vulkan(text: &str) -> Option<(Device, Vec<u8>)> {
    let Ok(device) = Driver::open("vulkan").and_then(|driver| driver.device(0)) else {
        eprintln!("skipped: there is no Vulkan device");
        return None;
    };
    let flags = ["--iree-hal-target-device=vulkan"].into_iter().chain(Program::COMPILER_FLAGS);
    let flags: Vec<String> = flags.map(str::to_owned).collect();
    Some((device, compiler().compile(&flags, "test", text.as_bytes()).unwrap()))
}

#[cfg(feature = "vulkan")]
#[test]
fn calls_from_several_threads_on_vulkan_use_results_that_are_not_written_yet() {
    if let Some((device, code)) = on_vulkan(SUM) {
        call_from_several_threads(&device, &code, 50);
    }
}

#[cfg(feature = "vulkan")]
#[test]
fn a_second_call_of_a_program_that_only_copies_on_vulkan_uses_its_own_arrays() {
    let program = "func.func @main(%x: tensor<4xf32>) -> tensor<8xf32> {
        %0 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
        return %0 : tensor<8xf32>
    }";
    let Some((device, code)) = on_vulkan(program) else { return };
    let program = Program::load(&device, &code).unwrap();
    let mut kept = Vec::new();
    for value in [1.0, 2.0, 3.0] {
        let x = upload(&device, &[value; 4]);
        let call = program.call(&[&x]).unwrap();
        // IREE uses commands that it has recorded again only if they are not in use any more.
        call.done.wait().unwrap();
        kept.push((value, call, x));
    }
    for (value, call, _x) in &kept {
        assert_eq!(call.results[0].to_vec(&device).unwrap(), floats(&[*value; 8]), "call with {value}");
    }
}

#[cfg(feature = "vulkan")]
#[test]
fn elements_that_do_not_fill_a_word_on_vulkan_are_written_if_the_target_has_the_features_of_the_device() {
    let Some((device, _)) = on_vulkan(SUM) else { return };
    let target = CodeTarget::of_driver("vulkan").for_devices([&device]).unwrap();
    let CodeTarget::Vulkan(features) = target else { panic!("{target:?}") };
    if !features.missing_for_narrow_elements().is_empty() {
        eprintln!("skipped: the device lacks {}", features.missing_for_narrow_elements());
        return;
    }
    let text = "func.func @main(%x: tensor<9xi8>) -> tensor<9xi8> {
        %0 = stablehlo.add %x, %x : tensor<9xi8>
        return %0 : tensor<9xi8>
    }";
    let flags = Program::COMPILER_FLAGS.into_iter().map(str::to_owned).chain(target.compiler_flags(&[]));
    let code = compiler().compile(&flags.collect::<Vec<_>>(), "test", text.as_bytes()).unwrap();
    let program = Program::load(&device, &code).unwrap();
    let x = Array::upload(&device, ElementType::I8, &[9], &[1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
    let call = program.call(&[&x]).unwrap();
    call.done.wait().unwrap();
    assert_eq!(call.results[0].to_vec(&device).unwrap(), [2, 4, 6, 8, 10, 12, 14, 16, 18]);
    let local = Driver::open("local-sync").unwrap().device(0).unwrap();
    let error = CodeTarget::of_driver("vulkan").for_devices([&local]).unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error}");
}

/// Registers a function with the fence of a call, and drops everything else before the call has ended. The function drops the device.
/// Returns the outcome, and whether another thread called the function.
fn drop_when_reached(device: Device, code: &[u8]) -> Vec<(Result<(), Error>, bool)> {
    let (sender, reached) = channel();
    let program = Program::load(&device, code).unwrap();
    let x = Array::upload(&device, ElementType::F32, &[1024, 1024], &vec![0; 4 << 20]).unwrap();
    let call = program.call(&[&x]).unwrap();
    let (results, kept, here) = (call.results, device.clone(), thread::current().id());
    let both = Fence::join(&[&call.done, &Fence::join(&[]).unwrap()]).unwrap();
    let note = move |outcome| {
        drop((program, results, kept, x));
        sender.send((outcome, thread::current().id() != here)).unwrap();
    };
    both.on_reached(note).unwrap();
    drop((device, both, call.done));
    reached.iter().collect()
}

/// The call takes so long that the function is registered before its end.
const PRODUCT: &str = "func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] :
        (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %0 : tensor<1024x1024xf32>
}";

#[test]
fn a_function_is_called_once_when_a_fence_is_reached_and_may_drop_the_device() {
    let code = compile(PRODUCT);
    for (driver, on_another_thread) in DRIVERS.into_iter().zip([true, false]) {
        let device = Driver::open(driver).unwrap().device(0).unwrap();
        assert_eq!(drop_when_reached(device, &code), [(Ok(()), on_another_thread)], "{driver}");
    }
    #[cfg(feature = "vulkan")]
    if let Some((device, code)) = on_vulkan(PRODUCT) {
        assert_eq!(drop_when_reached(device, &code), [(Ok(()), true)], "vulkan");
    }
}

#[repr(align(64))]
struct Aligned([u8; 64]);

struct Owner(Box<Aligned>, usize, Arc<AtomicUsize>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0.0[self.1..self.1 + 16]
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.2.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn imported_memory_is_read_in_place_and_released_after_its_last_use() {
    let device = Driver::open("local-task").unwrap().device(0).unwrap();
    let program = Program::load(&device, &compile(SUM)).unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    let owner = |offset| Owner(Box::new(Aligned([0; 64])), offset, Arc::clone(&drops));
    let unaligned = Array::import(&device, ElementType::F32, &[4], owner(4));
    drop(unaligned.err().expect("the memory is not aligned"));
    assert_eq!(drops.swap(0, Ordering::SeqCst), 1);

    let owner = owner(0);
    let address = owner.as_ref().as_ptr();
    let x = Array::import(&device, ElementType::F32, &[4], owner).ok().expect("the memory is aligned");
    assert_eq!(x.bytes().unwrap().map(<[u8]>::as_ptr), Some(address));
    let call = program.call(&[&x, &upload(&device, &[1.0; 4])]).unwrap();
    drop(x);
    call.done.wait().unwrap();
    assert_eq!(call.results[0].to_vec(&device).unwrap(), floats(&[1.0; 4]));
    drop(call);
    drop((program, device));
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn wrong_arguments_and_damaged_code_are_errors() {
    let device = Driver::open("local-sync").unwrap().device(0).unwrap();
    let code = compile(SUM);
    let program = Program::load(&device, &code).unwrap();
    let (x, short) = (upload(&device, &[0.0; 4]), upload(&device, &[0.0; 3]));
    assert!(program.call(&[&x]).is_err(), "one argument of two");
    let error = program.call(&[&x, &short]).and_then(|call| call.done.wait()).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    for end in (0..code.len() / 2).step_by(97) {
        assert!(Program::load(&device, &code[..end]).is_err(), "{end} bytes");
    }
    assert!(Program::load(&device, b"not code").is_err());
    let flags: Vec<String> = flags().into_iter().filter(|flag| !flag.contains("execution-model")).collect();
    let waits = compiler().compile(&flags, "test", SUM.as_bytes()).unwrap();
    assert_eq!(Program::load(&device, &waits).err().unwrap().code(), Code::FailedPrecondition);
    assert_eq!(Driver::open("none").err().unwrap().code(), Code::NotFound);
    assert_eq!(Driver::open("local-sync").unwrap().device(7).err().unwrap().code(), Code::NotFound);
    let wrong = Array::upload(&device, ElementType::F32, &[4], &[0; 15]);
    assert_eq!(wrong.err().unwrap().code(), Code::InvalidArgument);
}

#[test]
fn too_large_an_array_is_resource_exhausted() {
    let device = Driver::open("local-task").unwrap().device(0).unwrap();
    let program = "func.func @main() -> tensor<1099511627776xf64> {
        %0 = stablehlo.iota dim = 0 : tensor<1099511627776xf64>
        return %0 : tensor<1099511627776xf64>
    }";
    let program = Program::load(&device, &compile(program)).unwrap();
    let error = program.call(&[]).and_then(|call| call.done.wait()).unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    let again = Program::load(&device, &compile(SUM)).unwrap();
    let x = upload(&device, &[1.0; 4]);
    again.call(&[&x, &x]).unwrap().done.wait().unwrap();
}

#[test]
fn errors_of_the_compiler_have_the_location_in_the_program() {
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = \"stablehlo.custom_call\"(%x) {call_target_name = \"f\"} : (tensor<4xf32>) -> tensor<4xf32> loc(\"model.py\":3:7)
        return %0 : tensor<4xf32>
    }";
    let error = compiler().compile(&flags(), "test", text.as_bytes()).unwrap_err();
    let first = &error.diagnostics[0];
    assert_eq!(first.severity, Severity::Error);
    assert!(first.text.contains("model.py:3:7") || first.text.contains("\"model.py\":3:7"), "{error:?}");
    assert!(first.text.contains("stablehlo.custom_call"), "{error:?}");
    let error = compiler().compile(&["--no-such-flag".to_owned()], "test", b"").unwrap_err();
    assert!(error.to_string().contains("no-such-flag"), "{error}");
    let error = compiler().compile(&flags(), "test", b"func.func @main(").unwrap_err();
    assert!(error.to_string().contains("test.mlir:1:16"), "{error}");
}

#[test]
fn an_error_that_ends_the_process_of_the_compiler_is_an_error() {
    let text = "func.func @main() -> tensor<2xcomplex<f64>> {
        %0 = stablehlo.constant dense<[(1.0, 2.0), (3.0, 4.0)]> : tensor<2xcomplex<f64>>
        return %0 : tensor<2xcomplex<f64>>
    }";
    let error = compiler().compile(&flags(), "test", text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("the process of the compiler ended with signal"), "{error}");
    assert!(error.contains("while it compiled test"), "{error}");
    assert!(!compile(SUM).is_empty());
}
