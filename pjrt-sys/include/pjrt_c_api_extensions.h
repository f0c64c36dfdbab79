/* The extensions of the PJRT C API, version 0.117.
 *
 * An extension is a struct in the chain that starts at `PJRT_Api.extension_start`; a host finds it by its type and
 * uses it if it is there. Extension types without a public struct (Collectives, Example, TpuExecutable, Unknown) have
 * only their number, in `PJRT_Extension_Type`. Where the interface is declared in C++ elsewhere, this is its C form:
 * strong integer types are the integers they wrap.
 */
#ifndef PJRT_C_API_EXTENSIONS_H_
#define PJRT_C_API_EXTENSIONS_H_

#include "pjrt_c_api.h"
#include "extensions/abi_version.h"
#include "extensions/callback.h"
#include "extensions/cross_host_transfers.h"
#include "extensions/custom_partitioner.h"
#include "extensions/device_event.h"
#include "extensions/executable_metadata.h"
#include "extensions/ffi.h"
#include "extensions/gpu_custom_call.h"
#include "extensions/host_allocator.h"
#include "extensions/host_memory_allocator.h"
#include "extensions/layouts.h"
#include "extensions/megascale.h"
#include "extensions/memory_descriptions.h"
#include "extensions/multi_slice.h"
#include "extensions/phase_compile.h"
#include "extensions/profiler.h"
#include "extensions/raw_buffer.h"
#include "extensions/shardings.h"
#include "extensions/stream.h"
#include "extensions/tpu_topology.h"
#include "extensions/triton.h"
#include "extensions/xla_transform.h"

#endif /* PJRT_C_API_EXTENSIONS_H_ */
