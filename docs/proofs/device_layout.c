/* Shows that a plugin reads the memory of an upload in the order of `device_layout`. The header says that this is the layout of the
 * buffer, and that host memory without `byte_strides` is dense and row-major.
 *
 *   cc -I pjrt-sys/include docs/proofs/device_layout.c -o proof -ldl && ./proof plugin.so
 *
 * Exits with status 0 if elements of the array are exchanged when it is read in row-major order, 1 if not. */
#include "plugin.h"

int main(int argc, char** argv) {
  static const float data[] = {0, 1, 2, 3, 4, 5};
  static const int64_t dims[] = {2, 3}, columns_first[] = {0, 1}, rows_first[] = {1, 0};
  float read[6] = {0};
  PJRT_Client* client = create_client(argc, argv);
  PJRT_Buffer_MemoryLayout on_device = minor_to_major(columns_first, 2), on_host = minor_to_major(rows_first, 2);
  ARGS(upload, PJRT_Client_BufferFromHostBuffer_Args, .client = client, .data = data, .type = PJRT_Buffer_Type_F32,
       .dims = dims, .num_dims = 2, .device = first_device(client), .device_layout = &on_device);
  CALL(PJRT_Client_BufferFromHostBuffer, &upload);
  await_event(upload.done_with_host_buffer);
  ARGS(readback, PJRT_Buffer_ToHostBuffer_Args, .src = upload.buffer, .host_layout = &on_host, .dst = read,
       .dst_size = sizeof read);
  CALL(PJRT_Buffer_ToHostBuffer, &readback);
  await_event(readback.event);
  printf("the rows of [[0, 1, 2], [3, 4, 5]]: [[%g, %g, %g], [%g, %g, %g]]\n", read[0], read[1], read[2], read[3], read[4],
         read[5]);
  return memcmp(data, read, sizeof read) == 0 ? NO_BUG : BUG;
}
