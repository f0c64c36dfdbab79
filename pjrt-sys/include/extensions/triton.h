/* Triton: compilation of Triton kernels. */
#ifndef PJRT_EXTENSION_TRITON_H_
#define PJRT_EXTENSION_TRITON_H_

#include "../pjrt_c_api.h"

#define PJRT_API_TRITON_EXTENSION_VERSION 2

/// Arguments of PJRT_Triton_Compile.
struct PJRT_Triton_Compile_Args {
  size_t struct_size;
  const char* module;  ///< The kernel's MLIR text; borrowed for the call.
  size_t module_size;  ///< Its length.
  const char* arch_name;  ///< The GPU's architecture; borrowed for the call.
  size_t arch_name_size;  ///< Its length.
  int num_warps;  ///< Warps per block.
  int num_ctas;  ///< Blocks per cluster.
  int num_stages;  ///< Pipeline stages.
  const char* out_asm;  ///< Out: the assembly, owned by the caller.
  size_t out_asm_size;  ///< Out: its length.
  int64_t out_smem_bytes;  ///< Out: shared memory needed.
  const char* out_path;  ///< Out: the path of a file with the binary, owned by the caller.
  size_t out_path_size;  ///< Out: its length.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Triton_Compile_Args, out_path_size);
/// Compiles a Triton kernel.
typedef PJRT_Error* PJRT_Triton_Compile(PJRT_Triton_Compile_Args* args);

/// The Triton extension.
struct PJRT_Triton_Extension {
  PJRT_Extension_Base base;
  PJRT_Triton_Compile* compile;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Triton_Extension, compile);
/// The other name of `PJRT_Triton_Extension`.
typedef PJRT_Triton_Extension PJRT_Triton;

#endif /* PJRT_EXTENSION_TRITON_H_ */
