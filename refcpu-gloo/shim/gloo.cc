// The functions of gloo.h.

#include "gloo.h"

#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gloo/common/error.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/attr.h>
#include <gloo/transport/tcp/device.h>

namespace {

using gloo::transport::UnboundBuffer;

// Transfers have no time limit of their own: a process may be slow. Gloo has no value for that, and breaks all connections
// when a limit expires.
constexpr std::chrono::milliseconds kNoLimit = std::chrono::hours(24 * 365);

// Gloo waits five times as long for a connection as its time limit.
constexpr int kConnectFactor = 5;

std::atomic<void (*)(const char *)> at_host_end = nullptr;

char *message_of(const char *text) { return strdup(text); }

// Throws if a name has no address, because Gloo then frees memory that it has not allocated.
void resolve(const std::string &host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *found = nullptr;
  const int status = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (status != 0) {
    throw std::runtime_error("the name '" + host + "' has no address: " + gai_strerror(status));
  }
  freeaddrinfo(found);
}

// Returns the name of this machine.
std::string own_host() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) {
    throw std::runtime_error("the machine has no host name");
  }
  return name;
}

// Returns the message of the exception that is being handled.
char *current_message() {
  try {
    throw;
  } catch (const std::exception &error) {
    return message_of(error.what());
  } catch (...) {
    return message_of("an exception that is not a std::exception");
  }
}

// Gives threads that this one creates the scheduling policy SCHED_BATCH while it lives.
//
// The thread of Gloo that receives messages polls while another thread holds the lock of a connection. If it is woken in the
// place of the thread that holds the lock, it polls until its time is over. With this policy, a thread that is woken does not
// take the place of a running one.
class InBatchPolicy {
 public:
  InBatchPolicy() {
    if (pthread_getschedparam(pthread_self(), &policy_, &parameters_) == 0 && policy_ == SCHED_OTHER) {
      changed_ = pthread_setschedparam(pthread_self(), SCHED_BATCH, &parameters_) == 0;
    }
  }

  ~InBatchPolicy() {
    if (changed_) {
      pthread_setschedparam(pthread_self(), policy_, &parameters_);
    }
  }

 private:
  int policy_ = 0;
  sched_param parameters_ = {};
  bool changed_ = false;
};

}  // namespace

struct refcpu_gloo_mesh {
  std::shared_ptr<gloo::transport::Device> device;
  std::shared_ptr<gloo::transport::Context> context;
  // By process; empty for this one.
  std::vector<std::vector<char>> addresses;
};

struct refcpu_gloo_transfers {
  std::vector<refcpu_gloo_transfer> transfers;
  // A transfer of zero bytes has none.
  std::vector<std::unique_ptr<UnboundBuffer>> buffers;
};

int32_t refcpu_gloo_version(void) { return REFCPU_GLOO_VERSION; }

void refcpu_gloo_free_message(char *message) { free(message); }

char *refcpu_gloo_open(int32_t index, int32_t count, const char *host, int32_t connect_seconds,
                       refcpu_gloo_mesh **mesh) {
  try {
    gloo::transport::tcp::attr attr;
    attr.hostname = host != nullptr ? host : own_host();
    resolve(attr.hostname);
    auto opened = std::make_unique<refcpu_gloo_mesh>();
    {
      InBatchPolicy policy;
      opened->device = gloo::transport::tcp::CreateDevice(attr);
    }
    opened->context = opened->device->createContext(index, count);
    opened->context->setTimeout(std::chrono::milliseconds(connect_seconds * 1000 / kConnectFactor));
    opened->addresses.resize(count);
    for (int32_t peer = 0; peer < count; ++peer) {
      if (peer != index) {
        opened->addresses[peer] = opened->context->createPair(peer)->address().bytes();
      }
    }
    *mesh = opened.release();
    return nullptr;
  } catch (...) {
    return current_message();
  }
}

void refcpu_gloo_address(const refcpu_gloo_mesh *mesh, int32_t peer, const uint8_t **bytes, size_t *size) {
  const std::vector<char> &address = mesh->addresses[peer];
  *bytes = reinterpret_cast<const uint8_t *>(address.data());
  *size = address.size();
}

char *refcpu_gloo_connect(refcpu_gloo_mesh *mesh, int32_t peer, const uint8_t *bytes, size_t size) {
  try {
    mesh->context->getPair(peer)->connect(std::vector<char>(bytes, bytes + size));
    return nullptr;
  } catch (...) {
    return current_message();
  }
}

void refcpu_gloo_disconnect(refcpu_gloo_mesh *mesh) {
  for (int peer = 0; peer < mesh->context->size; ++peer) {
    if (peer == mesh->context->rank) {
      continue;
    }
    try {
      mesh->context->getPair(peer)->close();
    } catch (...) {
      // The connection is broken already.
    }
  }
}

void refcpu_gloo_close(refcpu_gloo_mesh *mesh) { delete mesh; }

char *refcpu_gloo_start(refcpu_gloo_mesh *mesh, const refcpu_gloo_transfer *transfers, size_t count, int32_t *peer,
                        refcpu_gloo_transfers **started) {
  *peer = -1;
  try {
    auto all = std::make_unique<refcpu_gloo_transfers>();
    all->transfers.assign(transfers, transfers + count);
    all->buffers.reserve(count);
    for (const refcpu_gloo_transfer &transfer : all->transfers) {
      *peer = transfer.peer;
      if (transfer.size == 0) {
        all->buffers.push_back(nullptr);
        continue;
      }
      all->buffers.push_back(mesh->context->createUnboundBuffer(transfer.bytes, transfer.size));
      UnboundBuffer &buffer = *all->buffers.back();
      if (transfer.is_send) {
        buffer.send(transfer.peer, transfer.tag);
      } else {
        buffer.recv(transfer.peer, transfer.tag);
      }
    }
    *started = all.release();
    return nullptr;
  } catch (...) {
    return current_message();
  }
}

char *refcpu_gloo_wait(refcpu_gloo_transfers *transfers, int64_t limit, int32_t *outcome, int32_t *peer) {
  std::chrono::milliseconds time = limit < 0 ? kNoLimit : std::chrono::milliseconds(limit);
  for (size_t i = 0; i < transfers->buffers.size(); ++i) {
    if (transfers->buffers[i] == nullptr) {
      continue;
    }
    const refcpu_gloo_transfer &transfer = transfers->transfers[i];
    try {
      UnboundBuffer &buffer = *transfers->buffers[i];
      bool complete = transfer.is_send ? buffer.waitSend(nullptr, time) : buffer.waitRecv(nullptr, time);
      if (!complete) {
        *outcome = REFCPU_GLOO_ABORTED;
        return nullptr;
      }
    } catch (...) {
      *outcome = REFCPU_GLOO_LOST;
      *peer = transfer.peer;
      return current_message();
    }
  }
  *outcome = REFCPU_GLOO_COMPLETE;
  return nullptr;
}

void refcpu_gloo_abort(refcpu_gloo_transfers *transfers) {
  for (size_t i = 0; i < transfers->buffers.size(); ++i) {
    if (transfers->buffers[i] == nullptr) {
      continue;
    }
    if (transfers->transfers[i].is_send) {
      transfers->buffers[i]->abortWaitSend();
    } else {
      transfers->buffers[i]->abortWaitRecv();
    }
  }
}

void refcpu_gloo_free(refcpu_gloo_transfers *transfers) { delete transfers; }

void refcpu_gloo_set_at_host_end(void (*call)(const char *error)) { at_host_end = call; }

void refcpu_gloo_host_ends(const char *error) {
  if (void (*call)(const char *) = at_host_end) {
    call(error);
  }
}
