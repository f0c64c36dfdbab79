/* Shows that the default layout of 4-bit integers is not the layout of an array that is uploaded without a layout.
 *
 *   cc -I pjrt-sys/include docs/proofs/default_layout.c -o proof -ldl && ./proof plugin.so
 *
 * Exits with status 0 if the layouts differ, 1 if they are equal. */
#include "extensions/layouts.h"
#include "plugin.h"

/* Prints a layout as text, and returns the text. */
static const char* text_of(const PJRT_Layouts_Extension* functions, const char* what, PJRT_Layouts_MemoryLayout* layout) {
  ARGS(args, PJRT_Layouts_MemoryLayout_Serialize_Args, .layout = layout);
  require("PJRT_Layouts_MemoryLayout_Serialize", functions->PJRT_Layouts_MemoryLayout_Serialize(&args));
  char* text = calloc(args.serialized_bytes_size + 1, 1);
  if (text == NULL) exit(NO_PROOF);
  memcpy(text, args.serialized_bytes, args.serialized_bytes_size);
  printf("%s: %s\n", what, text);
  return text;
}

int main(int argc, char** argv) {
  PJRT_Client* client = create_client(argc, argv);
  const PJRT_Layouts_Extension* functions = extension(PJRT_Extension_Type_Layouts);
  if (functions == NULL) return NO_PROOF;

  ARGS(by_default, PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, .client = client, .type = PJRT_Buffer_Type_S4);
  require("PJRT_Layouts_PJRT_Client_GetDefaultLayout", functions->PJRT_Layouts_PJRT_Client_GetDefaultLayout(&by_default));
  ARGS(upload, PJRT_Client_BufferFromHostBuffer_Args, .client = client, .data = "\1", .type = PJRT_Buffer_Type_S4,
       .device = first_device(client));
  CALL(PJRT_Client_BufferFromHostBuffer, &upload);
  await_event(upload.done_with_host_buffer);
  ARGS(of_array, PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, .buffer = upload.buffer);
  require("PJRT_Layouts_PJRT_Buffer_MemoryLayout", functions->PJRT_Layouts_PJRT_Buffer_MemoryLayout(&of_array));

  const char* expected = text_of(functions, "the default layout", by_default.layout);
  const char* found = text_of(functions, "the layout of the array", of_array.layout);
  return strcmp(expected, found) == 0 ? NO_BUG : BUG;
}
