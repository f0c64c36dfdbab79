/* PhaseCompile: a compiler whose phases run one by one. Experimental. */
#ifndef PJRT_EXTENSION_PHASE_COMPILE_H_
#define PJRT_EXTENSION_PHASE_COMPILE_H_

#include "../pjrt_c_api.h"

#define PJRT_API_PHASE_COMPILE_EXTENSION_VERSION 1

/// Arguments of PJRT_PhaseCompile_Get_Compiler.
struct PJRT_PhaseCompile_Get_Compiler_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_PhaseCompiler* phase_compiler;  ///< Out: the compiler, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_PhaseCompile_Get_Compiler_Args, phase_compiler);
/// Creates a phase compiler.
typedef PJRT_Error* PJRT_PhaseCompile_Get_Compiler(PJRT_PhaseCompile_Get_Compiler_Args* args);

/// Arguments of PJRT_PhaseCompile_Destroy_Compiler.
struct PJRT_PhaseCompile_Destroy_Compiler_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_PhaseCompiler* phase_compiler;  ///< The compiler.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_PhaseCompile_Destroy_Compiler_Args, phase_compiler);
/// Frees a phase compiler.
typedef void PJRT_PhaseCompile_Destroy_Compiler(PJRT_PhaseCompile_Destroy_Compiler_Args* args);

/// Arguments of PJRT_PhaseCompile_Run_Phase.
struct PJRT_PhaseCompile_Run_Phase_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_PhaseCompiler* phase_compiler;  ///< The compiler.
  const char** input_programs;  ///< Serialized `PjRtPartialProgramProto`s; borrowed for the call.
  const size_t* input_programs_sizes;  ///< Their lengths.
  size_t num_input_programs;  ///< Their number.
  const char** phases_to_run;  ///< Names of the phases, NUL-terminated; borrowed for the call.
  const size_t* phases_to_run_sizes;  ///< Their lengths.
  size_t num_phases_to_run;  ///< Their number.
  const char* compile_options;  ///< A serialized `CompileOptionsProto`; borrowed for the call.
  size_t compile_options_size;  ///< Its length.
  PJRT_TopologyDescription* topology;  ///< The topology.
  /// Out: serialized `PjRtPartialProgramProto`s, freed with PJRT_PhaseCompile_C_Buffers_Destroy.
  const char** output_programs;
  const size_t* output_programs_sizes;  ///< Out: their lengths.
  size_t num_output_programs;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_PhaseCompile_Run_Phase_Args, num_output_programs);
/// Runs some phases on partial programs.
typedef PJRT_Error* PJRT_PhaseCompile_Run_Phase(PJRT_PhaseCompile_Run_Phase_Args* args);

/// Arguments of PJRT_PhaseCompile_Get_PhaseNames.
struct PJRT_PhaseCompile_Get_PhaseNames_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_PhaseCompiler* phase_compiler;  ///< The compiler.
  /// Out: their names, NUL-terminated, freed with PJRT_PhaseCompile_C_Buffers_Destroy.
  const char** phase_names;
  const size_t* phase_names_sizes;  ///< Out: their lengths.
  size_t num_phase_names;  ///< Out: their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_PhaseCompile_Get_PhaseNames_Args, num_phase_names);
/// Lists the phases in their order.
typedef PJRT_Error* PJRT_PhaseCompile_Get_PhaseNames(PJRT_PhaseCompile_Get_PhaseNames_Args* args);

/// Arguments of PJRT_PhaseCompile_C_Buffers_Destroy.
struct PJRT_PhaseCompile_C_Buffers_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char** char_buffers;  ///< The buffers.
  const size_t* char_buffer_sizes;  ///< Their lengths.
  size_t num_char_buffers;  ///< Their number.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_PhaseCompile_C_Buffers_Destroy_Args, num_char_buffers);
/// Frees the arrays that the functions above returned.
typedef void PJRT_PhaseCompile_C_Buffers_Destroy(PJRT_PhaseCompile_C_Buffers_Destroy_Args* args);

/// The PhaseCompile extension.
struct PJRT_PhaseCompile_Extension {
  PJRT_Extension_Base base;
  PJRT_PhaseCompile_Get_Compiler* phase_compile_get_compiler;
  PJRT_PhaseCompile_Destroy_Compiler* phase_compile_destroy_compiler;
  PJRT_PhaseCompile_Run_Phase* phase_compile_run_phases;
  PJRT_PhaseCompile_Get_PhaseNames* phase_compile_get_phase_names;
  PJRT_PhaseCompile_C_Buffers_Destroy* phase_compile_c_buffers_destroy;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_PhaseCompile_Extension, phase_compile_c_buffers_destroy);

#endif /* PJRT_EXTENSION_PHASE_COMPILE_H_ */
