/* Device events: the events of the RawBuffer extension. */
#ifndef PJRT_EXTENSION_DEVICE_EVENT_H_
#define PJRT_EXTENSION_DEVICE_EVENT_H_

#include "../pjrt_c_api.h"

typedef void (*PJRT_DeviceEvent_AndThen)(void* user_arg);

typedef enum {
  PJRT_DeviceEvent_State_Unavailable = 0,
  PJRT_DeviceEvent_State_Ready = 1,
  PJRT_DeviceEvent_State_Error = 2,
} PJRT_DeviceEvent_State;

struct PJRT_DeviceEvent_FunctionTable {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  void (*inc_ref)(void* device_event);
  void (*dec_ref)(void* device_event);
  void (*and_then)(void* device_event, PJRT_DeviceEvent_AndThen callback, void* user_arg);
  int (*get_error_if_present)(void* device_event, PJRT_Error_Code* code, const char** message,
      size_t* message_size);
  const struct PJRT_DeviceEvent_FunctionTable* parent;
  PJRT_DeviceEvent_State (*get_state)(void* device_event);
  intptr_t (*get_definition_stream)(void* device_event, uint64_t* sequence_number);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_DeviceEvent_FunctionTable, get_definition_stream);

typedef struct PJRT_DeviceEvent {
  const struct PJRT_DeviceEvent_FunctionTable* vtable;
  void* device_event;
} PJRT_DeviceEvent;

typedef struct PJRT_DeviceEventVector {
  PJRT_DeviceEvent* data;
  size_t size;
  size_t capacity;
  void (*destroy)(PJRT_DeviceEvent* data);
} PJRT_DeviceEventVector;

typedef struct PJRT_DeviceEventPromise PJRT_DeviceEventPromise;

struct PJRT_DeviceEventPromise_FunctionTable {
  size_t struct_size;
  size_t instance_size;
  PJRT_Extension_Base* extension_start;
  void (*inc_ref)(PJRT_DeviceEventPromise* promise);
  void (*dec_ref)(PJRT_DeviceEventPromise* promise);
  PJRT_DeviceEvent (*event)(PJRT_DeviceEventPromise* promise);
  void (*set)(PJRT_DeviceEventPromise* promise, PJRT_DeviceEvent event);
  void (*set_error)(PJRT_DeviceEventPromise* promise, PJRT_Error* error);
  void (*set_ready)(PJRT_DeviceEventPromise* promise);
};

struct PJRT_DeviceEventPromise {
  const struct PJRT_DeviceEventPromise_FunctionTable* vtable;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_DeviceEventPromise_FunctionTable, set_ready);
PJRT_DEFINE_STRUCT_TRAITS(PJRT_DeviceEventPromise, vtable);

#endif /* PJRT_EXTENSION_DEVICE_EVENT_H_ */
