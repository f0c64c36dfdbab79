/* Shows that PJRT_DeviceDescription_MemoryDescriptions returns no memory of a device that has some. The
 * extension's header says that the function returns all memory descriptions attached to the device.
 *
 *   cc -I pjrt-sys/include docs/proofs/memory_descriptions.c -o proof -ldl && ./proof plugin.so
 *
 * Exits with status 0 if the numbers of memories and descriptions differ, 1 if they are equal. */
#include "extensions/memory_descriptions.h"
#include "plugin.h"

int main(int argc, char** argv) {
  PJRT_Device* device = first_device(create_client(argc, argv));
  const PJRT_MemoryDescriptions_Extension* functions = extension(PJRT_Extension_Type_MemoryDescriptions);
  if (functions == NULL) return NO_PROOF;

  ARGS(memories, PJRT_Device_AddressableMemories_Args, .device = device);
  CALL(PJRT_Device_AddressableMemories, &memories);
  ARGS(description, PJRT_Device_GetDescription_Args, .device = device);
  CALL(PJRT_Device_GetDescription, &description);
  ARGS(descriptions, PJRT_DeviceDescription_MemoryDescriptions_Args,
       .device_description = description.device_description);
  require("PJRT_DeviceDescription_MemoryDescriptions",
          functions->PJRT_DeviceDescription_MemoryDescriptions(&descriptions));
  printf("PJRT_Device_AddressableMemories: %zu memories\n", memories.num_memories);
  printf("PJRT_DeviceDescription_MemoryDescriptions: %zu memories\n", descriptions.num_memory_descriptions);
  return memories.num_memories == descriptions.num_memory_descriptions ? NO_BUG : BUG;
}
