//! The arrays and programs of the scenarios. All plugins that run a host's programs can add.

use super::message::{Stop, Verdict};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, CopyLayout, Device, ElementType, HostArray, LoadedExecutable, Program, Result, Semantics,
};

/// The elements of an array of f32: element `i` is `start + step * i`. All are integers that f32 represents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Numbers {
    pub(super) len: usize,
    pub(super) start: usize,
    pub(super) step: usize,
}

impl Numbers {
    fn at(self, index: usize) -> f32 {
        (self.start + self.step * index) as f32
    }

    fn bytes(self) -> Vec<u8> {
        (0..self.len).flat_map(|index| self.at(index).to_le_bytes()).collect()
    }

    /// Returns the sums of the elements of two arrays of the same length.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { len: self.len, start: self.start + other.start, step: self.step + other.step }
    }

    /// Returns `true` if f32 represents the sums with another such array.
    pub(super) fn is_small(self) -> bool {
        self.start + self.step * self.len < 1 << 22
    }

    /// Checks the bytes of an array.
    pub(super) fn check(self, bytes: &[u8]) -> std::result::Result<(), String> {
        if bytes.len() != 4 * self.len {
            return Err(format!("the array has {} bytes; expected {}", bytes.len(), 4 * self.len));
        }
        let values = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let mut wrong = values.enumerate().filter(|(index, value)| *value != self.at(*index));
        let Some((index, value)) = wrong.next() else { return Ok(()) };
        let more = wrong.count();
        Err(format!(
            "element {index} of {} is {value}; expected {}; {more} other elements are wrong",
            self.len,
            self.at(index)
        ))
    }
}

/// Transfers an array, and overwrites the host's memory as soon as the host may. `semantics` is one of the two
/// under which the plugin copies.
pub(super) fn upload(
    client: &Client,
    numbers: Numbers,
    device: Device<'_>,
    semantics: Semantics,
) -> Result<Buffer> {
    let (bytes, dims) = (numbers.bytes(), [numbers.len as i64]);
    let array = HostArray { semantics, ..HostArray::new(&bytes, ElementType::F32, &dims) };
    let uploaded = client.upload(&array, Some(device), None)?;
    if semantics != Semantics::ImmutableOnlyDuringCall {
        uploaded.done.wait()?;
    }
    uploaded.memory.fill(0xAB);
    uploaded.done.wait()?;
    uploaded.memory.recycle();
    Ok(uploaded.buffer)
}

/// Reads an array.
pub(super) fn read(buffer: &Buffer, numbers: Numbers) -> Result<Vec<u8>> {
    let (memory, event) = buffer.start_read(4 * numbers.len, &CopyLayout::Unsaid)?;
    event.wait()?;
    let bytes = memory.bytes();
    memory.recycle();
    Ok(bytes)
}

/// Reads an array and checks its elements.
pub(super) fn read_and_check(buffer: &Buffer, numbers: Numbers, what: &str) -> Verdict<()> {
    numbers.check(&read(buffer, numbers)?).map_err(|how| Stop::Failed(format!("{what}: {how}")))
}

/// Compiles the program that adds two arrays of this length. With `donates`, its result uses the memory of the
/// first argument.
pub(super) fn compile(client: &Client, len: usize, donates: bool) -> Result<LoadedExecutable> {
    let ty = format!("tensor<{len}xf32>");
    let attribute = if donates { " {tf.aliasing_output = 0 : i32}" } else { "" };
    let text = format!(
        "module @stress {{\n func.func public @main(%x: {ty}{attribute}, %y: {ty}) -> {ty} {{\n \
         %0 = stablehlo.add %x, %y : {ty}\n return %0 : {ty}\n }}\n}}\n"
    );
    client.compile(&Program::mlir(&text), &CompileOptions::default().encode())
}

/// Compiles a program that adds two arrays and a constant of zeros. The signs of the zeros are the bits of `number`, so that programs
/// differ and return the same.
pub(super) fn compile_with_zeros(client: &Client, len: usize, number: u64) -> Result<LoadedExecutable> {
    let ty = format!("tensor<{len}xf32>");
    let zero = |at: usize| if number >> (at % 64) & 1 == 1 { "00000080" } else { "00000000" };
    let zeros: String = (0..len).map(zero).collect();
    let text = format!(
        "module @stress {{\n func.func public @main(%x: {ty}, %y: {ty}) -> {ty} {{\n \
         %c = stablehlo.constant dense<\"0x{zeros}\"> : {ty}\n %0 = stablehlo.add %x, %y : {ty}\n \
         %1 = stablehlo.add %0, %c : {ty}\n return %1 : {ty}\n }}\n}}\n"
    );
    client.compile(&Program::mlir(&text), &CompileOptions::default().encode())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_elements_are_named() {
        let numbers = Numbers { len: 3, start: 5, step: 2 };
        let sum = numbers.plus(numbers);
        assert_eq!(sum.bytes(), [10.0_f32, 14.0, 18.0].map(f32::to_le_bytes).concat());
        assert_eq!(numbers.check(&numbers.bytes()), Ok(()));
        let how = sum.check(&numbers.bytes()).unwrap_err();
        assert_eq!(how, "element 0 of 3 is 5; expected 10; 2 other elements are wrong");
        assert!(sum.check(&[0; 8]).unwrap_err().contains("8 bytes; expected 12"));
    }
}
