/* Shows that a plugin throws a C++ exception through the C API, which ends a process in C, when the size of an array in bytes does
 * not fit into 64 bits.
 *
 *   cc -I pjrt-sys/include docs/proofs/impossible_size.c -o proof -ldl && ./proof plugin.so
 *
 * Exits with status 0 if a child process ends with a signal in PJRT_Client_CreateUninitializedBuffer, 1 if not. */
#include "plugin.h"

static int create(int argc, char** argv) {
  static const int64_t dims[] = {(int64_t)1 << 32, (int64_t)1 << 32}, order[] = {1, 0};
  PJRT_Client* client = create_client(argc, argv);
  ARGS(of_device, PJRT_Device_DefaultMemory_Args, .device = first_device(client));
  CALL(PJRT_Device_DefaultMemory, &of_device);
  PJRT_Buffer_MemoryLayout layout = minor_to_major(order, 2);
  ARGS(args, PJRT_Client_CreateUninitializedBuffer_Args, .client = client, .shape_dims = dims, .shape_num_dims = 2,
       .shape_element_type = PJRT_Buffer_Type_F32, .shape_layout = &layout, .memory = of_device.memory);
  PJRT_Error* error = api->PJRT_Client_CreateUninitializedBuffer(&args);
  if (error != NULL) print_error("PJRT_Client_CreateUninitializedBuffer", error);
  return NO_BUG;
}

int main(int argc, char** argv) {
  return in_child(create, argc, argv, "PJRT_Client_CreateUninitializedBuffer");
}
