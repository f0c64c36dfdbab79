/* Element types, memory layouts, shapes and programs, as other structs carry them. */
#ifndef PJRT_TYPES_H_
#define PJRT_TYPES_H_

#include "base.h"

/// A program's text and format. A caller passes one to compile, and receives one from
/// `PJRT_Executable_OptimizedProgram`.
struct PJRT_Program {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  /// The program, in the given format. The caller's output buffer if a program is received, or null
  /// to request its size.
  char* code;
  size_t code_size;  ///< Length of `code`.
  /// `mlir` (bytecode or text), `hlo` (HloModuleProto) or `hlo_with_config` (HloModuleProtoWithConfig).
  const char* format;
  size_t format_size;  ///< Length of `format`.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Program, format_size);

/// The type of an array's elements.
typedef enum {
  PJRT_Buffer_Type_INVALID,  ///< No type.
  PJRT_Buffer_Type_PRED,  ///< Boolean, one byte, 0 or 1.
  PJRT_Buffer_Type_S8,  ///< Signed integer of that many bits.
  PJRT_Buffer_Type_S16,  ///< Signed integer of that many bits.
  PJRT_Buffer_Type_S32,  ///< Signed integer of that many bits.
  PJRT_Buffer_Type_S64,  ///< Signed integer of that many bits.
  PJRT_Buffer_Type_U8,  ///< Unsigned integer of that many bits.
  PJRT_Buffer_Type_U16,  ///< Unsigned integer of that many bits.
  PJRT_Buffer_Type_U32,  ///< Unsigned integer of that many bits.
  PJRT_Buffer_Type_U64,  ///< Unsigned integer of that many bits.
  PJRT_Buffer_Type_F16,  ///< IEEE half precision.
  PJRT_Buffer_Type_F32,  ///< IEEE single precision.
  PJRT_Buffer_Type_F64,  ///< IEEE double precision.
  PJRT_Buffer_Type_BF16,  ///< bfloat16: 8 exponent and 7 mantissa bits.
  PJRT_Buffer_Type_C64,  ///< Complex of two F32, real part first.
  PJRT_Buffer_Type_C128,  ///< Complex of two F64, real part first.
  PJRT_Buffer_Type_F8E5M2,  ///< 8 bits: 5 exponent, 2 mantissa, with infinities.
  PJRT_Buffer_Type_F8E4M3FN,  ///< 8 bits: 4 exponent, 3 mantissa, no infinities.
  /// 8 bits: 4 exponent with bias 11, 3 mantissa, no infinities, no negative zero.
  PJRT_Buffer_Type_F8E4M3B11FNUZ,
  /// 8 bits: 5 exponent, 2 mantissa, no infinities, no negative zero.
  PJRT_Buffer_Type_F8E5M2FNUZ,
  /// 8 bits: 4 exponent, 3 mantissa, no infinities, no negative zero.
  PJRT_Buffer_Type_F8E4M3FNUZ,
  PJRT_Buffer_Type_S4,  ///< Signed 4 bits; one element per byte in host memory.
  PJRT_Buffer_Type_U4,  ///< Unsigned 4 bits; one element per byte in host memory.
  PJRT_Buffer_Type_TOKEN,  ///< No data: an ordering token.
  PJRT_Buffer_Type_S2,  ///< Signed 2 bits; one element per byte in host memory.
  PJRT_Buffer_Type_U2,  ///< Unsigned 2 bits; one element per byte in host memory.
  PJRT_Buffer_Type_F8E4M3,  ///< 8 bits: 4 exponent, 3 mantissa, IEEE-like, with infinities.
  PJRT_Buffer_Type_F8E3M4,  ///< 8 bits: 3 exponent, 4 mantissa, IEEE-like, with infinities.
  PJRT_Buffer_Type_F8E8M0FNU,  ///< 8 bits of exponent: a power of two, no sign, no zero.
  PJRT_Buffer_Type_F4E2M1FN,  ///< 4 bits: 2 exponent, 1 mantissa, only finite values.
  PJRT_Buffer_Type_S1,  ///< Signed 1 bit; one element per byte in host memory.
  PJRT_Buffer_Type_U1,  ///< Unsigned 1 bit; one element per byte in host memory.
  PJRT_Buffer_Type_F6E2M3FN,  ///< 6 bits: 2 exponent, 3 mantissa, only finite values.
  PJRT_Buffer_Type_F6E3M2FN,  ///< 6 bits: 3 exponent, 2 mantissa, only finite values.
} PJRT_Buffer_Type;

/// The time and the purposes for which a plugin may use the host memory that a buffer is created from.
typedef enum {
  /// Read during the call only: copy before returning.
  PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
  /// Read until the `done_with_host_buffer` event, which signals that the copy is complete.
  PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes,
  /// May be the buffer's storage, read only, until `done_with_host_buffer`, which then must wait for
  /// the buffer's destruction.
  PJRT_HostBufferSemantics_kImmutableZeroCopy,
  /// May be the buffer's storage, also for outputs that reuse it, until `done_with_host_buffer`.
  PJRT_HostBufferSemantics_kMutableZeroCopy,
} PJRT_HostBufferSemantics;

/// The member of a layout's union that is set.
typedef enum {
  PJRT_Buffer_MemoryLayout_Type_Tiled = 0,  ///< `tiled`.
  PJRT_Buffer_MemoryLayout_Type_Strides,  ///< `strides`.
} PJRT_Buffer_MemoryLayout_Type;

/// A layout as an order of dimensions and optional tiles.
struct PJRT_Buffer_MemoryLayout_Tiled {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  /// The logical dimensions from the fastest to the slowest varying, one per dimension.
  const int64_t* minor_to_major;
  size_t minor_to_major_size;  ///< Length of `minor_to_major`.
  const int64_t* tile_dims;  ///< The dimensions of all tiles, one after the other.
  const size_t* tile_dim_sizes;  ///< The number of `tile_dims` of each tile; `num_tiles` numbers.
  size_t num_tiles;  ///< Number of tiles; 0 for a plain dense layout.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_MemoryLayout_Tiled, num_tiles);

/// A layout as byte strides.
struct PJRT_Buffer_MemoryLayout_Strides {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  /// The byte stride of each dimension. If one is negative, the data pointer is inside the array.
  const int64_t* byte_strides;
  size_t num_byte_strides;  ///< Length of `byte_strides`: the number of dimensions.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_MemoryLayout_Strides, num_byte_strides);

/// The arrangement of an array's elements in memory. Some hosts leave the `struct_size` of a nested layout
/// unset; use `type`.
struct PJRT_Buffer_MemoryLayout {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  /// The layout.
  union {
    PJRT_Buffer_MemoryLayout_Tiled tiled;  ///< An order of dimensions, with tiles.
    PJRT_Buffer_MemoryLayout_Strides strides;  ///< Byte strides.
  };
  PJRT_Buffer_MemoryLayout_Type type;  ///< The member of the union that is set.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Buffer_MemoryLayout, type);

/// An element type with dimensions.
struct PJRT_ShapeSpec {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const int64_t* dims;  ///< The dimensions.
  size_t num_dims;  ///< Number of dimensions.
  PJRT_Buffer_Type element_type;  ///< The element type.
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_ShapeSpec, element_type);

#endif /* PJRT_TYPES_H_ */
