/* Shows that an execution with an argument in error does not fail with the argument's code. The header says of
 * a buffer of PJRT_Client_CreateErrorBuffer: "If this buffer is passed to an Execute call, the execution will
 * fail with the given error code and message."
 *
 *   cc -I pjrt-sys/include docs/proofs/error_of_an_argument.c -o proof -ldl && ./proof plugin.so
 *
 * Exits with status 0 if the execution fails with another code, 1 if with the argument's. */
#include "plugin.h"

int main(int argc, char** argv) {
  PJRT_Client* client = create_client(argc, argv);
  PJRT_LoadedExecutable* executable = compile(client);
  ARGS(memory, PJRT_Device_DefaultMemory_Args, .device = first_device(client));
  CALL(PJRT_Device_DefaultMemory, &memory);

  int64_t dims[] = {4};
  ARGS(make, PJRT_Client_CreateErrorBuffer_Args, .client = client, .error_code = PJRT_Error_Code_UNAVAILABLE,
       .error_message = "not today", .error_message_size = 9, .shape_dims = dims, .shape_num_dims = 1,
       .shape_element_type = PJRT_Buffer_Type_F32, .memory = memory.memory);
  CALL(PJRT_Client_CreateErrorBuffer, &make);

  ARGS(options, PJRT_ExecuteOptions, .launch_id = 0);
  PJRT_Buffer* const* arguments[] = {&make.buffer};
  PJRT_Buffer* output = NULL;
  PJRT_Buffer** const outputs[] = {&output};
  ARGS(execute, PJRT_LoadedExecutable_Execute_Args, .executable = executable, .options = &options,
       .argument_lists = arguments, .num_devices = 1, .num_args = 1, .output_lists = outputs);
  PJRT_Error* error = api->PJRT_LoadedExecutable_Execute(&execute);
  if (error == NULL) {
    ARGS(ready, PJRT_Buffer_ReadyEvent_Args, .buffer = output);
    CALL(PJRT_Buffer_ReadyEvent, &ready);
    ARGS(await, PJRT_Event_Await_Args, .event = ready.event);
    error = api->PJRT_Event_Await(&await);
  }
  if (error == NULL) {
    printf("the execution succeeded\n");
    return BUG;
  }
  printf("the error of the argument: code %d: not today\n", PJRT_Error_Code_UNAVAILABLE);
  return print_error("the error of the output", error) == PJRT_Error_Code_UNAVAILABLE ? NO_BUG : BUG;
}
