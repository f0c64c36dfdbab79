/* The PJRT C API, version 0.117.
 *
 * The declarations are those of the interface. The comments are written for authors of plugins.
 *
 * Conventions that hold everywhere unless a comment says otherwise:
 * - A function takes one Args struct. The caller sets the inputs, and the plugin sets the outputs.
 * - `struct_size` is the size of the struct in the caller's version. Fields past it do not exist.
 * - A null `PJRT_Error*` means success. The receiver of an error owns it. Outputs are unspecified after an error.
 * - Strings and arrays are pointer and length, never NUL-terminated. Inputs are borrowed for the call; outputs
 *   belong to the object they describe and live as long as it does.
 * - Every function may be called from any thread, and concurrently.
 */
#ifndef PJRT_C_API_H_
#define PJRT_C_API_H_

#include "pjrt/base.h"
#include "pjrt/error.h"
#include "pjrt/plugin.h"
#include "pjrt/event.h"
#include "pjrt/types.h"
#include "pjrt/client.h"
#include "pjrt/device.h"
#include "pjrt/memory.h"
#include "pjrt/transfer.h"
#include "pjrt/executable.h"
#include "pjrt/execute.h"
#include "pjrt/buffer.h"
#include "pjrt/topology.h"

/// The function table: what `GetPjrtApi` returns. It must stay valid and unchanged for the life of the
/// process. Slots are only ever appended, so the table of an older version is a prefix of this one.
typedef struct PJRT_Api {
  /// Size of the table in the plugin's version; slots past it do not exist.
  size_t struct_size;
  /// Head of the chain of the plugin's extensions, or null.
  PJRT_Extension_Base* extension_start;
  /// The version of the interface that the table implements.
  PJRT_Api_Version pjrt_api_version;
  PJRT_Error_Destroy* PJRT_Error_Destroy;
  PJRT_Error_Message* PJRT_Error_Message;
  PJRT_Error_GetCode* PJRT_Error_GetCode;
  PJRT_Plugin_Initialize* PJRT_Plugin_Initialize;
  PJRT_Plugin_Attributes* PJRT_Plugin_Attributes;
  PJRT_Event_Destroy* PJRT_Event_Destroy;
  PJRT_Event_IsReady* PJRT_Event_IsReady;
  PJRT_Event_Error* PJRT_Event_Error;
  PJRT_Event_Await* PJRT_Event_Await;
  PJRT_Event_OnReady* PJRT_Event_OnReady;
  PJRT_Client_Create* PJRT_Client_Create;
  PJRT_Client_Destroy* PJRT_Client_Destroy;
  PJRT_Client_PlatformName* PJRT_Client_PlatformName;
  PJRT_Client_ProcessIndex* PJRT_Client_ProcessIndex;
  PJRT_Client_PlatformVersion* PJRT_Client_PlatformVersion;
  PJRT_Client_Devices* PJRT_Client_Devices;
  PJRT_Client_AddressableDevices* PJRT_Client_AddressableDevices;
  PJRT_Client_LookupDevice* PJRT_Client_LookupDevice;
  PJRT_Client_LookupAddressableDevice* PJRT_Client_LookupAddressableDevice;
  PJRT_Client_AddressableMemories* PJRT_Client_AddressableMemories;
  PJRT_Client_Compile* PJRT_Client_Compile;
  PJRT_Client_DefaultDeviceAssignment* PJRT_Client_DefaultDeviceAssignment;
  PJRT_Client_BufferFromHostBuffer* PJRT_Client_BufferFromHostBuffer;
  PJRT_DeviceDescription_Id* PJRT_DeviceDescription_Id;
  PJRT_DeviceDescription_ProcessIndex* PJRT_DeviceDescription_ProcessIndex;
  PJRT_DeviceDescription_Attributes* PJRT_DeviceDescription_Attributes;
  PJRT_DeviceDescription_Kind* PJRT_DeviceDescription_Kind;
  PJRT_DeviceDescription_DebugString* PJRT_DeviceDescription_DebugString;
  PJRT_DeviceDescription_ToString* PJRT_DeviceDescription_ToString;
  PJRT_Device_GetDescription* PJRT_Device_GetDescription;
  PJRT_Device_IsAddressable* PJRT_Device_IsAddressable;
  PJRT_Device_LocalHardwareId* PJRT_Device_LocalHardwareId;
  PJRT_Device_AddressableMemories* PJRT_Device_AddressableMemories;
  PJRT_Device_DefaultMemory* PJRT_Device_DefaultMemory;
  PJRT_Device_MemoryStats* PJRT_Device_MemoryStats;
  PJRT_Memory_Id* PJRT_Memory_Id;
  PJRT_Memory_Kind* PJRT_Memory_Kind;
  PJRT_Memory_DebugString* PJRT_Memory_DebugString;
  PJRT_Memory_ToString* PJRT_Memory_ToString;
  PJRT_Memory_AddressableByDevices* PJRT_Memory_AddressableByDevices;
  PJRT_Executable_Destroy* PJRT_Executable_Destroy;
  PJRT_Executable_Name* PJRT_Executable_Name;
  PJRT_Executable_NumReplicas* PJRT_Executable_NumReplicas;
  PJRT_Executable_NumPartitions* PJRT_Executable_NumPartitions;
  PJRT_Executable_NumOutputs* PJRT_Executable_NumOutputs;
  PJRT_Executable_SizeOfGeneratedCodeInBytes* PJRT_Executable_SizeOfGeneratedCodeInBytes;
  PJRT_Executable_GetCostAnalysis* PJRT_Executable_GetCostAnalysis;
  PJRT_Executable_OutputMemoryKinds* PJRT_Executable_OutputMemoryKinds;
  PJRT_Executable_OptimizedProgram* PJRT_Executable_OptimizedProgram;
  PJRT_Executable_Serialize* PJRT_Executable_Serialize;
  PJRT_LoadedExecutable_Destroy* PJRT_LoadedExecutable_Destroy;
  PJRT_LoadedExecutable_GetExecutable* PJRT_LoadedExecutable_GetExecutable;
  PJRT_LoadedExecutable_AddressableDevices* PJRT_LoadedExecutable_AddressableDevices;
  PJRT_LoadedExecutable_Delete* PJRT_LoadedExecutable_Delete;
  PJRT_LoadedExecutable_IsDeleted* PJRT_LoadedExecutable_IsDeleted;
  PJRT_LoadedExecutable_Execute* PJRT_LoadedExecutable_Execute;
  PJRT_Executable_DeserializeAndLoad* PJRT_Executable_DeserializeAndLoad;
  PJRT_LoadedExecutable_Fingerprint* PJRT_LoadedExecutable_Fingerprint;
  PJRT_Buffer_Destroy* PJRT_Buffer_Destroy;
  PJRT_Buffer_ElementType* PJRT_Buffer_ElementType;
  PJRT_Buffer_Dimensions* PJRT_Buffer_Dimensions;
  PJRT_Buffer_UnpaddedDimensions* PJRT_Buffer_UnpaddedDimensions;
  PJRT_Buffer_DynamicDimensionIndices* PJRT_Buffer_DynamicDimensionIndices;
  PJRT_Buffer_GetMemoryLayout* PJRT_Buffer_GetMemoryLayout;
  PJRT_Buffer_OnDeviceSizeInBytes* PJRT_Buffer_OnDeviceSizeInBytes;
  PJRT_Buffer_Device* PJRT_Buffer_Device;
  PJRT_Buffer_Memory* PJRT_Buffer_Memory;
  PJRT_Buffer_Delete* PJRT_Buffer_Delete;
  PJRT_Buffer_IsDeleted* PJRT_Buffer_IsDeleted;
  PJRT_Buffer_CopyToDevice* PJRT_Buffer_CopyToDevice;
  PJRT_Buffer_ToHostBuffer* PJRT_Buffer_ToHostBuffer;
  PJRT_Buffer_IsOnCpu* PJRT_Buffer_IsOnCpu;
  PJRT_Buffer_ReadyEvent* PJRT_Buffer_ReadyEvent;
  PJRT_Buffer_UnsafePointer* PJRT_Buffer_UnsafePointer;
  PJRT_Buffer_IncreaseExternalReferenceCount* PJRT_Buffer_IncreaseExternalReferenceCount;
  PJRT_Buffer_DecreaseExternalReferenceCount* PJRT_Buffer_DecreaseExternalReferenceCount;
  PJRT_Buffer_OpaqueDeviceMemoryDataPointer* PJRT_Buffer_OpaqueDeviceMemoryDataPointer;
  PJRT_CopyToDeviceStream_Destroy* PJRT_CopyToDeviceStream_Destroy;
  PJRT_CopyToDeviceStream_AddChunk* PJRT_CopyToDeviceStream_AddChunk;
  PJRT_CopyToDeviceStream_TotalBytes* PJRT_CopyToDeviceStream_TotalBytes;
  PJRT_CopyToDeviceStream_GranuleSize* PJRT_CopyToDeviceStream_GranuleSize;
  PJRT_CopyToDeviceStream_CurrentBytes* PJRT_CopyToDeviceStream_CurrentBytes;
  PJRT_TopologyDescription_Create* PJRT_TopologyDescription_Create;
  PJRT_TopologyDescription_Destroy* PJRT_TopologyDescription_Destroy;
  PJRT_TopologyDescription_PlatformName* PJRT_TopologyDescription_PlatformName;
  PJRT_TopologyDescription_PlatformVersion* PJRT_TopologyDescription_PlatformVersion;
  PJRT_TopologyDescription_GetDeviceDescriptions* PJRT_TopologyDescription_GetDeviceDescriptions;
  PJRT_TopologyDescription_Serialize* PJRT_TopologyDescription_Serialize;
  PJRT_TopologyDescription_Attributes* PJRT_TopologyDescription_Attributes;
  PJRT_Compile* PJRT_Compile;
  PJRT_Executable_OutputElementTypes* PJRT_Executable_OutputElementTypes;
  PJRT_Executable_OutputDimensions* PJRT_Executable_OutputDimensions;
  PJRT_Buffer_CopyToMemory* PJRT_Buffer_CopyToMemory;
  PJRT_Client_CreateViewOfDeviceBuffer* PJRT_Client_CreateViewOfDeviceBuffer;
  PJRT_Executable_Fingerprint* PJRT_Executable_Fingerprint;
  PJRT_Client_TopologyDescription* PJRT_Client_TopologyDescription;
  PJRT_Executable_GetCompiledMemoryStats* PJRT_Executable_GetCompiledMemoryStats;
  PJRT_Memory_Kind_Id* PJRT_Memory_Kind_Id;
  PJRT_ExecuteContext_Create* PJRT_ExecuteContext_Create;
  PJRT_ExecuteContext_Destroy* PJRT_ExecuteContext_Destroy;
  PJRT_Buffer_CopyRawToHost* PJRT_Buffer_CopyRawToHost;
  PJRT_AsyncHostToDeviceTransferManager_Destroy* PJRT_AsyncHostToDeviceTransferManager_Destroy;
  PJRT_AsyncHostToDeviceTransferManager_TransferData* PJRT_AsyncHostToDeviceTransferManager_TransferData;
  PJRT_Client_CreateBuffersForAsyncHostToDevice* PJRT_Client_CreateBuffersForAsyncHostToDevice;
  PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer* PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer;
  PJRT_AsyncHostToDeviceTransferManager_Device* PJRT_AsyncHostToDeviceTransferManager_Device;
  PJRT_AsyncHostToDeviceTransferManager_BufferCount* PJRT_AsyncHostToDeviceTransferManager_BufferCount;
  PJRT_AsyncHostToDeviceTransferManager_BufferSize* PJRT_AsyncHostToDeviceTransferManager_BufferSize;
  PJRT_AsyncHostToDeviceTransferManager_SetBufferError* PJRT_AsyncHostToDeviceTransferManager_SetBufferError;
  PJRT_AsyncHostToDeviceTransferManager_AddMetadata* PJRT_AsyncHostToDeviceTransferManager_AddMetadata;
  PJRT_Client_DmaMap* PJRT_Client_DmaMap;
  PJRT_Client_DmaUnmap* PJRT_Client_DmaUnmap;
  PJRT_Client_CreateUninitializedBuffer* PJRT_Client_CreateUninitializedBuffer;
  PJRT_Client_UpdateGlobalProcessInfo* PJRT_Client_UpdateGlobalProcessInfo;
  PJRT_TopologyDescription_Deserialize* PJRT_TopologyDescription_Deserialize;
  PJRT_Client_CreateAliasBuffer* PJRT_Client_CreateAliasBuffer;
  PJRT_Client_FulfillAliasBuffer* PJRT_Client_FulfillAliasBuffer;
  PJRT_LoadedExecutable_GetDeviceAssignment* PJRT_LoadedExecutable_GetDeviceAssignment;
  PJRT_Client_CreateErrorBuffer* PJRT_Client_CreateErrorBuffer;
  PJRT_AsyncHostToDeviceTransferManager_TransferLiteral* PJRT_AsyncHostToDeviceTransferManager_TransferLiteral;
  PJRT_Buffer_CopyRawToHostFuture* PJRT_Buffer_CopyRawToHostFuture;
  PJRT_Device_PoisonExecution* PJRT_Device_PoisonExecution;
  PJRT_Device_CreateAsyncTrackingEvent* PJRT_Device_CreateAsyncTrackingEvent;
  PJRT_AsyncTrackingEvent_Destroy* PJRT_AsyncTrackingEvent_Destroy;
  PJRT_Executable_GetCompileOptions* PJRT_Executable_GetCompileOptions;
  PJRT_Buffer_DonateWithControlDependency* PJRT_Buffer_DonateWithControlDependency;
  PJRT_Event_Create* PJRT_Event_Create;
  PJRT_Event_Set* PJRT_Event_Set;
  PJRT_Device_GetAttributes* PJRT_Device_GetAttributes;
  PJRT_Client_Load* PJRT_Client_Load;
  PJRT_LoadedExecutable_AddressableDeviceLogicalIds* PJRT_LoadedExecutable_AddressableDeviceLogicalIds;
  PJRT_Buffer_Bitcast* PJRT_Buffer_Bitcast;
  PJRT_Error_ForEachPayload* PJRT_Error_ForEachPayload;
  PJRT_TopologyDescription_Fingerprint* PJRT_TopologyDescription_Fingerprint;
  PJRT_Executable_ParameterMemoryKinds* PJRT_Executable_ParameterMemoryKinds;
  PJRT_Device_ClearMemoryStats* PJRT_Device_ClearMemoryStats;
  PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace* PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace;
  PJRT_TopologyDescription_GetMemorySpaceKindIds* PJRT_TopologyDescription_GetMemorySpaceKindIds;
} PJRT_Api;
enum {
  PJRT_Api_STRUCT_SIZE = PJRT_STRUCT_SIZE(PJRT_Api, PJRT_TopologyDescription_GetMemorySpaceKindIds)
};

#endif /* PJRT_C_API_H_ */
