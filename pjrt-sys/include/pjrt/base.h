/* The common declarations of all headers: size arithmetic, the extension chain, the version, the opaque handles. */
#ifndef PJRT_BASE_H_
#define PJRT_BASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PJRT_STRUCT_SIZE(struct_type, last_field) \
  (offsetof(struct_type, last_field) + sizeof(((struct_type*)0)->last_field))

/* X_STRUCT_SIZE is where the last field ends, which is less than sizeof(X) when X has tail padding. */
#define PJRT_DEFINE_STRUCT_TRAITS(sname, last_field) \
  typedef struct sname sname;                        \
  enum { sname##_STRUCT_SIZE = PJRT_STRUCT_SIZE(sname, last_field) }

/// The type of an extension.
typedef enum {
  PJRT_Extension_Type_Gpu_Custom_Call = 0,  ///< Registration of custom calls on CUDA and ROCm.
  /// Tracing. Also the type of the extension that hosts pass in Compile and Execute args.
  PJRT_Extension_Type_Profiler,
  PJRT_Extension_Type_Custom_Partitioner,  ///< Sharding rules for custom calls.
  PJRT_Extension_Type_Stream,  ///< Device streams for memory that others manage.
  PJRT_Extension_Type_Layouts,  ///< Memory layouts of buffers, parameters and outputs.
  PJRT_Extension_Type_FFI,  ///< User data and typed handlers for custom calls.
  PJRT_Extension_Type_MemoryDescriptions,  ///< Memory kinds of devices that are only described.
  PJRT_Extension_Type_Triton,  ///< Compilation of Triton kernels. Deprecated.
  PJRT_Extension_Type_RawBuffer,  ///< Untyped views of device memory. Experimental.
  PJRT_Extension_Type_PhaseCompile,  ///< Staged compilation. Experimental.
  PJRT_Extension_Type_Example,  ///< For documentation; no plugin offers it.
  PJRT_Extension_Type_Unknown,  ///< Extensions without a number.
  PJRT_Extension_Type_CrossHostTransfers,  ///< Transfers of buffers between processes.
  PJRT_Extension_Type_ExecutableMetadata,  ///< The compiler's metadata of an executable.
  PJRT_Extension_Type_Callback,  ///< Notifications from the plugin to the host.
  PJRT_Extension_Type_HostAllocator,  ///< Host memory. Deprecated: HostMemoryAllocator replaces it.
  PJRT_Extension_Type_TpuTopology,  ///< Queries of TPU topologies.
  PJRT_Extension_Type_TpuExecutable,  ///< TPU executables; no public struct.
  PJRT_Extension_Type_Megascale,  ///< TPU slices joined over a network. MultiSlice replaces it.
  PJRT_Extension_Type_Shardings,  ///< Shardings of parameters and outputs.
  PJRT_Extension_Type_AbiVersion,  ///< Compatibility of executables with runtimes.
  PJRT_Extension_Type_Collectives,  ///< Collectives; no public struct.
  PJRT_Extension_Type_MultiSlice,  ///< The configuration of several slices as one system.
  PJRT_Extension_Type_HostMemoryAllocator,  ///< Host memory that devices access fast.
  PJRT_Extension_Type_XlaTransform,  ///< HLO rewrites that the host plugs into the compiler.
} PJRT_Extension_Type;

/// The first part of every extension struct: one link of the chain of extensions. A host traverses the
/// chain and uses the types that it supports.
struct PJRT_Extension_Base {
  size_t struct_size;  ///< Size of the whole extension struct in the plugin's version.
  PJRT_Extension_Type type;  ///< The type of the extension.
  struct PJRT_Extension_Base* next;  ///< The next link, or null.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Extension_Base, next);

#define PJRT_API_MAJOR 0
#define PJRT_API_MINOR 117

/// The version of the interface that a plugin implements. Hosts refuse other major versions, and use
/// newer functions only if the minor version includes them.
struct PJRT_Api_Version {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  int major_version;  ///< Increases with incompatible changes.
  int minor_version;  ///< Increases when slots or trailing fields are added.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Api_Version, minor_version);

/// An error. The receiver owns it and frees it with `PJRT_Error_Destroy`. The first word is public;
/// the rest is private to the plugin.
typedef struct PJRT_Error PJRT_Error;
/// The completion of asynchronous work: pending, ready, or ready with an error. The receiver owns
/// it.
typedef struct PJRT_Event PJRT_Event;
/// A connection to a platform: owns its devices and memories.
typedef struct PJRT_Client PJRT_Client;
/// A device of a client. Borrowed, lives as long as the client; its address is its identity.
typedef struct PJRT_Device PJRT_Device;
/// A memory space of a client. Borrowed, lives as long as the client; its address is its identity. The
/// first word is public; the rest is private to the plugin.
typedef struct PJRT_Memory PJRT_Memory;
/// The description of a device, which need not be present. Borrowed from a device or topology.
typedef struct PJRT_DeviceDescription PJRT_DeviceDescription;
/// Devices described without a client, for ahead-of-time compilation.
typedef struct PJRT_TopologyDescription PJRT_TopologyDescription;
/// A compiled program, not bound to devices.
typedef struct PJRT_Executable PJRT_Executable;
/// A compiled program bound to a client's devices, ready to run.
typedef struct PJRT_LoadedExecutable PJRT_LoadedExecutable;
/// An array in a memory, possibly still being computed.
typedef struct PJRT_Buffer PJRT_Buffer;
/// The right to bind one alias buffer to a real one, used up by `PJRT_Client_FulfillAliasBuffer`.
typedef struct PJRT_FulfillAliasBufferCallback PJRT_FulfillAliasBufferCallback;
/// Buffers that are filled piece by piece from the host.
typedef struct PJRT_AsyncHostToDeviceTransferManager PJRT_AsyncHostToDeviceTransferManager;
/// A compiler of the PhaseCompile extension.
typedef struct PJRT_PhaseCompiler PJRT_PhaseCompiler;
/// Owns the memory that is returned by `PJRT_Device_GetAttributes`.
typedef struct PJRT_Device_Attributes PJRT_Device_Attributes;
/// A handle by which a host marks an asynchronous step, for debugging.
typedef struct PJRT_AsyncTrackingEvent PJRT_AsyncTrackingEvent;
/// User data that travels with one execution to custom calls.
typedef struct PJRT_ExecuteContext PJRT_ExecuteContext;
/// Owns the memory that is returned by `PJRT_LoadedExecutable_GetDeviceAssignment`.
typedef struct PJRT_DeviceAssignmentSerialized PJRT_DeviceAssignmentSerialized;
/// Data that a host streams into a running program's receive operation.
typedef struct PJRT_CopyToDeviceStream PJRT_CopyToDeviceStream;
/// The configuration of several slices as one system.
typedef struct PJRT_MultiSlice_Config PJRT_MultiSlice_Config;
/// Owns the memory that is returned by `PJRT_Executable_Serialize`.
typedef struct PJRT_SerializedExecutable PJRT_SerializedExecutable;
/// Owns the memory that is returned by `PJRT_Executable_GetCompileOptions`.
typedef struct PJRT_SerializedCompileOptions PJRT_SerializedCompileOptions;
/// Owns the memory that is returned by `PJRT_TopologyDescription_Serialize`.
typedef struct PJRT_SerializedTopology PJRT_SerializedTopology;

#endif /* PJRT_BASE_H_ */
