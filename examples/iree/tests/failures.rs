//! Failures around the plugin: each is an error that says what to do, and the next program runs. Failures that concern a whole
//! process happen in a child process, which is this program again.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use iree_pjrt::Iree;
use pjrt_testing::{Array, Client, Code, CreateOption};

const SUM: &str = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %x, %x : tensor<2xf32>
    return %0 : tensor<2xf32>
}";

/// A program that does not end in the time of a test.
const LONG: &str = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %end = stablehlo.constant dense<1000000000> : tensor<i64>
    %one = stablehlo.constant dense<1> : tensor<i64>
    %zero = stablehlo.constant dense<0> : tensor<i64>
    %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i64>, tensor<2xf32>
    cond {
        %1 = stablehlo.compare LT, %i, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
    } do {
        %1 = stablehlo.add %i, %one : tensor<i64>
        %2 = stablehlo.sine %y : tensor<2xf32>
        stablehlo.return %1, %2 : tensor<i64>, tensor<2xf32>
    }
    return %0#1 : tensor<2xf32>
}";

/// The environment variable with the scenario of a child process.
const SCENARIO: &str = "IREE_PJRT_SCENARIO";

/// Creates a client with options such as `device=vulkan`.
fn client(options: &[&str]) -> Result<Client, pjrt_testing::Error> {
    let options: Vec<CreateOption> = options.iter().map(|option| option.parse().unwrap()).collect();
    Client::of(pjrt_plugin::api_table!(Iree), &options)
}

fn assert_runs(client: &Client) {
    let x = Array::new(&[2], &[1.0_f32, 2.0]).unwrap();
    assert_eq!(client.evaluate(SUM, &[x]).unwrap()[0].elements::<f32>().unwrap(), [2.0, 4.0]);
}

/// A folder of this process.
fn folder(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("iree-pjrt-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The command of a child process that runs a scenario, whose text goes to its standard output.
fn child(scenario: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "scenario_of_a_child_process", "--nocapture"]).env(SCENARIO, scenario);
    command
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn scenario_of_a_child_process() {
    let scenario = env::var(SCENARIO).unwrap_or_default();
    match scenario.split_once(' ').unwrap_or((&scenario, "")) {
        ("compile", _) => {
            let outcome = client(&[]).unwrap().compile(SUM).map(drop);
            println!("{:?}", outcome.map_err(|error| (error.code, error.message)));
        }
        ("restore", file) => {
            let client = client(&[]).unwrap();
            let program = client.load_serialized(&fs::read(file).unwrap()).unwrap();
            let x = client.upload(&Array::new(&[2], &[1.0_f32, 2.0]).unwrap()).unwrap();
            println!("{:?}", program.run(&[&x]).unwrap()[0].read::<f32>().unwrap());
        }
        ("vulkan", _) => {
            let outcome = client(&["device=vulkan"]).map(drop);
            println!("{:?}", outcome.map_err(|error| (error.code, error.message)));
        }
        ("run", folder) => {
            let client = client(&[&format!("dump={folder}")]).unwrap();
            let program = client.compile(LONG).unwrap();
            let x = client.upload(&Array::new(&[2], &[1.0_f32, 2.0]).unwrap()).unwrap();
            println!("runs");
            program.run(&[&x]).unwrap();
        }
        _ => {}
    }
}

#[test]
fn a_program_runs_after_a_process_was_killed_in_the_middle() {
    let dump = folder("dump");
    let mut killed = child(&format!("run {}", dump.display())).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(killed.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.ends_with("runs")), "the child runs the program");
    thread::sleep(Duration::from_millis(300));
    killed.kill().unwrap();
    assert!(!killed.wait().unwrap().success());
    assert_runs(&client(&[&format!("dump={}", dump.display())]).unwrap());
    fs::remove_dir_all(dump).unwrap();
}

#[test]
fn damaged_saved_programs_are_data_loss() {
    let client = client(&[]).unwrap();
    let saved = client.compile(SUM).unwrap().serialize().unwrap();
    let mut changed = saved.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    let long = [&*saved, b"more"].concat();
    for damaged in [&changed[..], &saved[..saved.len() / 2], &saved[..8], &long] {
        let error = client.load_serialized(damaged).unwrap_err();
        assert_eq!(error.code, Code::DATA_LOSS, "{error:?}");
        assert!(error.message.contains("compile the program again"), "{error:?}");
    }
    client.load_serialized(&saved).unwrap();
}

#[test]
fn a_program_that_was_saved_for_another_device_is_refused() {
    let saved = client(&[]).unwrap().compile(SUM).unwrap().serialize().unwrap();
    let error = client(&["device=local-sync"]).unwrap().load_serialized(&saved).unwrap_err();
    assert_eq!(error.code, Code::FAILED_PRECONDITION, "{error:?}");
    assert!(error.message.contains("compile the program again"), "{error:?}");
}

#[test]
fn without_the_right_compiler_saved_programs_run_and_others_are_refused() {
    let folder = folder("saved");
    let file = folder.join("program");
    fs::write(&file, client(&[]).unwrap().compile(SUM).unwrap().serialize().unwrap()).unwrap();
    let missing =
        |scenario: &str, library: &str| output(child(scenario).env("IREE_COMPILER_LIBRARY", library));
    let absent = folder.join("libIREECompiler.so").to_string_lossy().into_owned();
    assert!(missing(&format!("restore {}", file.display()), &absent).contains("[2.0, 4.0]"));
    let text = missing("compile", &absent);
    assert!(text.contains(&format!("{:?}", Code::NOT_FOUND)) && text.contains(&absent), "{text}");
    assert!(text.contains("pip install iree-base-compiler=="), "{text}");
    // The program of the compiler is in the folder of the library.
    for (output, part) in [("echo IREE compiler version 3.12.0", "3.12.0"), ("echo other", "does not print")]
    {
        let program = folder.join("iree-compile");
        fs::write(&program, format!("#!/bin/sh\n{output}\n")).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let text = missing("compile", &absent);
        assert!(text.contains(&format!("{:?}", Code::FAILED_PRECONDITION)) && text.contains(part), "{text}");
        assert!(text.contains("pip install iree-base-compiler=="), "{text}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_folder_for_temporary_files_that_does_not_exist_is_named() {
    let absent = folder("temporary").join("absent");
    let text = output(child("compile").env("TMPDIR", &absent));
    assert!(text.contains(&format!("{:?}", Code::FAILED_PRECONDITION)), "{text}");
    assert!(text.contains(&*absent.to_string_lossy()) && text.contains("TMPDIR"), "{text}");
    fs::remove_dir_all(absent.parent().unwrap()).unwrap();
}

#[test]
fn the_compiler_ends_with_the_process_that_waits_for_it() {
    let folder = folder("waits");
    let (program, number) = (folder.join("iree-compile"), folder.join("number"));
    // A compiler that does not end in the time of a test.
    let script = format!(
        "#!/bin/sh\nif [ $1 = --version ]; then echo IREE compiler version 3.13.0; exit; fi\n\
         echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600\n",
        number.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let library = folder.join("libIREECompiler.so");
    let mut child = child("compile").env("IREE_COMPILER_LIBRARY", library).spawn().unwrap();
    let compiler = wait_for(|| fs::read_to_string(&number).ok());
    child.kill().unwrap();
    child.wait().unwrap();
    // Nothing waits for a process without a parent in some containers, where it remains in the state Z.
    let state = format!("/proc/{}/stat", compiler.trim());
    wait_for(|| fs::read_to_string(&state).map_or(true, |text| text.contains(") Z ")).then_some(()));
    fs::remove_dir_all(folder).unwrap();
}

/// Waits until there is a value.
fn wait_for<T>(find: impl Fn() -> Option<T>) -> T {
    for _ in 0..1000 {
        if let Some(found) = find() {
            return found;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing after ten seconds");
}

#[test]
fn without_a_driver_of_vulkan_the_error_says_what_to_install() {
    let absent = Path::new("/there/is/no/driver.json");
    let mut command = child("vulkan");
    let text = output(command.env("VK_DRIVER_FILES", absent).env("VK_ICD_FILENAMES", absent));
    assert!(text.contains("Err") && text.contains("vulkan"), "{text}");
    assert!(text.contains("install a Vulkan driver"), "{text}");
}

#[test]
fn an_array_without_memory_is_resource_exhausted_and_smaller_ones_have_memory() {
    let client = client(&["memory_limit=4096"]).unwrap();
    let large = "func.func @main(%x: tensor<f32>) -> tensor<4096xf32> {
        %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<4096xf32>
        return %0 : tensor<4096xf32>
    }";
    let error = client.evaluate(large, &[Array::scalar(1.0_f32)]).unwrap_err();
    assert_eq!(error.code, Code::RESOURCE_EXHAUSTED, "{error:?}");
    assert!(error.message.contains("of 4096 bytes") && error.message.contains("memory_limit"), "{error:?}");
    let error =
        client.upload(&Array::new(&[4096], &[0.0_f32; 4096]).unwrap()).and_then(|buffer| buffer.wait());
    assert_eq!(error.unwrap_err().code, Code::RESOURCE_EXHAUSTED);
    assert_runs(&client);
}
