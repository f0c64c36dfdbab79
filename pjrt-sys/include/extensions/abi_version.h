/* AbiVersion: the compatibility of executables with runtimes. */
#ifndef PJRT_EXTENSION_ABI_VERSION_H_
#define PJRT_EXTENSION_ABI_VERSION_H_

#include "../pjrt_c_api.h"

#define PJRT_API_ABI_VERSION_EXTENSION_VERSION 1

/// The properties of a runtime on which executables depend. Owned by the caller.
typedef struct PJRT_RuntimeAbiVersion PJRT_RuntimeAbiVersion;
/// The version of a runtime that an executable requires. Owned by the caller.
typedef struct PJRT_ExecutableAbiVersion PJRT_ExecutableAbiVersion;
/// Owns serialized bytes.
typedef struct PJRT_SerializedProto PJRT_SerializedProto;

/// Arguments of PJRT_Client_RuntimeAbiVersion.
struct PJRT_Client_RuntimeAbiVersion_Args {
  size_t struct_size;
  PJRT_Client* client;  ///< The client.
  PJRT_RuntimeAbiVersion* abi_version;  ///< Out: the version, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Client_RuntimeAbiVersion_Args, abi_version);
/// Returns the version of a client's runtime.
typedef PJRT_Error* PJRT_Client_RuntimeAbiVersion(PJRT_Client_RuntimeAbiVersion_Args* args);

/// Arguments of PJRT_Executable_GetAbiVersion.
struct PJRT_Executable_GetAbiVersion_Args {
  size_t struct_size;
  PJRT_Executable* executable;  ///< The executable.
  PJRT_ExecutableAbiVersion* abi_version;  ///< Out: the version, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Executable_GetAbiVersion_Args, abi_version);
/// Returns the version that an executable requires.
typedef PJRT_Error* PJRT_Executable_GetAbiVersion(PJRT_Executable_GetAbiVersion_Args* args);

/// Arguments of PJRT_RuntimeAbiVersion_Destroy.
struct PJRT_RuntimeAbiVersion_Destroy_Args {
  size_t struct_size;
  PJRT_RuntimeAbiVersion* abi_version;  ///< The version.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RuntimeAbiVersion_Destroy_Args, abi_version);
/// Frees a runtime's version.
typedef PJRT_Error* PJRT_RuntimeAbiVersion_Destroy(PJRT_RuntimeAbiVersion_Destroy_Args* args);

/// Arguments of PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime.
struct PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args {
  size_t struct_size;
  const PJRT_RuntimeAbiVersion* abi_version;  ///< This runtime.
  const PJRT_RuntimeAbiVersion* other_abi_version;  ///< The other.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args, other_abi_version);
/// Succeeds if executables for the other runtime run on this one.
typedef PJRT_Error* PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime(
    PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args* args);

/// Arguments of PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable.
struct PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args {
  size_t struct_size;
  const PJRT_RuntimeAbiVersion* abi_version;  ///< This runtime.
  const PJRT_ExecutableAbiVersion* executable_abi_version;  ///< The version that the executable requires.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args,
                          executable_abi_version);
/// Succeeds if the executable runs on this runtime.
typedef PJRT_Error* PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable(
    PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args* args);

/// Arguments of PJRT_RuntimeAbiVersion_ToProto.
struct PJRT_RuntimeAbiVersion_ToProto_Args {
  size_t struct_size;
  const PJRT_RuntimeAbiVersion* abi_version;  ///< The version.
  const char* serialized_proto;  ///< Out: the bytes; they live until the deleter is called.
  size_t serialized_proto_size;  ///< Out: their length.
  PJRT_SerializedProto* serialized_proto_holder;  ///< Out: owns the memory of `serialized_proto`.
  /// Out: frees the above; called exactly once.
  void (*serialized_proto_deleter)(PJRT_SerializedProto* holder);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RuntimeAbiVersion_ToProto_Args, serialized_proto_deleter);
/// Serializes a runtime's version (`PjRtRuntimeAbiVersionProto`).
typedef PJRT_Error* PJRT_RuntimeAbiVersion_ToProto(PJRT_RuntimeAbiVersion_ToProto_Args* args);

/// Arguments of PJRT_RuntimeAbiVersion_PlatformId.
struct PJRT_RuntimeAbiVersion_PlatformId_Args {
  size_t struct_size;
  const PJRT_RuntimeAbiVersion* abi_version;  ///< The version.
  uint64_t platform_id;  ///< Out: the id.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RuntimeAbiVersion_PlatformId_Args, platform_id);
/// Returns the platform's id.
typedef PJRT_Error* PJRT_RuntimeAbiVersion_PlatformId(PJRT_RuntimeAbiVersion_PlatformId_Args* args);

/// Arguments of PJRT_ExecutableAbiVersion_Destroy.
struct PJRT_ExecutableAbiVersion_Destroy_Args {
  size_t struct_size;
  PJRT_ExecutableAbiVersion* abi_version;  ///< The version.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_ExecutableAbiVersion_Destroy_Args, abi_version);
/// Frees an executable's version.
typedef PJRT_Error* PJRT_ExecutableAbiVersion_Destroy(PJRT_ExecutableAbiVersion_Destroy_Args* args);

/// Arguments of PJRT_ExecutableAbiVersion_ToProto.
struct PJRT_ExecutableAbiVersion_ToProto_Args {
  size_t struct_size;
  const PJRT_ExecutableAbiVersion* abi_version;  ///< The version.
  const char* serialized_proto;  ///< Out: the bytes; they live until the deleter is called.
  size_t serialized_proto_size;  ///< Out: their length.
  PJRT_SerializedProto* serialized_proto_holder;  ///< Out: owns the memory of `serialized_proto`.
  /// Out: frees the above; called exactly once.
  void (*serialized_proto_deleter)(PJRT_SerializedProto* holder);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_ExecutableAbiVersion_ToProto_Args, serialized_proto_deleter);
/// Serializes an executable's version (`PjRtExecutableAbiVersionProto`).
typedef PJRT_Error* PJRT_ExecutableAbiVersion_ToProto(PJRT_ExecutableAbiVersion_ToProto_Args* args);

/// Arguments of PJRT_ExecutableAbiVersion_PlatformId.
struct PJRT_ExecutableAbiVersion_PlatformId_Args {
  size_t struct_size;
  const PJRT_ExecutableAbiVersion* abi_version;  ///< The version.
  uint64_t platform_id;  ///< Out: the id.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_ExecutableAbiVersion_PlatformId_Args, platform_id);
/// Returns the platform's id.
typedef PJRT_Error* PJRT_ExecutableAbiVersion_PlatformId(
    PJRT_ExecutableAbiVersion_PlatformId_Args* args);

/// Arguments of PJRT_RuntimeAbiVersion_FromProto.
struct PJRT_RuntimeAbiVersion_FromProto_Args {
  size_t struct_size;
  const char* serialized_proto;  ///< The serialized proto; borrowed for the call.
  size_t serialized_proto_size;  ///< Length of `serialized_proto`.
  PJRT_RuntimeAbiVersion* abi_version;  ///< Out: the version, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_RuntimeAbiVersion_FromProto_Args, abi_version);
/// Deserializes the bytes that `PJRT_RuntimeAbiVersion_ToProto` returned.
typedef PJRT_Error* PJRT_RuntimeAbiVersion_FromProto(PJRT_RuntimeAbiVersion_FromProto_Args* args);

/// Arguments of PJRT_ExecutableAbiVersion_FromProto.
struct PJRT_ExecutableAbiVersion_FromProto_Args {
  size_t struct_size;
  const char* serialized_proto;  ///< The serialized proto; borrowed for the call.
  size_t serialized_proto_size;  ///< Length of `serialized_proto`.
  PJRT_ExecutableAbiVersion* abi_version;  ///< Out: the version, owned by the caller.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_ExecutableAbiVersion_FromProto_Args, abi_version);
/// Deserializes the bytes that `PJRT_ExecutableAbiVersion_ToProto` returned.
typedef PJRT_Error* PJRT_ExecutableAbiVersion_FromProto(
    PJRT_ExecutableAbiVersion_FromProto_Args* args);

/// The AbiVersion extension.
struct PJRT_AbiVersion_Extension {
  PJRT_Extension_Base base;
  PJRT_Client_RuntimeAbiVersion* client_runtime_abi_version;
  PJRT_Executable_GetAbiVersion* executable_get_abi_version;
  PJRT_RuntimeAbiVersion_Destroy* runtime_abi_version_destroy;
  PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime* runtime_abi_version_is_compatible_with_runtime;
  PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable*
      runtime_abi_version_is_compatible_with_executable;
  PJRT_RuntimeAbiVersion_ToProto* runtime_abi_version_to_proto;
  PJRT_RuntimeAbiVersion_PlatformId* runtime_abi_version_platform_id;
  PJRT_ExecutableAbiVersion_Destroy* executable_abi_version_destroy;
  PJRT_ExecutableAbiVersion_ToProto* executable_abi_version_to_proto;
  PJRT_ExecutableAbiVersion_PlatformId* executable_abi_version_platform_id;
  PJRT_RuntimeAbiVersion_FromProto* runtime_abi_version_from_proto;
  PJRT_ExecutableAbiVersion_FromProto* executable_abi_version_from_proto;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_AbiVersion_Extension, executable_abi_version_from_proto);

#endif /* PJRT_EXTENSION_ABI_VERSION_H_ */
