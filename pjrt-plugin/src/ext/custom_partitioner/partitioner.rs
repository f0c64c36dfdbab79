//! Calls of a partitioner: conversion of arrays and shardings to protocol buffers, and of its results from them.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::ptr::{self, NonNull};

use pjrt_sys::{
    JAX_CustomCallPartitioner_Callbacks as Callbacks,
    JAX_CustomCallPartitioner_InferShardingFromOperands_Args as InferArgs,
    JAX_CustomCallPartitioner_Partition_Args as PartitionArgs,
    JAX_CustomCallPartitioner_PropagateUserSharding_Args as PropagateArgs, JAX_CustomCallPartitioner_aval,
    JAX_CustomCallPartitioner_string, JAX_CustomCallPartitioner_version_and_error as Header, PJRT_Error_Code,
};
use prost::Message;

use crate::abi::args::{borrowed_slice, chars, null, text};
use crate::element_type::ElementType;
use crate::error::{Error, ErrorCode, Result};
use crate::proto;
use crate::sharding::Sharding;

/// The version of the structs that this crate supports.
const VERSION: i64 = 0;

/// `xla.PrimitiveType` of a tuple, and `xla.OpSharding.Type` of its sharding.
const TUPLE_SHAPE: u32 = 13;
const TUPLE_SHARDING: i32 = 2;

/// Functions of the host that partition the custom calls of a target.
///
/// The functions may be called on any thread, and may block: those of JAX acquire Python's global interpreter lock. The
/// caller must not hold a lock that a thread of the host could wait for.
///
/// ```
/// use pjrt_plugin::ElementType;
/// use pjrt_plugin::ext::{CustomPartitioner, ShardedArray, Sharding};
///
/// fn partition_call(target: &str, dims: &[i64], sharding: &Sharding) -> pjrt_plugin::Result<Option<Vec<u8>>> {
///     let Some(partitioner) = CustomPartitioner::find("chips", target) else { return Ok(None) };
///     let array = ShardedArray {
///         element_type: ElementType::F32,
///         dims: dims.to_vec(),
///         sharding: Some(sharding.clone()),
///     };
///     let operands = [array.clone()];
///     let results = [array];
///     Ok(Some(partitioner.partition(&operands, &results, b"")?.program))
/// }
/// # assert_eq!(partition_call("unknown", &[4], &Sharding::Replicated).unwrap(), None);
/// ```
pub struct CustomPartitioner {
    callbacks: NonNull<Callbacks>,
    functions: Functions,
    can_side_effecting_have_replicated_sharding: bool,
}

#[derive(Clone, Copy)]
struct Functions {
    partition: unsafe extern "C" fn(*mut Callbacks, *mut PartitionArgs),
    infer_sharding: unsafe extern "C" fn(*mut Callbacks, *mut InferArgs),
    propagate_user_sharding: unsafe extern "C" fn(*mut Callbacks, *mut PropagateArgs),
}

// SAFETY: the interface allows compilers to call and free partitioners on any thread.
unsafe impl Send for CustomPartitioner {}
// SAFETY: as above; the struct is not written to after registration.
unsafe impl Sync for CustomPartitioner {}

/// An array of the unpartitioned program, and its sharding. See the example of [`CustomPartitioner`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardedArray {
    /// The element type.
    pub element_type: ElementType,
    /// The dimensions of the whole array.
    pub dims: Vec<i64>,
    /// The sharding; `None` if it is not known.
    pub sharding: Option<Sharding>,
}

/// The replacement of a custom call in the program of one partition: the result of [`CustomPartitioner::partition`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// A StableHLO program, as bytecode or text. Its `main` function takes the partition's parts of the operands and returns
    /// those of the results. It may communicate with the other partitions.
    pub program: Vec<u8>,
    /// The required sharding of each operand.
    pub operand_shardings: Vec<Sharding>,
    /// The sharding of each result.
    pub result_shardings: Vec<Sharding>,
}

impl CustomPartitioner {
    /// Takes ownership of a partitioner of the host. If it fails, the host keeps the ownership.
    ///
    /// # Safety
    ///
    /// `callbacks` is null, or points to a struct of the version in its first field, whose ownership the host passes and
    /// whose functions can be called on any thread until `dtor` is called.
    pub(super) unsafe fn from_raw(callbacks: *mut Callbacks) -> Result<Self> {
        let Some(callbacks) = NonNull::new(callbacks) else { return Err(null("callbacks")) };
        // SAFETY: a struct of any version begins with its version, by this function's contract.
        let version = unsafe { (&raw const (*callbacks.as_ptr()).version).read() };
        if version != VERSION {
            return Err(Error::unimplemented(format!(
                "its functions have version {version}; expected {VERSION}"
            )));
        }
        // SAFETY: a struct of this version has this size, by this function's contract.
        let read = unsafe { callbacks.read() };
        let functions = Functions {
            partition: read.partition.ok_or_else(|| null("partition"))?,
            infer_sharding: read.infer_sharding.ok_or_else(|| null("infer_sharding"))?,
            propagate_user_sharding: read
                .propagate_user_sharding
                .ok_or_else(|| null("propagate_user_sharding"))?,
        };
        Ok(Self {
            callbacks,
            functions,
            can_side_effecting_have_replicated_sharding: read.can_side_effecting_have_replicated_sharding,
        })
    }

    /// Returns whether the results of calls with side effects may be replicated, so that every partition runs the call.
    #[must_use]
    pub fn can_side_effecting_have_replicated_sharding(&self) -> bool {
        self.can_side_effecting_have_replicated_sharding
    }

    /// Returns the replacement of a call in the program of one partition, given the shardings of its operands and results.
    ///
    /// # Errors
    ///
    /// Returns the host's error, or INTERNAL if the host's result is malformed.
    pub fn partition(
        &self,
        operands: &[ShardedArray],
        results: &[ShardedArray],
        backend_config: &[u8],
    ) -> Result<Partition> {
        let messages: Vec<Messages> = operands.iter().map(Messages::of).collect();
        let mut avals: Vec<_> = messages.iter().map(Messages::aval).collect();
        let result = Messages::of_results(results);
        let mut args = PartitionArgs {
            header: header(),
            num_args: avals.len(),
            op_args: avals.as_mut_ptr(),
            op_result: result.aval(),
            backend_config: string(backend_config),
            mlir_module: nothing(),
            args_sharding: ptr::null_mut(),
            result_sharding: nothing(),
        };
        // SAFETY: the struct and the partitioner are of the types that the function expects, and their pointers outlive the
        // call.
        unsafe { (self.functions.partition)(self.callbacks.as_ptr(), &raw mut args) };
        let answer = Answer::new(&args.header)?;
        // SAFETY: the host has written as many strings as there are operands, which live until the cleanup.
        let shardings: &[JAX_CustomCallPartitioner_string] =
            unsafe { borrowed_slice(args.args_sharding.cast_const(), operands.len(), "args_sharding") }
                .map_err(unexpected)?;
        let operand_shardings = shardings
            .iter()
            .map(|sharding| Sharding::from_proto(&answer.sharding(sharding, "args_sharding")?))
            .collect::<Result<_>>()?;
        let result_sharding = answer.sharding(&args.result_sharding, "result_sharding")?;
        Ok(Partition {
            program: answer.bytes(&args.mlir_module, "mlir_module")?.to_vec(),
            operand_shardings,
            result_shardings: of_results(&result_sharding, results.len())?,
        })
    }

    /// Returns the preferred shardings of a call's results, given the shardings of its operands, or `None` if the host has
    /// no preference. The shardings in `results` are ignored. Compilers that read the attribute `sdy.sharding_rule` of calls
    /// need not call this method.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`partition`](Self::partition).
    pub fn infer_sharding(
        &self,
        operands: &[ShardedArray],
        results: &[ShardedArray],
        backend_config: &[u8],
    ) -> Result<Option<Vec<Sharding>>> {
        let messages: Vec<Messages> = operands.iter().map(Messages::of).collect();
        let mut avals: Vec<_> = messages.iter().map(Messages::aval).collect();
        let result = Messages::of_results(results);
        let mut args = InferArgs {
            header: header(),
            num_args: avals.len(),
            op_args: avals.as_mut_ptr(),
            result_shape: string(&result.shape),
            backend_config: string(backend_config),
            has_result_sharding: false,
            result_sharding: nothing(),
        };
        // SAFETY: as in `partition`.
        unsafe { (self.functions.infer_sharding)(self.callbacks.as_ptr(), &raw mut args) };
        let answer = Answer::new(&args.header)?;
        if !args.has_result_sharding {
            return Ok(None);
        }
        of_results(&answer.sharding(&args.result_sharding, "result_sharding")?, results.len()).map(Some)
    }

    /// Returns the shardings of a call's results, given the shardings in `results` that their users request.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if a result has no sharding, or the same errors as [`partition`](Self::partition).
    pub fn propagate_user_sharding(
        &self,
        results: &[ShardedArray],
        backend_config: &[u8],
    ) -> Result<Vec<Sharding>> {
        let result = Messages::of_results(results);
        let Some(sharding) = &result.sharding else {
            return Err(Error::invalid_argument("propagate_user_sharding needs a sharding of every result"));
        };
        let mut args = PropagateArgs {
            header: header(),
            backend_config: string(backend_config),
            result_shape: string(&result.shape),
            result_sharding: string(sharding),
        };
        // SAFETY: as in `partition`.
        unsafe { (self.functions.propagate_user_sharding)(self.callbacks.as_ptr(), &raw mut args) };
        let answer = Answer::new(&args.header)?;
        of_results(&answer.sharding(&args.result_sharding, "result_sharding")?, results.len())
    }
}

impl Drop for CustomPartitioner {
    fn drop(&mut self) {
        // SAFETY: `from_raw` took ownership of the struct, which is freed only here.
        unsafe {
            if let Some(dtor) = (*self.callbacks.as_ptr()).dtor {
                dtor(self.callbacks.as_ptr());
            }
        }
    }
}

impl fmt::Debug for CustomPartitioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomPartitioner").finish_non_exhaustive()
    }
}

/// A result of the host, which is cleaned up on drop.
struct Answer {
    data: *mut c_void,
    cleanup: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Answer {
    /// Returns the host's result, or its error.
    fn new(header: &Header) -> Result<Self> {
        let answer = Self { data: header.data, cleanup: header.cleanup_fn };
        if !header.has_error {
            return Ok(answer);
        }
        let message = text(answer.bytes(&header.error_msg, "error_msg")?);
        Err(Error::new(ErrorCode::from_number(header.code.0), message))
    }

    fn bytes<'a>(&'a self, string: &JAX_CustomCallPartitioner_string, field: &str) -> Result<&'a [u8]> {
        // SAFETY: the host has written the string, which lives until the cleanup on drop.
        unsafe { borrowed_slice(string.data.cast::<u8>(), string.size, field) }.map_err(unexpected)
    }

    fn sharding(&self, string: &JAX_CustomCallPartitioner_string, field: &str) -> Result<proto::OpSharding> {
        proto::OpSharding::decode(self.bytes(string, field)?).map_err(|error| {
            unexpected(Error::internal(format!("cannot decode '{field}' as an OpSharding: {error}")))
        })
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(cleanup) = self.cleanup {
            // SAFETY: the host requests this call, with this argument, after its result has been read.
            unsafe { cleanup(self.data) };
        }
    }
}

/// An array as serialized `ShapeProto` and `OpSharding`.
struct Messages {
    shape: Vec<u8>,
    sharding: Option<Vec<u8>>,
}

impl Messages {
    fn of(array: &ShardedArray) -> Self {
        Self {
            shape: shape(array).encode_to_vec(),
            sharding: array.sharding.as_ref().map(|sharding| sharding.to_proto().encode_to_vec()),
        }
    }

    /// Converts a single result to itself, and several results to a tuple, which has a sharding if all results have one.
    fn of_results(results: &[ShardedArray]) -> Self {
        if let [result] = results {
            return Self::of(result);
        }
        let tuple = proto::Shape {
            element_type: TUPLE_SHAPE,
            tuple_shapes: results.iter().map(shape).collect(),
            ..proto::Shape::default()
        };
        let shardings = results.iter().map(|result| result.sharding.as_ref().map(Sharding::to_proto));
        let sharding = shardings.collect::<Option<_>>().map(|tuple_shardings| proto::OpSharding {
            r#type: TUPLE_SHARDING,
            tuple_shardings,
            ..proto::OpSharding::default()
        });
        Self { shape: tuple.encode_to_vec(), sharding: sharding.map(|sharding| sharding.encode_to_vec()) }
    }

    fn aval(&self) -> JAX_CustomCallPartitioner_aval {
        JAX_CustomCallPartitioner_aval {
            shape: string(&self.shape),
            has_sharding: self.sharding.is_some(),
            sharding: self.sharding.as_deref().map_or_else(nothing, string),
        }
    }
}

fn shape(array: &ShardedArray) -> proto::Shape {
    proto::Shape {
        element_type: array.element_type.xla_number(),
        dimensions: array.dims.clone(),
        layout: Some(proto::Layout {
            minor_to_major: (0..array.dims.len() as i64).rev().collect(),
            tiles: Vec::new(),
        }),
        is_dynamic_dimension: vec![false; array.dims.len()],
        tuple_shapes: Vec::new(),
    }
}

/// Returns the shardings of `count` results. Several results have the sharding of a tuple.
fn of_results(sharding: &proto::OpSharding, count: usize) -> Result<Vec<Sharding>> {
    if count == 1 && sharding.r#type != TUPLE_SHARDING {
        return Ok(vec![Sharding::from_proto(sharding)?]);
    }
    // In XLA, an empty tuple has one sharding.
    let elements = &sharding.tuple_shardings;
    if sharding.r#type != TUPLE_SHARDING || count > 0 && elements.len() != count {
        return Err(unexpected(Error::internal(format!(
            "expected shardings of {count} results, found {}",
            elements.len()
        ))));
    }
    elements.iter().take(count).map(Sharding::from_proto).collect()
}

/// Returns the error for a malformed result of the host.
fn unexpected(error: Error) -> Error {
    Error::internal(error.message()).context("the host's partitioner returned a malformed result")
}

fn header() -> Header {
    Header {
        api_version: VERSION,
        data: ptr::null_mut(),
        cleanup_fn: None,
        has_error: false,
        code: PJRT_Error_Code(0),
        error_msg: nothing(),
    }
}

fn string(bytes: &[u8]) -> JAX_CustomCallPartitioner_string {
    JAX_CustomCallPartitioner_string { data: chars(bytes), size: bytes.len() }
}

fn nothing() -> JAX_CustomCallPartitioner_string {
    JAX_CustomCallPartitioner_string { data: ptr::null::<c_char>(), size: 0 }
}

#[cfg(test)]
mod tests;
