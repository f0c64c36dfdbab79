/* Shardings: the shardings of the parameters and outputs of an executable. */
#ifndef PJRT_EXTENSION_SHARDINGS_H_
#define PJRT_EXTENSION_SHARDINGS_H_

#include "../pjrt_c_api.h"

#define PJRT_API_SHARDINGS_EXTENSION_VERSION 1

/// Arguments of PJRT_Shardings_PJRT_Executable_ParameterShardings.
struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  size_t num_parameters;  ///< Out: number of parameters.
  /// Out: a serialized `OpSharding` per parameter, owned by the executable; or null if not known.
  const char* const* shardings;
  const size_t* sharding_sizes;  ///< Out: their lengths, owned by the executable; or null.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, sharding_sizes);
/// Lists the shardings of an executable's parameters.
typedef PJRT_Error* PJRT_Shardings_PJRT_Executable_ParameterShardings(
    PJRT_Shardings_PJRT_Executable_ParameterShardings_Args* args);

/// Arguments of PJRT_Shardings_PJRT_Executable_OutputShardings.
struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;  ///< The executable.
  size_t num_outputs;  ///< Out: number of outputs.
  /// Out: a serialized `OpSharding` per output, owned by the executable; or null if not known.
  const char* const* shardings;
  const size_t* sharding_sizes;  ///< Out: their lengths, owned by the executable; or null.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Shardings_PJRT_Executable_OutputShardings_Args, sharding_sizes);
/// Lists the shardings of an executable's outputs.
typedef PJRT_Error* PJRT_Shardings_PJRT_Executable_OutputShardings(
    PJRT_Shardings_PJRT_Executable_OutputShardings_Args* args);

/// The Shardings extension.
struct PJRT_Shardings_Extension {
  PJRT_Extension_Base base;
  PJRT_Shardings_PJRT_Executable_ParameterShardings*
      PJRT_Shardings_PJRT_Executable_ParameterShardings;
  PJRT_Shardings_PJRT_Executable_OutputShardings* PJRT_Shardings_PJRT_Executable_OutputShardings;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Shardings_Extension, PJRT_Shardings_PJRT_Executable_OutputShardings);

#endif /* PJRT_EXTENSION_SHARDINGS_H_ */
