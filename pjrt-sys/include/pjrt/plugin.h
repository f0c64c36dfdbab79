/* Named values, and the functions of a plugin that need no client. */
#ifndef PJRT_PLUGIN_H_
#define PJRT_PLUGIN_H_

#include "error.h"

/// The member of a named value's union that is set.
typedef enum {
  PJRT_NamedValue_kString = 0,  ///< `string_value`.
  PJRT_NamedValue_kInt64,  ///< `int64_value`.
  PJRT_NamedValue_kInt64List,  ///< `int64_array_value`.
  PJRT_NamedValue_kFloat,  ///< `float_value`.
  PJRT_NamedValue_kBool,  ///< `bool_value`.
} PJRT_NamedValue_Type;

/// A name with a value: an option, an attribute, a property.
struct PJRT_NamedValue {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* name;  ///< The name, not NUL-terminated.
  size_t name_size;  ///< Length of `name`.
  PJRT_NamedValue_Type type;  ///< The member of the union that is set.
  /// The value.
  union {
    const char* string_value;  ///< Text of `value_size` bytes, not NUL-terminated.
    int64_t int64_value;  ///< An integer.
    const int64_t* int64_array_value;  ///< Array of `value_size` integers.
    float float_value;  ///< A floating-point number.
    bool bool_value;  ///< A boolean.
  };
  size_t value_size;  ///< Length of a string or list, 1 for a single value.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_NamedValue, value_size);

/// Arguments of PJRT_Plugin_Initialize.
struct PJRT_Plugin_Initialize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Plugin_Initialize_Args, extension_start);
/// Initializes the plugin, once, before any other function is called.
typedef PJRT_Error* PJRT_Plugin_Initialize(PJRT_Plugin_Initialize_Args* args);

/// Arguments of PJRT_Plugin_Attributes.
struct PJRT_Plugin_Attributes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_NamedValue* attributes;  ///< Out: the attributes; they live as long as the process.
  size_t num_attributes;  ///< Out: number of attributes.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Plugin_Attributes_Args, num_attributes);
/// Returns attributes of the plugin, such as `xla_version`, `stablehlo_current_version`,
/// `stablehlo_minimum_version`. Hosts older than about 0.70 declare the struct as 24 bytes but have all
/// 32; the count must be written for them too.
typedef PJRT_Error* PJRT_Plugin_Attributes(PJRT_Plugin_Attributes_Args* args);

#endif /* PJRT_PLUGIN_H_ */
