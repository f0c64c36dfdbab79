// Handlers of custom calls for test_ffi.py, written against the C++ interface of XLA's FFI.

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// Divides rows by the root of the mean of their squares.
static ffi::Error Normalize(float epsilon, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  auto dims = x.dimensions();
  if (dims.size() == 0) return ffi::Error(ffi::ErrorCode::kInvalidArgument, "normalize wants rows");
  int64_t width = dims.back();
  for (int64_t row = 0; row < static_cast<int64_t>(x.element_count()) / width; ++row) {
    const float* from = x.typed_data() + row * width;
    float* to = y->typed_data() + row * width;
    float squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += from[i] * from[i];
    float scale = 1.0f / std::sqrt(squares / width + epsilon);
    for (int64_t i = 0; i < width; ++i) to[i] = from[i] * scale;
  }
  return ffi::Error::Success();
}

extern "C" XLA_FFI_DECLARE_HANDLER_SYMBOL(normalize);
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    normalize, Normalize,
    ffi::Ffi::Bind().Attr<float>("epsilon").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// A number of every kind of attribute.
static ffi::Error Attributes(bool flag, int64_t number, double real, std::string_view text, ffi::Span<const int64_t> list,
                             ffi::Dictionary dictionary, ffi::ResultBuffer<ffi::F64> out) {
  auto nested = dictionary.get<int32_t>("number");
  if (!nested.has_value()) return nested.error();
  double* to = out->typed_data();
  to[0] = flag;
  to[1] = static_cast<double>(number);
  to[2] = real;
  to[3] = static_cast<double>(text.size());
  to[4] = static_cast<double>(std::accumulate(list.begin(), list.end(), int64_t{0}));
  to[5] = *nested;
  return ffi::Error::Success();
}

extern "C" XLA_FFI_DECLARE_HANDLER_SYMBOL(attributes);
XLA_FFI_DEFINE_HANDLER_SYMBOL(attributes, Attributes,
                              ffi::Ffi::Bind()
                                  .Attr<bool>("flag")
                                  .Attr<int64_t>("number")
                                  .Attr<double>("real")
                                  .Attr<std::string_view>("text")
                                  .Attr<ffi::Span<const int64_t>>("list")
                                  .Attr<ffi::Dictionary>("dictionary")
                                  .Ret<ffi::Buffer<ffi::F64>>());

// Sums any number of arrays, on a thread of the runtime's, with memory of the runtime's.
static ffi::Future Sum(ffi::ThreadPool pool, ffi::ScratchAllocator scratch, ffi::RemainingArgs arguments,
                       ffi::ResultBuffer<ffi::F32> y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  auto memory = scratch.Allocate(y->size_bytes());
  if (!memory.has_value()) {
    promise.SetError(ffi::Error(ffi::ErrorCode::kResourceExhausted, "no scratch memory"));
    return future;
  }
  float* sum = static_cast<float*>(*memory);
  size_t count = y->element_count();
  for (size_t i = 0; i < count; ++i) sum[i] = 0;
  for (size_t k = 0; k < arguments.size(); ++k) {
    auto x = arguments.get<ffi::Buffer<ffi::F32>>(k);
    if (!x.has_value()) {
      promise.SetError(x.error());
      return future;
    }
    for (size_t i = 0; i < count; ++i) sum[i] += x->typed_data()[i];
  }
  for (size_t i = 0; i < count; ++i) y->typed_data()[i] = sum[i];
  pool.Schedule([promise = std::move(promise)]() mutable { promise.SetAvailable(); });
  return future;
}

extern "C" XLA_FFI_DECLARE_HANDLER_SYMBOL(sum);
XLA_FFI_DEFINE_HANDLER_SYMBOL(sum, Sum,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .RemainingArgs()
                                  .Ret<ffi::Buffer<ffi::F32>>());
