//! The arrays and programs that checks of memory, layouts and copies use.

use super::upload::pattern;
use crate::conform::harness::{Expected, Verdict, add_program, f32_bytes};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, ElementType, ExecuteOptions, HostArray, LoadedExecutable, Program, Result,
};

/// Arrays of one dimension of f32, and the program that adds two of them.
pub(super) struct Floats<'c> {
    pub(super) client: &'c Client,
    len: usize,
}

impl<'c> Floats<'c> {
    /// Describes arrays with this many elements. Each check uses a different number, so that faults recognize its
    /// arrays, and so that plugins that reuse memory by size give the arrays separate memory.
    pub(super) fn new(client: &'c Client, len: usize) -> Self {
        Self { client, len }
    }

    /// Returns an array in which every element depends on its position and on the number of the array.
    pub(super) fn bytes(&self, number: u8) -> Vec<u8> {
        let element = |at: usize| f32::from(number) * 1000.0 + (at % 509) as f32;
        f32_bytes(&(0..self.len).map(element).collect::<Vec<_>>())
    }

    /// Returns `true` if two elements are those at the same position of two arrays with different numbers.
    pub(super) fn are_of_two(first: f32, second: f32) -> bool {
        let numbers = [first, second].map(|element| (element / 1000.0).floor());
        let is_number = |number: &f32| (0.0..=255.0).contains(number);
        numbers.iter().all(is_number) && numbers[0] != numbers[1] && first % 1000.0 == second % 1000.0
    }

    /// Returns the sum of two arrays.
    pub(super) fn sum(&self, first: u8, second: u8) -> Vec<u8> {
        let element =
            |at: usize| f32::from(first) * 1000.0 + f32::from(second) * 1000.0 + 2.0 * (at % 509) as f32;
        f32_bytes(&(0..self.len).map(element).collect::<Vec<_>>())
    }

    /// Begins to transfer an array to the first device.
    pub(super) fn start_upload(&self, number: u8) -> Result<Buffer> {
        let dims = [self.len as i64];
        let bytes = self.bytes(number);
        let array = HostArray::new(&bytes, ElementType::F32, &dims);
        Ok(self.client.upload(&array, Some(self.client.device()?), None)?.buffer)
    }

    /// Transfers an array to the first device, and waits until it is there.
    pub(super) fn upload(&self, number: u8) -> Result<Buffer> {
        let buffer = self.start_upload(number)?;
        buffer.ready()?.wait()?;
        Ok(buffer)
    }

    /// Transfers several arrays of the same size, which use memory that was freed before.
    pub(super) fn reuse(&self) -> Result<Vec<Buffer>> {
        (0..4).map(|_| self.upload(OTHER)).collect()
    }

    /// Compiles the program that adds two arrays.
    pub(super) fn program(&self) -> Result<LoadedExecutable> {
        self.compile(&add_program(&format!("{}x", self.len)))
    }

    /// Compiles a program that adds two arrays, and whose result may overwrite the first one.
    pub(super) fn donating_program(&self) -> Result<LoadedExecutable> {
        let argument = format!("%x: tensor<{}xf32>", self.len);
        let donated = format!("{argument} {{tf.aliasing_output = 0 : i32}}");
        self.compile(&add_program(&format!("{}x", self.len)).replacen(&argument, &donated, 1))
    }

    fn compile(&self, text: &str) -> Result<LoadedExecutable> {
        self.client.compile(&Program::mlir(text), &CompileOptions::default().encode())
    }

    /// Describes what a check expects to read: `what` with the elements `expected`. The new array that reuses
    /// memory is a suspect.
    pub(super) fn check(&self, what: &str, buffer: &Buffer, expected: &[u8], cause: &str) -> Verdict {
        self.check_bytes(what, &buffer.read()?, expected, cause)
    }

    /// Compares bytes as [`check`](Self::check) does.
    pub(super) fn check_bytes(&self, what: &str, read: &[u8], expected: &[u8], cause: &str) -> Verdict {
        if read == expected {
            return Ok(());
        }
        if cause.is_empty() {
            return Expected::floats(what, expected).check(read);
        }
        Expected::floats(what, expected)
            .suspect(self.bytes(OTHER), cause)
            .suspect(self.sum(OTHER, OTHER), cause)
            .suspect(self.sum(OTHER, FIRST), cause)
            .suspect(self.sum(OTHER, SECOND), cause)
            .check(read)
    }
}

/// The numbers of the arrays that most checks add.
pub(super) const FIRST: u8 = 1;
pub(super) const SECOND: u8 = 2;

/// The number of the arrays that reuse memory.
pub(super) const OTHER: u8 = 7;

/// Executes a program with two arguments, and returns the output. Faults recognize the execution by its id.
pub(super) fn launch(program: &LoadedExecutable, arguments: [&Buffer; 2], launch_id: i32) -> Result<Buffer> {
    let options = ExecuteOptions { launch_id, ..ExecuteOptions::default() };
    let launched = program.launch(&[arguments.to_vec()], &options, None, true);
    launched.map_err(|refused| refused.error)?.take_output()
}

/// Returns the elements of an array as bytes. The elements differ, as far as the type permits.
pub(super) fn numbered(element_type: ElementType, len: usize) -> Vec<u8> {
    let parts = |index: usize| (index as u32 + 1).to_le_bytes();
    match element_type.stablehlo_name() {
        "i8" | "ui8" => (0..len).map(|index| parts(index)[0]).collect(),
        // A plugin can return a negative number in two forms, with and without the extended sign.
        "i2" => (0..len).map(|index| (index % 2) as u8).collect(),
        "i4" => (0..len).map(|index| (index % 8) as u8).collect(),
        _ if element_type.byte_size() == 2 => {
            let element = |[low, high, ..]: [u8; 4]| [low, 0x31 + high];
            (0..len).map(|index| element(parts(index))).collect::<Vec<_>>().into_flattened()
        }
        _ if element_type.byte_size() > 2 => {
            let quarter = |[low, high, ..]: [u8; 4]| [low, high, 0x31, 0x41];
            let of_element = element_type.byte_size() / 4;
            let quarters = (0..len * of_element).map(|at| quarter(parts(at / of_element)));
            quarters.collect::<Vec<_>>().into_flattened()
        }
        _ => pattern(element_type, len),
    }
}
