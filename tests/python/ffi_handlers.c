// Handlers of custom calls for test_ffi.py, written against the C interface of XLA's FFI alone.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xla/ffi/api/c_api.h"

// Answers a frame that asks for the handler's version, and is no call.
static int is_question(XLA_FFI_CallFrame* frame) {
  XLA_FFI_Extension_Base* extension = frame->extension_start;
  if (extension == NULL || extension->type != XLA_FFI_Extension_Metadata) return 0;
  XLA_FFI_Metadata* metadata = ((XLA_FFI_Metadata_Extension*)extension)->metadata;
  metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  metadata->api_version.minor_version = XLA_FFI_API_MINOR;
  return 1;
}

static XLA_FFI_Error* failure(XLA_FFI_CallFrame* frame, XLA_FFI_Error_Code code, const char* message) {
  XLA_FFI_Error_Create_Args args = {0};
  args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  args.message = message;
  args.errc = code;
  return frame->api->XLA_FFI_Error_Create(&args);
}

static XLA_FFI_Buffer* operand(XLA_FFI_CallFrame* frame, int i) { return frame->args.args[i]; }

static XLA_FFI_Buffer* result(XLA_FFI_CallFrame* frame, int i) { return frame->rets.rets[i]; }

static int64_t size(const XLA_FFI_Buffer* buffer) {
  int64_t size = 1;
  for (int64_t i = 0; i < buffer->rank; ++i) size *= buffer->dims[i];
  return size;
}

// The attribute of a name and kind, or null.
static void* attribute(const XLA_FFI_Attrs* attrs, const char* name, XLA_FFI_AttrType type) {
  for (int64_t i = 0; i < attrs->size; ++i) {
    XLA_FFI_ByteSpan* span = attrs->names[i];
    if (span->len == strlen(name) && memcmp(span->ptr, name, span->len) == 0) {
      return attrs->types[i] == type ? attrs->attrs[i] : NULL;
    }
  }
  return NULL;
}

// x * by["scale"] + offsets, where by["name"] is "scale".
XLA_FFI_Error* weigh(XLA_FFI_CallFrame* frame) {
  if (is_question(frame)) return NULL;
  XLA_FFI_Attrs* by = attribute(&frame->attrs, "by", XLA_FFI_AttrType_DICTIONARY);
  XLA_FFI_Array* offsets = attribute(&frame->attrs, "offsets", XLA_FFI_AttrType_ARRAY);
  if (by == NULL || offsets == NULL || offsets->dtype != XLA_FFI_DataType_F64) {
    return failure(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT, "weigh wants 'by' and 'offsets'");
  }
  XLA_FFI_Scalar* scale = attribute(by, "scale", XLA_FFI_AttrType_SCALAR);
  XLA_FFI_ByteSpan* name = attribute(by, "name", XLA_FFI_AttrType_STRING);
  if (scale == NULL || scale->dtype != XLA_FFI_DataType_F32 || name == NULL || name->len != 5 ||
      memcmp(name->ptr, "scale", 5) != 0) {
    return failure(frame, XLA_FFI_Error_Code_OUT_OF_RANGE, "what weigh is to weigh by is strange");
  }
  XLA_FFI_Buffer *x = operand(frame, 0), *y = result(frame, 0);
  if (x->dtype != XLA_FFI_DataType_F32 || y->dtype != XLA_FFI_DataType_F32 || size(x) != size(y)) {
    return failure(frame, XLA_FFI_Error_Code_INVALID_ARGUMENT, "weigh wants two arrays of f32");
  }
  for (int64_t i = 0; i < size(x); ++i) {
    double offset = ((double*)offsets->data)[i % offsets->size];
    ((float*)y->data)[i] = ((float*)x->data)[i] * *(float*)scale->value + (float)offset;
  }
  return NULL;
}

static int times_counted = 0;

// How often it was called before.
XLA_FFI_Error* count(XLA_FFI_CallFrame* frame) {
  if (is_question(frame)) return NULL;
  *(int32_t*)result(frame, 0)->data = times_counted++;
  return NULL;
}

int counted(void) { return times_counted; }

// The elements in the order in which they lie in memory, and the rank, which the handler is told.
XLA_FFI_Error* as_it_lies(XLA_FFI_CallFrame* frame) {
  if (is_question(frame)) return NULL;
  XLA_FFI_Buffer *x = operand(frame, 0), *flat = result(frame, 0), *same = result(frame, 1), *dims = result(frame, 2);
  memcpy(flat->data, x->data, size(x) * sizeof(int32_t));
  memcpy(same->data, x->data, size(x) * sizeof(int32_t));
  for (int64_t i = 0; i < x->rank; ++i) ((int32_t*)dims->data)[i] = (int32_t)x->dims[i];
  return NULL;
}

// Adds one to what is in the result already.
XLA_FFI_Error* add_in_place(XLA_FFI_CallFrame* frame) {
  if (is_question(frame)) return NULL;
  XLA_FFI_Buffer* y = result(frame, 0);
  for (int64_t i = 0; i < size(y); ++i) ((float*)y->data)[i] += 1;
  return NULL;
}

// The number of the device.
XLA_FFI_Error* where(XLA_FFI_CallFrame* frame) {
  if (is_question(frame)) return NULL;
  XLA_FFI_DeviceOrdinal_Get_Args args = {0};
  args.struct_size = XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE;
  args.ctx = frame->ctx;
  XLA_FFI_Error* error = frame->api->XLA_FFI_DeviceOrdinal_Get(&args);
  *(int32_t*)result(frame, 0)->data = args.device_ordinal;
  return error;
}

// The numbers by which the interface calls the types of the operand's elements and of the result's.
XLA_FFI_Error* types(XLA_FFI_CallFrame* frame) {
  if (is_question(frame)) return NULL;
  ((int32_t*)result(frame, 0)->data)[0] = (int32_t)operand(frame, 0)->dtype;
  return NULL;
}

// A function that is no handler: it never says for which version it is.
XLA_FFI_Error* silent(XLA_FFI_CallFrame* frame) { return NULL; }

XLA_FFI_TypeId a_type = {0};
