/* Triton: compilation of Triton kernels. */
#ifndef PJRT_EXTENSION_TRITON_H_
#define PJRT_EXTENSION_TRITON_H_

#include "../pjrt_c_api.h"

#define PJRT_API_TRITON_EXTENSION_VERSION 2

struct PJRT_Triton_Compile_Args {
  size_t struct_size;
  const char* module;
  size_t module_size;
  const char* arch_name;
  size_t arch_name_size;
  int num_warps;
  int num_ctas;
  int num_stages;
  const char* out_asm;
  size_t out_asm_size;
  int64_t out_smem_bytes;
  const char* out_path;
  size_t out_path_size;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Triton_Compile_Args, out_path_size);
typedef PJRT_Error* PJRT_Triton_Compile(PJRT_Triton_Compile_Args* args);

struct PJRT_Triton_Extension {
  PJRT_Extension_Base base;
  PJRT_Triton_Compile* compile;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Triton_Extension, compile);
typedef PJRT_Triton_Extension PJRT_Triton;

#endif /* PJRT_EXTENSION_TRITON_H_ */
