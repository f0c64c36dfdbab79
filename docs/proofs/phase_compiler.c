/* Shows that a plugin has the extension PhaseCompile without the functions that create and destroy a phase
 * compiler, which all other functions of the extension need as an argument.
 *
 *   cc -I pjrt-sys/include docs/proofs/phase_compiler.c -o proof -ldl && ./proof plugin.so
 *
 * Exits with status 0 if the pointers are null, 1 if they are not. */
#include "extensions/phase_compile.h"
#include "plugin.h"

int main(int argc, char** argv) {
  create_client(argc, argv);
  const PJRT_PhaseCompile_Extension* functions = extension(PJRT_Extension_Type_PhaseCompile);
  if (functions == NULL) return NO_PROOF;
  printf("size of the extension: %zu bytes\n", functions->base.struct_size);
  printf("phase_compile_get_compiler: %p\n", (void*)functions->phase_compile_get_compiler);
  printf("phase_compile_destroy_compiler: %p\n", (void*)functions->phase_compile_destroy_compiler);
  printf("phase_compile_get_phase_names: %p\n", (void*)functions->phase_compile_get_phase_names);
  return functions->phase_compile_get_compiler == NULL ? BUG : NO_BUG;
}
