// The interface between the plugin and the compiler. Implement these three functions with your compiler and your runtime.
//
// Ownership: a function borrows its arguments until it returns, and must not keep pointers to them. The caller owns the
// bytes of a `compiler_output`, and passes each output to `compiler_free` exactly once.
//
// Threads: hosts compile and run programs on several threads at once, so all functions may be called concurrently. Protect
// what your compiler shares, such as a global context.
//
// Exceptions must not leave the functions. A C++ exception that reaches Rust ends the process.

#ifndef COMPILER_H
#define COMPILER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define COMPILER_NOEXCEPT noexcept
extern "C" {
#else
#define COMPILER_NOEXCEPT
#include <stdbool.h>
#endif

// Bytes that the function only reads. `data` may be null if `size` is 0, and need not be aligned.
typedef struct compiler_bytes {
  const uint8_t* data;
  size_t size;
} compiler_bytes;

// Bytes that the function writes, all of them if it succeeds.
typedef struct compiler_buffer {
  uint8_t* data;
  size_t size;
} compiler_buffer;

// The compiler options that users set by name. `src/options.rs` declares the names.
typedef struct compiler_options {
  // Whether x * y + z is rounded once instead of twice.
  bool fuse_multiply_add;
} compiler_options;

// The codes of PJRT that this compiler uses. The others, up to 16, are those of absl::StatusCode.
enum {
  COMPILER_OK = 0,
  COMPILER_INVALID_ARGUMENT = 3,
  COMPILER_RESOURCE_EXHAUSTED = 8,
  COMPILER_UNIMPLEMENTED = 12,
  COMPILER_INTERNAL = 13,
  COMPILER_DATA_LOSS = 15,
};

// The result of a function: bytes, or an error.
typedef struct compiler_output {
  // COMPILER_OK, or the code of the error.
  uint32_t error;
  // The result, or the message of the error in UTF-8. `data` may be null if `size` is 0.
  uint8_t* data;
  size_t size;
} compiler_output;

// Compiles a program.
//
// `format` names the form of the program. This plugin passes "mlir": the text of one StableHLO module in MLIR's generic
// form, with locations, in which calls are inlined and which has only the function `main`.
//
// The result is code for `compiler_run`. Hosts save it and load it in other processes, so it must not contain addresses.
compiler_output compiler_compile(compiler_bytes program, compiler_bytes format, const compiler_options* options)
    COMPILER_NOEXCEPT;

// Runs a program, and returns when its results are written.
//
// `arguments` and `results` are dense row-major arrays in host memory, in the order of the program's signature. They do not
// overlap. If the function succeeds, its output has no bytes. The code may come from a file, so check it before you use it.
compiler_output compiler_run(compiler_bytes code, const compiler_bytes* arguments, size_t num_arguments,
                             const compiler_buffer* results, size_t num_results) COMPILER_NOEXCEPT;

// Frees the bytes of an output.
void compiler_free(compiler_output output) COMPILER_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
