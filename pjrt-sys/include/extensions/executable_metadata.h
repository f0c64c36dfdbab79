/* ExecutableMetadata: the compiler's serialized metadata of an executable. */
#ifndef PJRT_EXTENSION_EXECUTABLE_METADATA_H_
#define PJRT_EXTENSION_EXECUTABLE_METADATA_H_

#include "../pjrt_c_api.h"

#define PJRT_API_EXECUTABLE_METADATA_EXTENSION_VERSION 1

/// An executable's metadata.
typedef struct PJRT_ExecutableMetadata {
  const char* serialized_metadata;  ///< The bytes.
  size_t serialized_metadata_size;  ///< Their number.
} PJRT_ExecutableMetadata;

/// Arguments of PJRT_ExecutableMetadata_GetExecutableMetadata.
struct PJRT_ExecutableMetadata_GetExecutableMetadata_Args {
  PJRT_Executable* executable;  ///< The executable.
  PJRT_ExecutableMetadata* metadata;  ///< Out: the metadata, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_ExecutableMetadata_GetExecutableMetadata_Args, metadata);
/// Returns an executable's metadata, serialized.
typedef PJRT_Error* (*PJRT_ExecutableMetadata_GetExecutableMetadata)(
    PJRT_ExecutableMetadata_GetExecutableMetadata_Args* args);

/// Arguments of PJRT_ExecutableMetadata_DestroySerializedMetadata.
struct PJRT_ExecutableMetadata_DestroySerializedMetadata_Args {
  PJRT_ExecutableMetadata* metadata;  ///< The metadata.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_ExecutableMetadata_DestroySerializedMetadata_Args, metadata);
/// Frees metadata.
typedef void (*PJRT_ExecutableMetadata_DestroySerializedMetadata)(
    PJRT_ExecutableMetadata_DestroySerializedMetadata_Args* args);

/// The ExecutableMetadata extension.
struct PJRT_ExecutableMetadata_Extension {
  PJRT_Extension_Base base;
  /// Returns an executable's metadata.
  PJRT_ExecutableMetadata_GetExecutableMetadata get_executable_metadata;
  PJRT_ExecutableMetadata_DestroySerializedMetadata destroy_serialized_metadata;  ///< Frees it.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_ExecutableMetadata_Extension, destroy_serialized_metadata);

#endif /* PJRT_EXTENSION_EXECUTABLE_METADATA_H_ */
