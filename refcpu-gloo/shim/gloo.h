// The functions of Gloo that refcpu uses, as a C interface. `cargo xtask gloo` builds them into a shared library, which
// `refcpu-gloo` loads when a computation has several processes.
//
// A function that can fail returns a message, or null if it succeeded. The caller frees messages with
// `refcpu_gloo_free_message`. All functions may be called from several threads at once, except those that free their argument.

#ifndef REFCPU_GLOO_H
#define REFCPU_GLOO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The version of this interface. `refcpu-gloo` refuses libraries of other versions.
#define REFCPU_GLOO_VERSION 2

// The connections of a process to all others.
typedef struct refcpu_gloo_mesh refcpu_gloo_mesh;

// Transfers that have been started.
typedef struct refcpu_gloo_transfers refcpu_gloo_transfers;

// A transfer of bytes to or from another process. The n-th send to a process with a tag is received by the n-th receive from
// this process with that tag, and has the same size.
typedef struct refcpu_gloo_transfer {
  void *bytes;      // the memory that is sent or written, which lives until the transfers are freed
  size_t size;      // its size; a transfer of zero bytes is complete
  uint64_t tag;     // the tag
  int32_t peer;     // the index of the other process
  int32_t is_send;  // whether the bytes are sent
} refcpu_gloo_transfer;

// The outcome of refcpu_gloo_wait.
enum {
  REFCPU_GLOO_COMPLETE = 0,  // all transfers are complete
  REFCPU_GLOO_ABORTED = 1,   // refcpu_gloo_abort was called
  REFCPU_GLOO_LOST = 2,      // the connection to a process is broken
};

// Returns REFCPU_GLOO_VERSION.
int32_t refcpu_gloo_version(void);

void refcpu_gloo_free_message(char *message);

// Creates the connections of the process `index` of `count`, which listen on the network interface that `host` belongs to: a
// name or an address of this machine; null is the machine's host name. `connect_seconds` limits the time of each connection.
char *refcpu_gloo_open(int32_t index, int32_t count, const char *host, int32_t connect_seconds,
                       refcpu_gloo_mesh **mesh);

// Sets `bytes` and `size` to the address to which the process `peer` connects. The bytes live as long as the mesh.
void refcpu_gloo_address(const refcpu_gloo_mesh *mesh, int32_t peer, const uint8_t **bytes, size_t *size);

// Connects to the process `peer`, whose address for this process is given. Waits until that process does the same.
char *refcpu_gloo_connect(refcpu_gloo_mesh *mesh, int32_t peer, const uint8_t *bytes, size_t size);

// Closes all connections. Transfers then fail.
void refcpu_gloo_disconnect(refcpu_gloo_mesh *mesh);

// Frees the mesh, all of whose transfers have been freed.
void refcpu_gloo_close(refcpu_gloo_mesh *mesh);

// Starts transfers. If it fails, `peer` is the process whose connection is broken.
char *refcpu_gloo_start(refcpu_gloo_mesh *mesh, const refcpu_gloo_transfer *transfers, size_t count, int32_t *peer,
                        refcpu_gloo_transfers **started);

// Waits until all transfers are complete or one of them has failed, and sets `outcome`. If a connection is broken, `peer` is the
// process on its other side, and the message is that of Gloo; otherwise the message is null. After `limit` milliseconds, the
// waiting fails and all connections are broken; there is no limit if it is negative. Called at most once.
char *refcpu_gloo_wait(refcpu_gloo_transfers *transfers, int64_t limit, int32_t *outcome, int32_t *peer);

// Ends the waiting for transfers.
void refcpu_gloo_abort(refcpu_gloo_transfers *transfers);

// Frees transfers. Those that are not complete no longer read or write their memory.
void refcpu_gloo_free(refcpu_gloo_transfers *transfers);

// Sets the function that `refcpu_gloo_host_ends` calls.
void refcpu_gloo_set_at_host_end(void (*call)(const char *error));

// The Python package calls this when the process ends, with the error that ends it, or an empty string. It returns when the other
// processes have been told, after the launches of this process have ended.
void refcpu_gloo_host_ends(const char *error);

#ifdef __cplusplus
}
#endif

#endif
