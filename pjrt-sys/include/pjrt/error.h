/* Errors: opaque to the host except for the function table in their first word. */
#ifndef PJRT_ERROR_H_
#define PJRT_ERROR_H_

#include "base.h"

/// Arguments of PJRT_Error_Destroy.
struct PJRT_Error_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Error* error;  ///< The error.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Error_Destroy_Args, error);
/// Frees an error. Null is allowed.
typedef void PJRT_Error_Destroy(PJRT_Error_Destroy_Args* args);

/// Arguments of PJRT_Error_Message.
struct PJRT_Error_Message_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Error* error;  ///< The error.
  const char* message;  ///< Out: the text; lives as long as the error.
  size_t message_size;  ///< Out: length of `message`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Error_Message_Args, message_size);
/// Returns an error's text.
typedef void PJRT_Error_Message(PJRT_Error_Message_Args* args);

/// The kind of an error. The numbers are absl's status codes.
typedef enum {
  /// No error; only in structs that carry a code where an error is optional.
  PJRT_Error_Code_OK = 0,
  PJRT_Error_Code_CANCELLED = 1,  ///< The operation was canceled.
  PJRT_Error_Code_UNKNOWN = 2,  ///< The error is of no other kind.
  /// The caller made a mistake, regardless of the state of the system.
  PJRT_Error_Code_INVALID_ARGUMENT = 3,
  PJRT_Error_Code_DEADLINE_EXCEEDED = 4,  ///< The deadline expired.
  PJRT_Error_Code_NOT_FOUND = 5,  ///< A requested entity does not exist.
  PJRT_Error_Code_ALREADY_EXISTS = 6,  ///< The entity to create exists already.
  PJRT_Error_Code_PERMISSION_DENIED = 7,  ///< The caller lacks a permission.
  PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,  ///< Out of memory or another resource.
  PJRT_Error_Code_FAILED_PRECONDITION = 9,  ///< The system is not in the state that this needs.
  PJRT_Error_Code_ABORTED = 10,  ///< The operation was aborted; a retry at a higher level may succeed.
  PJRT_Error_Code_OUT_OF_RANGE = 11,  ///< A value is past its valid range.
  PJRT_Error_Code_UNIMPLEMENTED = 12,  ///< The plugin does not support the operation.
  PJRT_Error_Code_INTERNAL = 13,  ///< An internal error of the plugin.
  PJRT_Error_Code_UNAVAILABLE = 14,  ///< The service is unavailable; a retry may succeed.
  PJRT_Error_Code_DATA_LOSS = 15,  ///< Data is lost or corrupt.
  PJRT_Error_Code_UNAUTHENTICATED = 16,  ///< The caller is not authenticated.
} PJRT_Error_Code;

/// Receives one payload; key and value are borrowed for the call.
typedef void (*PJRT_Error_PayloadVisitor)(
    const char* key, size_t key_size, const char* value, size_t value_size, void* user_arg);

/// The functions of an error, to which its first word points. They behave like the entries of `PJRT_Api`
/// with the same names.
struct PJRT_Error_FunctionTable {
  size_t struct_size;  ///< Size of this table in the plugin's version.
  size_t instance_size;  ///< Size of the error object that the plugin allocates.
  PJRT_Extension_Base* extension_start;
  void (*destroy)(PJRT_Error* error);  ///< Frees the error.
  /// Returns its text, which lives as long as the error.
  void (*message)(const PJRT_Error* error, const char** message, size_t* message_size);
  PJRT_Error_Code (*get_code)(const PJRT_Error* error);  ///< Returns its code.
  /// Calls the visitor once per payload.
  void (*for_each_payload)(const PJRT_Error* error, PJRT_Error_PayloadVisitor visitor, void*
      user_arg);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Error_FunctionTable, for_each_payload);

/// An error. The receiver owns it and frees it with `PJRT_Error_Destroy`. The first word is public;
/// the rest is private to the plugin.
struct PJRT_Error {
  /// The functions of the error, for use without `PJRT_Api`. Hosts since about version 0.112 may use
  /// it.
  const struct PJRT_Error_FunctionTable* vtable;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Error, vtable);

/// Arguments of PJRT_Error_GetCode.
struct PJRT_Error_GetCode_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Error* error;  ///< The error.
  PJRT_Error_Code code;  ///< Out: the code.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Error_GetCode_Args, code);
/// Returns an error's code. Must not fail, because a host would request the code of the returned error.
typedef PJRT_Error* PJRT_Error_GetCode(PJRT_Error_GetCode_Args* args);

/// Arguments of PJRT_Error_ForEachPayload.
struct PJRT_Error_ForEachPayload_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Error* error;  ///< The error.
  PJRT_Error_PayloadVisitor visitor;  ///< Called during this call only.
  void* user_arg;  ///< Passed to the visitor.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Error_ForEachPayload_Args, user_arg);
/// Calls the visitor once per payload. Must not fail, for the same reason as
/// `PJRT_Error_GetCode`.
typedef PJRT_Error* PJRT_Error_ForEachPayload(PJRT_Error_ForEachPayload_Args* args);

/// Creates an error in memory of the plugin's allocator. Hosts' callbacks report failures with it. The text is
/// borrowed for the call.
typedef PJRT_Error* (*PJRT_CallbackError)(
    PJRT_Error_Code code, const char* message, size_t message_size);

#endif /* PJRT_ERROR_H_ */
