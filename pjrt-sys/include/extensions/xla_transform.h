/* XlaTransform: HLO rewrites that the host plugs into the compiler. */
#ifndef PJRT_EXTENSION_XLA_TRANSFORM_H_
#define PJRT_EXTENSION_XLA_TRANSFORM_H_

#include "../pjrt_c_api.h"

#define PJRT_API_XLA_TRANSFORM_EXTENSION_VERSION 1

/// Text or bytes, not NUL-terminated.
typedef struct PJRT_XlaTransform_string {
  const char* data;  ///< The bytes.
  size_t size;  ///< Their number.
} PJRT_XlaTransform_string;

/// The common fields of all calls of a transform: the caller's version, and the error.
typedef struct PJRT_XlaTransform_version_and_error {
  int64_t api_version;  ///< The caller's version.
  void* data;  ///< Out: owns the memory of the results.
  void (*cleanup_fn)(void* data);  ///< Out: frees `data`, or null.
  bool has_error;  ///< Out: whether `code` and `error_msg` are set.
  PJRT_Error_Code code;  ///< Out: the error's code.
  PJRT_XlaTransform_string error_msg;  ///< Out: the error's text.
} PJRT_XlaTransform_version_and_error;

/// Arguments and results of a transform.
struct PJRT_XlaTransform_Args {
  size_t struct_size;
  PJRT_XlaTransform_version_and_error header;  ///< Version and error.
  PJRT_XlaTransform_string hlo_module;  ///< A serialized `HloModuleProto`.
  PJRT_XlaTransform_string transformed_hlo_module;  ///< Out: the new `HloModuleProto`.
  bool changed;  ///< Out: whether it differs.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_XlaTransform_Args, changed);

/// A transform, provided by the host.
typedef struct PJRT_XlaTransform_Callbacks {
  int64_t version;  ///< The host's version of this struct.
  void (*dtor)(struct PJRT_XlaTransform_Callbacks* data);  ///< Frees the transform, or null.
  /// Rewrites a module, or null.
  void (*transform_hlo_module)(struct PJRT_XlaTransform_Callbacks* data, PJRT_XlaTransform_Args*
      args);
} PJRT_XlaTransform_Callbacks;

/// The stage of the compiler in which a transform runs.
typedef enum {
  PJRT_XlaTransform_PipelineStage_kPreScheduler = 0,  ///< Before scheduling.
  PJRT_XlaTransform_PipelineStage_kPostScheduler = 1,  ///< After scheduling.
} PJRT_XlaTransform_PipelineStage;

/// Arguments of PJRT_Register_Xla_Transform_Fn.
struct PJRT_Register_Xla_Transform_Args {
  size_t struct_size;
  const char* name;  ///< The name; borrowed for the call.
  size_t name_size;  ///< Length of `name`.
  PJRT_XlaTransform_PipelineStage stage;  ///< The stage.
  PJRT_XlaTransform_Callbacks* callbacks;  ///< The transform.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Register_Xla_Transform_Args, callbacks);
/// Registers a transform.
typedef PJRT_Error* (*PJRT_Register_Xla_Transform_Fn)(PJRT_Register_Xla_Transform_Args* args);

/// Arguments of PJRT_Clear_Xla_Transform_Fn.
struct PJRT_Clear_Xla_Transform_Args {
  size_t struct_size;
  PJRT_XlaTransform_PipelineStage stage;  ///< The stage.
  const char* name;  ///< The name; borrowed for the call.
  size_t name_size;  ///< Length of `name`.
  PJRT_XlaTransform_Callbacks* callbacks;  ///< The transform.
  bool cleared;  ///< Out: whether there was a transform.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Clear_Xla_Transform_Args, cleared);
/// Removes a transform.
typedef PJRT_Error* (*PJRT_Clear_Xla_Transform_Fn)(PJRT_Clear_Xla_Transform_Args* args);

/// A report of the changes by the compiler's passes.
typedef struct PJRT_HloPassPipelineTrace {
  const char* serialized_trace;  ///< A serialized `HloModuleMetadataProto`.
  size_t serialized_trace_size;  ///< Its length.
} PJRT_HloPassPipelineTrace;

/// Arguments of PJRT_Xla_Transform_Get_Hlo_Pass_Pipeline_Trace_Fn.
struct PJRT_Xla_Transform_Get_Hlo_Pass_Pipeline_Trace_Args {
  size_t struct_size;
  PJRT_XlaTransform_string hlo_module;  ///< A serialized `HloModuleProto`.
  PJRT_HloPassPipelineTrace trace;  ///< Out: the report; owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Xla_Transform_Get_Hlo_Pass_Pipeline_Trace_Args, trace);
/// Runs the compiler's passes on a module and reports their changes.
typedef PJRT_Error* (*PJRT_Xla_Transform_Get_Hlo_Pass_Pipeline_Trace_Fn)(
    PJRT_Xla_Transform_Get_Hlo_Pass_Pipeline_Trace_Args* args);

/// Arguments of PJRT_Xla_Transform_Destroy_Hlo_Pass_Pipeline_Trace_Fn.
struct PJRT_Xla_Transform_Destroy_Hlo_Pass_Pipeline_Trace_Args {
  size_t struct_size;
  PJRT_HloPassPipelineTrace* trace;  ///< The report.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Xla_Transform_Destroy_Hlo_Pass_Pipeline_Trace_Args, trace);
/// Frees a report.
typedef void (*PJRT_Xla_Transform_Destroy_Hlo_Pass_Pipeline_Trace_Fn)(
    PJRT_Xla_Transform_Destroy_Hlo_Pass_Pipeline_Trace_Args* args);

/// The XlaTransform extension.
struct PJRT_Xla_Transform_Extension {
  PJRT_Extension_Base base;
  PJRT_Register_Xla_Transform_Fn register_xla_transform;  ///< Registers a transform.
  PJRT_Clear_Xla_Transform_Fn clear_xla_transform;  ///< Removes one.
  /// Reports the changes by the compiler's passes.
  PJRT_Xla_Transform_Get_Hlo_Pass_Pipeline_Trace_Fn get_hlo_pass_pipeline_trace;
  /// Frees a report.
  PJRT_Xla_Transform_Destroy_Hlo_Pass_Pipeline_Trace_Fn destroy_hlo_pass_pipeline_trace;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Xla_Transform_Extension, destroy_hlo_pass_pipeline_trace);

#endif /* PJRT_EXTENSION_XLA_TRANSFORM_H_ */
