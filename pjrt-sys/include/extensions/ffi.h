/* FFI: user data and typed handlers for custom calls. */
#ifndef PJRT_EXTENSION_FFI_H_
#define PJRT_EXTENSION_FFI_H_

#include "../pjrt_c_api.h"

#define PJRT_API_FFI_EXTENSION_VERSION 3

/// The operations on values of a user type.
typedef struct PJRT_FFI_Type_Info {
  void (*deleter)(void* object);  ///< Frees a value; null if values need not be freed.
  void (*serialize)(void);  ///< Reserved.
  void (*deserialize)(void);  ///< Reserved.
} PJRT_FFI_Type_Info;

/// Arguments of PJRT_FFI_Type_Register.
struct PJRT_FFI_Type_Register_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* type_name;  ///< The name; borrowed for the call.
  size_t type_name_size;  ///< Length of `type_name`.
  int64_t type_id;  ///< In and out: the id.
  PJRT_FFI_Type_Info* type_info;  ///< The operations on its values.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_FFI_Type_Register_Args, type_info);
/// Registers a user type by name. An id of 0 requests a new one; any other is compared with the one
/// registered.
typedef PJRT_Error* PJRT_FFI_Type_Register(PJRT_FFI_Type_Register_Args* args);

/// A value of a user type.
typedef struct PJRT_FFI_UserData {
  int64_t type_id;  ///< The type.
  void* data;  ///< The value.
} PJRT_FFI_UserData;

/// Arguments of PJRT_FFI_UserData_Add.
struct PJRT_FFI_UserData_Add_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_ExecuteContext* context;  ///< The context.
  PJRT_FFI_UserData user_data;  ///< The value.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_FFI_UserData_Add_Args, user_data);
/// Adds a value to an execution's context, in which handlers find it by type.
typedef PJRT_Error* PJRT_FFI_UserData_Add(PJRT_FFI_UserData_Add_Args* args);

/// A property that a handler guarantees.
typedef enum {
  /// It can be recorded into a command buffer.
  PJRT_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE = 1u << 0,
} PJRT_FFI_Handler_TraitsBits;

/// Arguments of PJRT_FFI_Register_Handler.
struct PJRT_FFI_Register_Handler_Args {
  size_t struct_size;
  const char* target_name;  ///< The custom call's name; borrowed for the call.
  size_t target_name_size;  ///< Length of `target_name`.
  void* handler;  ///< An `XLA_FFI_Handler*`: a function on an FFI call frame.
  const char* platform_name;  ///< The platform's name; borrowed for the call.
  size_t platform_name_size;  ///< Length of `platform_name`.
  PJRT_FFI_Handler_TraitsBits traits;  ///< The properties that the handler guarantees.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_FFI_Register_Handler_Args, traits);
/// Registers the handler of custom calls of a name, for one platform.
typedef PJRT_Error* PJRT_FFI_Register_Handler(PJRT_FFI_Register_Handler_Args* args);

/// The FFI extension. If it is missing, hosts silently drop an execution's context.
struct PJRT_FFI_Extension {
  PJRT_Extension_Base base;
  PJRT_FFI_Type_Register* type_register;
  PJRT_FFI_UserData_Add* user_data_add;
  PJRT_FFI_Register_Handler* register_handler;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_FFI_Extension, register_handler);
/// The other name of `PJRT_FFI_Extension`.
typedef PJRT_FFI_Extension PJRT_FFI;

#endif /* PJRT_EXTENSION_FFI_H_ */
