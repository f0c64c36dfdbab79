/* Custom_Partitioner: sharding rules for custom calls, provided by the host. */
#ifndef PJRT_EXTENSION_CUSTOM_PARTITIONER_H_
#define PJRT_EXTENSION_CUSTOM_PARTITIONER_H_

#include "../pjrt_c_api.h"

#define PJRT_API_CUSTOM_PARTITIONER_EXTENSION_VERSION 1

/// Text or bytes, not NUL-terminated.
typedef struct JAX_CustomCallPartitioner_string {
  const char* data;  ///< The bytes.
  size_t size;  ///< Their number.
} JAX_CustomCallPartitioner_string;

/// A shape, with its sharding if it has one.
typedef struct JAX_CustomCallPartitioner_aval {
  JAX_CustomCallPartitioner_string shape;  ///< Serialized shape.
  bool has_sharding;  ///< `true` if `sharding` is set.
  JAX_CustomCallPartitioner_string sharding;  ///< Serialized sharding.
} JAX_CustomCallPartitioner_aval;

/// The common fields of all calls of a partitioner: the caller's version, and the error.
typedef struct JAX_CustomCallPartitioner_version_and_error {
  int64_t api_version;  ///< The caller's version.
  void* data;  ///< Out: owns the memory of the results.
  void (*cleanup_fn)(void* data);  ///< Out: frees `data`, when the results are no longer needed.
  bool has_error;  ///< Out: whether `code` and `error_msg` are set.
  PJRT_Error_Code code;  ///< Out: the error's code.
  JAX_CustomCallPartitioner_string error_msg;  ///< Out: the error's text.
} JAX_CustomCallPartitioner_version_and_error;

/// Arguments and results of a partitioner's `partition`.
typedef struct JAX_CustomCallPartitioner_Partition_Args {
  JAX_CustomCallPartitioner_version_and_error header;  ///< Version and error.
  size_t num_args;  ///< Number of operands.
  JAX_CustomCallPartitioner_aval* op_args;  ///< The operands.
  JAX_CustomCallPartitioner_aval op_result;  ///< The result's shape and sharding.
  JAX_CustomCallPartitioner_string backend_config;  ///< The custom call's configuration.
  JAX_CustomCallPartitioner_string mlir_module;  ///< Out: the partitioned computation.
  JAX_CustomCallPartitioner_string* args_sharding;  ///< Out: a sharding per operand.
  JAX_CustomCallPartitioner_string result_sharding;  ///< Out: the result's sharding.
} JAX_CustomCallPartitioner_Partition_Args;

/// Arguments and results of a partitioner's `infer_sharding`.
typedef struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args {
  JAX_CustomCallPartitioner_version_and_error header;  ///< Version and error.
  size_t num_args;  ///< Number of operands.
  JAX_CustomCallPartitioner_aval* op_args;  ///< The operands.
  JAX_CustomCallPartitioner_string result_shape;  ///< The result's shape.
  JAX_CustomCallPartitioner_string backend_config;  ///< The custom call's configuration.
  bool has_result_sharding;  ///< Out: whether `result_sharding` is set.
  JAX_CustomCallPartitioner_string result_sharding;  ///< Out: the result's sharding.
} JAX_CustomCallPartitioner_InferShardingFromOperands_Args;

/// Arguments and results of a partitioner's `propagate_user_sharding`.
typedef struct JAX_CustomCallPartitioner_PropagateUserSharding_Args {
  JAX_CustomCallPartitioner_version_and_error header;  ///< Version and error.
  JAX_CustomCallPartitioner_string backend_config;  ///< The custom call's configuration.
  JAX_CustomCallPartitioner_string result_shape;  ///< The result's shape.
  JAX_CustomCallPartitioner_string result_sharding;  ///< In and out: the result's sharding.
} JAX_CustomCallPartitioner_PropagateUserSharding_Args;

/// A partitioner: how custom calls of one name are sharded.
typedef struct JAX_CustomCallPartitioner_Callbacks {
  int64_t version;  ///< The host's version of this struct.
  void* private_data;  ///< The host's.
  void (*dtor)(struct JAX_CustomCallPartitioner_Callbacks* data);  ///< Frees the partitioner.
  /// Returns the computation of one partition.
  void (*partition)(struct JAX_CustomCallPartitioner_Callbacks* data,
      JAX_CustomCallPartitioner_Partition_Args* args);
  /// Derives the result's sharding from those of the operands.
  void (*infer_sharding)( struct JAX_CustomCallPartitioner_Callbacks* data,
      JAX_CustomCallPartitioner_InferShardingFromOperands_Args* args);
  /// Adapts a sharding that users requested.
  void (*propagate_user_sharding)( struct JAX_CustomCallPartitioner_Callbacks* data,
      JAX_CustomCallPartitioner_PropagateUserSharding_Args* args);
  /// Returns whether a call with side effects may be replicated.
  bool can_side_effecting_have_replicated_sharding;
} JAX_CustomCallPartitioner_Callbacks;

/// Arguments of PJRT_Register_Custom_Partitioner.
struct PJRT_Register_Custom_Partitioner_Args {
  size_t struct_size;
  const char* name;  ///< The name; borrowed for the call.
  size_t name_size;  ///< Length of `name`.
  JAX_CustomCallPartitioner_Callbacks* callbacks;  ///< The partitioner; the plugin takes ownership.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Register_Custom_Partitioner_Args, callbacks);
/// Registers a partitioner for custom calls of a name.
typedef PJRT_Error* PJRT_Register_Custom_Partitioner(PJRT_Register_Custom_Partitioner_Args* args);

/// Arguments of PJRT_Register_Batch_Partitionable.
struct PJRT_Register_Batch_Partitionable_Args {
  size_t struct_size;
  const char* name;  ///< The name; borrowed for the call.
  size_t name_size;  ///< Length of `name`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Register_Batch_Partitionable_Args, name_size);
/// Declares that custom calls of a name may be split along batch dimensions.
typedef PJRT_Error* PJRT_Register_Batch_Partitionable(PJRT_Register_Batch_Partitionable_Args* args);

/// The Custom_Partitioner extension.
struct PJRT_Custom_Partitioner_Extension {
  PJRT_Extension_Base base;
  PJRT_Register_Custom_Partitioner* register_custom_partitioner;
  PJRT_Register_Batch_Partitionable* register_batch_partitionable;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Custom_Partitioner_Extension, register_batch_partitionable);

#endif /* PJRT_EXTENSION_CUSTOM_PARTITIONER_H_ */
