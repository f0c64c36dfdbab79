/* The calls that the proofs share: load a plugin, create a client, compile a program, and read errors.
 *
 * The proofs contain nothing of the conformance kit. They need the headers of pjrt-sys, or XLA's own. */
#ifndef PLUGIN_H_
#define PLUGIN_H_

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pjrt_c_api.h"

/* The exit status of a proof: the bug occurs, the bug does not occur, or the proof could not be made. */
enum { BUG = 0, NO_BUG = 1, NO_PROOF = 2 };

/* Declares an argument struct and sets its size. */
#define ARGS(name, type, ...) type name = {.struct_size = type##_STRUCT_SIZE, __VA_ARGS__}

static const PJRT_Api* api;

/* Prints an error, with its code, and frees it. Returns the code. */
static PJRT_Error_Code print_error(const char* what, PJRT_Error* error) {
  ARGS(code, PJRT_Error_GetCode_Args, .error = error);
  ARGS(message, PJRT_Error_Message_Args, .error = error);
  ARGS(destroy, PJRT_Error_Destroy_Args, .error = error);
  api->PJRT_Error_GetCode(&code);
  api->PJRT_Error_Message(&message);
  printf("%s: code %d: %.*s\n", what, code.code, (int)message.message_size, message.message);
  api->PJRT_Error_Destroy(&destroy);
  return code.code;
}

/* Ends the process if a call failed that must succeed for the proof. */
static void require(const char* what, PJRT_Error* error) {
  if (error != NULL) {
    print_error(what, error);
    exit(NO_PROOF);
  }
}

/* Calls a function that must succeed. */
#define CALL(function, args) require(#function, api->function(args))

/* Loads the plugin that the command line names, initializes it, and creates a client. */
static PJRT_Client* create_client(int argc, char** argv) {
  setvbuf(stdout, NULL, _IONBF, 0);
  void* library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    printf("usage: %s PLUGIN; %s\n", argv[0], argc == 2 ? dlerror() : "PLUGIN is the path of a shared library");
    exit(NO_PROOF);
  }
  const PJRT_Api* (*get_api)(void) = (const PJRT_Api* (*)(void))dlsym(library, "GetPjrtApi");
  api = get_api();
  ARGS(initialize, PJRT_Plugin_Initialize_Args, .extension_start = NULL);
  CALL(PJRT_Plugin_Initialize, &initialize);
  ARGS(create, PJRT_Client_Create_Args, .num_options = 0);
  CALL(PJRT_Client_Create, &create);
  printf("version %d.%d of the C API\n", api->pjrt_api_version.major_version, api->pjrt_api_version.minor_version);
  return create.client;
}

/* Returns the client's first device. */
static inline PJRT_Device* first_device(PJRT_Client* client) {
  ARGS(devices, PJRT_Client_AddressableDevices_Args, .client = client);
  CALL(PJRT_Client_AddressableDevices, &devices);
  return devices.addressable_devices[0];
}

/* Runs a proof in a child process. Returns its status, or BUG if a signal ended it, which is printed with `what`. */
static inline int in_child(int (*proof)(int, char**), int argc, char** argv, const char* what) {
  pid_t child = fork();
  if (child == 0) exit(proof(argc, argv));
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return NO_PROOF;
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  printf("%s: the process ended with the signal %d\n", what, WTERMSIG(status));
  return BUG;
}

/* Returns a layout that lists the dimensions from the one whose elements are next to each other. */
static inline PJRT_Buffer_MemoryLayout minor_to_major(const int64_t* dimensions, size_t count) {
  PJRT_Buffer_MemoryLayout layout = {.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE,
                                     .type = PJRT_Buffer_MemoryLayout_Type_Tiled};
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  layout.tiled.minor_to_major = dimensions;
  layout.tiled.minor_to_major_size = count;
  return layout;
}

/* Waits for an event, and destroys it. */
static inline void await_event(PJRT_Event* event) {
  ARGS(await, PJRT_Event_Await_Args, .event = event);
  CALL(PJRT_Event_Await, &await);
  ARGS(destroy, PJRT_Event_Destroy_Args, .event = event);
  CALL(PJRT_Event_Destroy, &destroy);
}

/* A CompileOptionsProto of one replica and one partition, on the device that the plugin chooses. */
static const char OPTIONS[] = "\x1a\x0f\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x01\x28\x01";

/* Returns a program of one parameter that adds the parameter to itself. */
static inline PJRT_Program add_program(void) {
  static char code[] =
      "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  %sum = stablehlo.add %x, %x : tensor<4xf32>\n"
      "  return %sum : tensor<4xf32>\n"
      "}\n";
  ARGS(program, PJRT_Program, .code = code, .code_size = strlen(code), .format = "mlir", .format_size = 4);
  return program;
}

/* Compiles the program. */
static inline PJRT_LoadedExecutable* compile(PJRT_Client* client) {
  PJRT_Program program = add_program();
  ARGS(args, PJRT_Client_Compile_Args, .client = client, .program = &program, .compile_options = OPTIONS,
       .compile_options_size = sizeof OPTIONS - 1);
  CALL(PJRT_Client_Compile, &args);
  return args.executable;
}

/* Returns the plugin's extension of a type, or null. */
static inline const void* extension(PJRT_Extension_Type type) {
  for (const PJRT_Extension_Base* found = api->extension_start; found != NULL; found = found->next) {
    if (found->type == type) return found;
  }
  return NULL;
}

#endif /* PLUGIN_H_ */
