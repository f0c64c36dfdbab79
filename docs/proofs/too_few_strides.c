/* Shows that a plugin ends the process when an upload has fewer strides than dimensions.
 *
 *   cc -I pjrt-sys/include docs/proofs/too_few_strides.c -o proof -ldl && ./proof plugin.so
 *
 * Exits with status 0 if a child process ends with a signal in PJRT_Client_BufferFromHostBuffer, 1 if not. */
#include "plugin.h"

static int upload(int argc, char** argv) {
  static const float data[24];
  static const int64_t dims[] = {2, 3, 4}, strides[] = {4};
  PJRT_Client* client = create_client(argc, argv);
  ARGS(args, PJRT_Client_BufferFromHostBuffer_Args, .client = client, .data = data, .type = PJRT_Buffer_Type_F32,
       .dims = dims, .num_dims = 3, .byte_strides = strides, .num_byte_strides = 1, .device = first_device(client));
  PJRT_Error* error = api->PJRT_Client_BufferFromHostBuffer(&args);
  if (error != NULL) print_error("PJRT_Client_BufferFromHostBuffer", error);
  return NO_BUG;
}

int main(int argc, char** argv) {
  return in_child(upload, argc, argv, "PJRT_Client_BufferFromHostBuffer");
}
