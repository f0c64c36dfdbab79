/* Gpu_Custom_Call: registration of custom calls on CUDA and ROCm. */
#ifndef PJRT_EXTENSION_GPU_CUSTOM_CALL_H_
#define PJRT_EXTENSION_GPU_CUSTOM_CALL_H_

#include "../pjrt_c_api.h"

#define PJRT_API_GPU_EXTENSION_VERSION 3

struct PJRT_Gpu_Register_Custom_Call_Args {
  size_t struct_size;
  const char* function_name;
  size_t function_name_size;
  int api_version;
  void* handler_instantiate;
  void* handler_prepare;
  void* handler_initialize;
  void* handler_execute;
  uint32_t traits;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Gpu_Register_Custom_Call_Args, traits);
typedef PJRT_Error* PJRT_Gpu_Register_Custom_Call(PJRT_Gpu_Register_Custom_Call_Args* args);

struct PJRT_Gpu_Custom_Call {
  PJRT_Extension_Base base;
  PJRT_Gpu_Register_Custom_Call* custom_call;
  bool custom_call_handles_traits;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Gpu_Custom_Call, custom_call_handles_traits);

#endif /* PJRT_EXTENSION_GPU_CUSTOM_CALL_H_ */
