/* Shows that a PJRT_Executable of PJRT_LoadedExecutable_GetExecutable refers to memory that
 * PJRT_LoadedExecutable_Destroy frees. The header says that the caller frees the executable with
 * PJRT_Executable_Destroy, and names no other lifetime.
 *
 *   cc -g -I pjrt-sys/include docs/proofs/executable_after_its_loaded_executable.c -o proof -ldl
 *   ./proof plugin.so
 *   valgrind --undef-value-errors=no ./proof plugin.so
 *
 * The program uses the executable in two child processes: before the loaded executable is destroyed, and
 * after. In both, free() overwrites memory, so that a use of freed memory does not go unnoticed. The program
 * exits with status 0 if only the second child dies of a signal, and 1 if none does. Under valgrind, the use
 * of freed memory is an "Invalid read". */
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin.h"

static void destroy_loaded_executable(PJRT_LoadedExecutable* loaded) {
  ARGS(args, PJRT_LoadedExecutable_Destroy_Args, .executable = loaded);
  CALL(PJRT_LoadedExecutable_Destroy, &args);
  printf("PJRT_LoadedExecutable_Destroy returned\n");
}

static void number_of_outputs(PJRT_Executable* executable) {
  ARGS(args, PJRT_Executable_NumOutputs_Args, .executable = executable);
  CALL(PJRT_Executable_NumOutputs, &args);
  printf("PJRT_Executable_NumOutputs returned %zu\n", args.num_outputs);
}

/* Asks an executable for its number of outputs in a child process. Returns the signal of which the child
 * dies, or 0. */
static int signal_of_child(int argc, char** argv, int destroys_first) {
  pid_t child = fork();
  if (child == 0) {
    PJRT_LoadedExecutable* loaded = compile(create_client(argc, argv));
    ARGS(get, PJRT_LoadedExecutable_GetExecutable_Args, .loaded_executable = loaded);
    CALL(PJRT_LoadedExecutable_GetExecutable, &get);
    mallopt(M_PERTURB, 0x5a);
    if (destroys_first) destroy_loaded_executable(loaded);
    number_of_outputs(get.executable);
    _exit(NO_BUG);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) printf("the process died of signal %d\n", WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) != NO_BUG) exit(NO_PROOF);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int main(int argc, char** argv) {
  if (signal_of_child(argc, argv, 0) != 0) return NO_PROOF;
  return signal_of_child(argc, argv, 1) != 0 ? BUG : NO_BUG;
}
