/* XlaTransform: HLO rewrites that the host plugs into the compiler. */
#ifndef PJRT_EXTENSION_XLA_TRANSFORM_H_
#define PJRT_EXTENSION_XLA_TRANSFORM_H_

#include "../pjrt_c_api.h"

#define PJRT_API_XLA_TRANSFORM_EXTENSION_VERSION 1

typedef struct PJRT_XlaTransform_string {
  const char* data;
  size_t size;
} PJRT_XlaTransform_string;

typedef struct PJRT_XlaTransform_version_and_error {
  int64_t api_version;
  void* data;
  void (*cleanup_fn)(void* data);
  bool has_error;
  PJRT_Error_Code code;
  PJRT_XlaTransform_string error_msg;
} PJRT_XlaTransform_version_and_error;

struct PJRT_XlaTransform_Args {
  size_t struct_size;
  PJRT_XlaTransform_version_and_error header;
  PJRT_XlaTransform_string hlo_module;
  PJRT_XlaTransform_string transformed_hlo_module;
  bool changed;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_XlaTransform_Args, changed);

typedef struct PJRT_XlaTransform_Callbacks {
  int64_t version;
  void (*dtor)(struct PJRT_XlaTransform_Callbacks* data);
  void (*transform_hlo_module)(struct PJRT_XlaTransform_Callbacks* data, PJRT_XlaTransform_Args*
      args);
} PJRT_XlaTransform_Callbacks;

typedef enum {
  PJRT_XlaTransform_PipelineStage_kPreScheduler = 0,
  PJRT_XlaTransform_PipelineStage_kPostScheduler = 1,
} PJRT_XlaTransform_PipelineStage;

struct PJRT_Register_Xla_Transform_Args {
  size_t struct_size;
  const char* name;
  size_t name_size;
  PJRT_XlaTransform_PipelineStage stage;
  PJRT_XlaTransform_Callbacks* callbacks;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Register_Xla_Transform_Args, callbacks);
typedef PJRT_Error* (*PJRT_Register_Xla_Transform_Fn)(PJRT_Register_Xla_Transform_Args* args);

struct PJRT_Clear_Xla_Transform_Args {
  size_t struct_size;
  PJRT_XlaTransform_PipelineStage stage;
  const char* name;
  size_t name_size;
  PJRT_XlaTransform_Callbacks* callbacks;
  bool cleared;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Clear_Xla_Transform_Args, cleared);
typedef PJRT_Error* (*PJRT_Clear_Xla_Transform_Fn)(PJRT_Clear_Xla_Transform_Args* args);

typedef struct PJRT_HloPassPipelineTrace {
  const char* serialized_trace;
  size_t serialized_trace_size;
} PJRT_HloPassPipelineTrace;

struct PJRT_Xla_Transform_Get_Hlo_Pass_Pipeline_Trace_Args {
  size_t struct_size;
  PJRT_XlaTransform_string hlo_module;
  PJRT_HloPassPipelineTrace trace;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Xla_Transform_Get_Hlo_Pass_Pipeline_Trace_Args, trace);
typedef PJRT_Error* (*PJRT_Xla_Transform_Get_Hlo_Pass_Pipeline_Trace_Fn)(
    PJRT_Xla_Transform_Get_Hlo_Pass_Pipeline_Trace_Args* args);

struct PJRT_Xla_Transform_Destroy_Hlo_Pass_Pipeline_Trace_Args {
  size_t struct_size;
  PJRT_HloPassPipelineTrace* trace;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Xla_Transform_Destroy_Hlo_Pass_Pipeline_Trace_Args, trace);
typedef void (*PJRT_Xla_Transform_Destroy_Hlo_Pass_Pipeline_Trace_Fn)(
    PJRT_Xla_Transform_Destroy_Hlo_Pass_Pipeline_Trace_Args* args);

struct PJRT_Xla_Transform_Extension {
  PJRT_Extension_Base base;
  PJRT_Register_Xla_Transform_Fn register_xla_transform;
  PJRT_Clear_Xla_Transform_Fn clear_xla_transform;
  PJRT_Xla_Transform_Get_Hlo_Pass_Pipeline_Trace_Fn get_hlo_pass_pipeline_trace;
  PJRT_Xla_Transform_Destroy_Hlo_Pass_Pipeline_Trace_Fn destroy_hlo_pass_pipeline_trace;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Xla_Transform_Extension, destroy_hlo_pass_pipeline_trace);

#endif /* PJRT_EXTENSION_XLA_TRANSFORM_H_ */
