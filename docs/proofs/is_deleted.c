/* Shows that PJRT_LoadedExecutable_IsDeleted returns false after PJRT_LoadedExecutable_Delete. The header says:
 * "True if and only if PJRT_LoadedExecutable_Delete has previously been called."
 *
 *   cc -I pjrt-sys/include docs/proofs/is_deleted.c -o proof -ldl && ./proof plugin.so
 *
 * Exits with status 0 if the function returns false, 1 if it returns true. */
#include "plugin.h"

int main(int argc, char** argv) {
  PJRT_LoadedExecutable* executable = compile(create_client(argc, argv));
  ARGS(delete, PJRT_LoadedExecutable_Delete_Args, .executable = executable);
  CALL(PJRT_LoadedExecutable_Delete, &delete);
  ARGS(deleted, PJRT_LoadedExecutable_IsDeleted_Args, .executable = executable);
  CALL(PJRT_LoadedExecutable_IsDeleted, &deleted);
  printf("PJRT_LoadedExecutable_IsDeleted after PJRT_LoadedExecutable_Delete: %s\n",
         deleted.is_deleted ? "true" : "false");
  return deleted.is_deleted ? NO_BUG : BUG;
}
