/* Shows that a plugin can neither compile for its client's topology nor read the bytes that
 * PJRT_TopologyDescription_Serialize returned, because no compiler is registered for its platform.
 *
 *   cc -I pjrt-sys/include docs/proofs/topology_without_a_compiler.c -o proof -ldl && ./proof plugin.so
 *
 * Exits with status 0 if both functions return NOT_FOUND, 1 if not. */
#include "plugin.h"

int main(int argc, char** argv) {
  PJRT_Client* client = create_client(argc, argv);
  ARGS(of_client, PJRT_Client_TopologyDescription_Args, .client = client);
  CALL(PJRT_Client_TopologyDescription, &of_client);
  ARGS(bytes, PJRT_TopologyDescription_Serialize_Args, .topology = of_client.topology);
  CALL(PJRT_TopologyDescription_Serialize, &bytes);
  ARGS(read, PJRT_TopologyDescription_Deserialize_Args, .serialized_topology = bytes.serialized_bytes,
       .serialized_topology_size = bytes.serialized_bytes_size);
  PJRT_Error* unread = api->PJRT_TopologyDescription_Deserialize(&read);

  PJRT_Program program = add_program();
  ARGS(args, PJRT_Compile_Args, .topology = of_client.topology, .program = &program, .compile_options = OPTIONS,
       .compile_options_size = sizeof OPTIONS - 1);
  PJRT_Error* uncompiled = api->PJRT_Compile(&args);
  if (unread == NULL || uncompiled == NULL) return NO_BUG;
  int is_bug = print_error("PJRT_TopologyDescription_Deserialize", unread) == PJRT_Error_Code_NOT_FOUND;
  is_bug &= print_error("PJRT_Compile", uncompiled) == PJRT_Error_Code_NOT_FOUND;
  return is_bug ? BUG : NO_BUG;
}
