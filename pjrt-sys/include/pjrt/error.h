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
/// Gives an error's text.
typedef void PJRT_Error_Message(PJRT_Error_Message_Args* args);

/// What kind of error it is; the numbers are absl's status codes.
typedef enum {
  /// No error; only in structs that carry a code where an error is optional.
  PJRT_Error_Code_OK = 0,
  PJRT_Error_Code_CANCELLED = 1,  ///< Stopped on request.
  PJRT_Error_Code_UNKNOWN = 2,  ///< Not one of the others.
  /// The caller's mistake, whatever the state of the system.
  PJRT_Error_Code_INVALID_ARGUMENT = 3,
  PJRT_Error_Code_DEADLINE_EXCEEDED = 4,  ///< Out of time.
  PJRT_Error_Code_NOT_FOUND = 5,  ///< There is no such thing.
  PJRT_Error_Code_ALREADY_EXISTS = 6,  ///< It is there already.
  PJRT_Error_Code_PERMISSION_DENIED = 7,  ///< Not allowed to this caller.
  PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,  ///< Out of memory or another resource.
  PJRT_Error_Code_FAILED_PRECONDITION = 9,  ///< The system is not in the state that this needs.
  PJRT_Error_Code_ABORTED = 10,  ///< Given up; a retry from further up may work.
  PJRT_Error_Code_OUT_OF_RANGE = 11,  ///< Past a valid range.
  PJRT_Error_Code_UNIMPLEMENTED = 12,  ///< The plugin does not do this.
  PJRT_Error_Code_INTERNAL = 13,  ///< A fault of the plugin.
  PJRT_Error_Code_UNAVAILABLE = 14,  ///< Not now; a retry may work.
  PJRT_Error_Code_DATA_LOSS = 15,  ///< Data is lost or corrupt.
  PJRT_Error_Code_UNAUTHENTICATED = 16,  ///< Who is calling is not known.
} PJRT_Error_Code;

/// Receives one payload; key and value are borrowed for the call.
typedef void (*PJRT_Error_PayloadVisitor)(
    const char* key, size_t key_size, const char* value, size_t value_size, void* user_arg);

/// An error's own functions, behind its first word. They behave as the entries of `PJRT_Api` of the
/// same name.
struct PJRT_Error_FunctionTable {
  size_t struct_size;  ///< Size of this table in the plugin's version.
  size_t instance_size;  ///< Size of the error object that the plugin allocates.
  PJRT_Extension_Base* extension_start;
  void (*destroy)(PJRT_Error* error);  ///< Frees the error.
  /// Gives its text, which lives as long as the error.
  void (*message)(const PJRT_Error* error, const char** message, size_t* message_size);
  PJRT_Error_Code (*get_code)(const PJRT_Error* error);  ///< Gives its code.
  /// Calls the visitor once per payload.
  void (*for_each_payload)(const PJRT_Error* error, PJRT_Error_PayloadVisitor visitor, void*
      user_arg);
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Error_FunctionTable, for_each_payload);

/// An error. Owned by whoever receives it, freed with `PJRT_Error_Destroy`. The first word is public;
/// the rest is the plugin's.
struct PJRT_Error {
  /// How to handle the error without going through `PJRT_Api`. Hosts since about version 0.112 may use
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
/// Gives an error's code. Must not fail: a host asks the error it gets for its code in turn.
typedef PJRT_Error* PJRT_Error_GetCode(PJRT_Error_GetCode_Args* args);

/// Arguments of PJRT_Error_ForEachPayload.
struct PJRT_Error_ForEachPayload_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Error* error;  ///< The error.
  PJRT_Error_PayloadVisitor visitor;  ///< Called during this call only.
  void* user_arg;  ///< Handed to the visitor.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Error_ForEachPayload_Args, user_arg);
/// Calls the visitor once per payload. Must not fail, for the reason that `PJRT_Error_GetCode` must
/// not.
typedef PJRT_Error* PJRT_Error_ForEachPayload(PJRT_Error_ForEachPayload_Args* args);

/// Makes an error in the plugin's allocator; hosts' callbacks report failure with it. The text is
/// borrowed for the call.
typedef PJRT_Error* (*PJRT_CallbackError)(
    PJRT_Error_Code code, const char* message, size_t message_size);

#endif /* PJRT_ERROR_H_ */
