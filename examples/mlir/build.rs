//! Builds the compiler in C++, and links it.
//!
//! To link a library that you build elsewhere, replace `main` by the paths and the names of its archives, for example:
//!
//! ```ignore
//! println!("cargo:rustc-link-search=native=/opt/my-compiler/lib");
//! println!("cargo:rustc-link-lib=static=my_compiler"); // defines the functions of compiler.h
//! println!("cargo:rustc-link-lib=static=MLIRIR"); // and so on: `llvm-config --libs` prints LLVM's
//! println!("cargo:rustc-link-lib=dylib=stdc++");
//! ```
//!
//! Link MLIR statically: a host such as JAX contains its own copy of MLIR, whose symbols a shared library could be
//! bound to. The plugin exports only the entry point, so the symbols of a static copy are not visible to the host.

fn main() {
    println!("cargo:rerun-if-changed=compiler");
    println!("cargo:rerun-if-env-changed=CXX");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").warnings(true).file("compiler/compiler.cc");
    if let Err(error) = build.try_compile("compiler") {
        eprintln!(
            "cannot build compiler/compiler.cc: {error}\nexpected a compiler for C++17: install g++ or clang++, or name one in the \
             environment variable CXX"
        );
        std::process::exit(1);
    }
}
