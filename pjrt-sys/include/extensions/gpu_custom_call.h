/* Gpu_Custom_Call: registration of custom calls on CUDA and ROCm. */
#ifndef PJRT_EXTENSION_GPU_CUSTOM_CALL_H_
#define PJRT_EXTENSION_GPU_CUSTOM_CALL_H_

#include "../pjrt_c_api.h"

#define PJRT_API_GPU_EXTENSION_VERSION 3

/// Arguments of PJRT_Gpu_Register_Custom_Call.
struct PJRT_Gpu_Register_Custom_Call_Args {
  size_t struct_size;
  const char* function_name;  ///< The custom call's name; borrowed for the call.
  size_t function_name_size;  ///< Length of `function_name`.
  int api_version;  ///< 0 for an untyped function, 1 for FFI handlers.
  void* handler_instantiate;  ///< FFI handler of the instantiate stage, or null.
  void* handler_prepare;  ///< FFI handler of the prepare stage, or null.
  void* handler_initialize;  ///< FFI handler of the initialize stage, or null.
  void* handler_execute;  ///< The function, or FFI handler of the execute stage.
  /// Bits of `PJRT_FFI_Handler_TraitsBits`; read only if the extension sets `custom_call_handles_traits`.
  uint32_t traits;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Gpu_Register_Custom_Call_Args, traits);
/// Registers the handlers of custom calls of a name.
typedef PJRT_Error* PJRT_Gpu_Register_Custom_Call(PJRT_Gpu_Register_Custom_Call_Args* args);

/// The Gpu_Custom_Call extension.
struct PJRT_Gpu_Custom_Call {
  PJRT_Extension_Base base;
  PJRT_Gpu_Register_Custom_Call* custom_call;
  bool custom_call_handles_traits;  ///< `true` if `traits` is read.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Gpu_Custom_Call, custom_call_handles_traits);

#endif /* PJRT_EXTENSION_GPU_CUSTOM_CALL_H_ */
