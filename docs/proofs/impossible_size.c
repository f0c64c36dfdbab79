/* Shows that a plugin throws a C++ exception through the C API, which ends a process in C, when an array does not fit into memory.
 *
 *   cc -I pjrt-sys/include docs/proofs/impossible_size.c -o proof -ldl && ./proof plugin.so
 *
 * Exits with status 0 if a child process ends with a signal in PJRT_Client_CreateUninitializedBuffer, 1 if not. */
#include <sys/wait.h>
#include <unistd.h>

#include "plugin.h"

/* Asks for an array whose size in bytes does not fit into 64 bits. */
static PJRT_Error* create(PJRT_Client* client) {
  const int64_t dims[] = {(int64_t)1 << 32, (int64_t)1 << 32};
  ARGS(of_device, PJRT_Device_DefaultMemory_Args, .device = first_device(client));
  CALL(PJRT_Device_DefaultMemory, &of_device);
  int64_t order[] = {1, 0};
  PJRT_Buffer_MemoryLayout layout = {.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE,
                                     .type = PJRT_Buffer_MemoryLayout_Type_Tiled,
                                     .tiled = {.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE,
                                               .minor_to_major = order,
                                               .minor_to_major_size = 2}};
  ARGS(args, PJRT_Client_CreateUninitializedBuffer_Args, .client = client, .shape_dims = dims, .shape_num_dims = 2,
       .shape_element_type = PJRT_Buffer_Type_F32, .shape_layout = &layout, .memory = of_device.memory);
  return api->PJRT_Client_CreateUninitializedBuffer(&args);
}

int main(int argc, char** argv) {
  pid_t child = fork();
  if (child < 0) return NO_PROOF;
  if (child == 0) {
    PJRT_Error* error = create(create_client(argc, argv));
    if (error != NULL) print_error("PJRT_Client_CreateUninitializedBuffer", error);
    return NO_BUG;
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  printf("PJRT_Client_CreateUninitializedBuffer: the process ended with the signal %d\n", WTERMSIG(status));
  return BUG;
}
