// What SimGrid's MPI lacks, and one host for all ranks: they have one clock, and folded memory.
//
// Nodes are what --ranks-per-node says. The linker puts these functions in the place of those that
// they are named after (--wrap).
// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-forward-declaration-namespace): the linker's
// names, and SimGrid's.
#include <mpi.h>

#include <cstring>
#include <memory>
#include <optional>

#include "job/memory_need.h"
#include "memory/resident_memory.h"

extern "C" int __wrap_MPI_Get_processor_name(char* name, int* length) {
  constexpr char kName[] = "simulated";
  std::memcpy(name, kName, sizeof(kName));
  *length = sizeof(kName) - 1;
  return MPI_SUCCESS;
}

// Ranks are contexts of one thread, which MPI_Is_thread_main knows for at most one of them.
extern "C" int __wrap_MPI_Query_thread(int* level) {
  *level = MPI_THREAD_SERIALIZED;
  return MPI_SUCCESS;
}

// SimGrid 3.32 has the blocking one only. All ranks call it, and nothing is ever late.
extern "C" int __wrap_MPI_Comm_idup(MPI_Comm comm, MPI_Comm* duplicate, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return MPI_Comm_dup(comm, duplicate);
}

// It has no matched probes. All ranks are contexts of one thread, so nobody else takes a message
// between its being found and its being received.
namespace {
struct Found {
  int source;
  int tag;
  MPI_Comm comm;
};
}  // namespace
extern "C" int __wrap_MPI_Improbe(int source, int tag, MPI_Comm comm, int* found,
                                  MPI_Message* message, MPI_Status* status) {
  const int code = MPI_Iprobe(source, tag, comm, found, status);
  if (code == MPI_SUCCESS && *found != 0) {
    *message = new Found{status->MPI_SOURCE, status->MPI_TAG, comm};
  }
  return code;
}
extern "C" int __wrap_MPI_Imrecv(void* data, int count, MPI_Datatype type, MPI_Message* message,
                                 MPI_Request* request) {
  const std::unique_ptr<const Found> found(static_cast<Found*>(*message));
  *message = MPI_MESSAGE_NULL;
  return MPI_Irecv(data, count, type, found->source, found->tag, found->comm, request);
}

// And it leaves `complete` alone where there is no request.
extern "C" int __real_MPI_Test(MPI_Request* request, int* complete, MPI_Status* status);
extern "C" int __wrap_MPI_Test(MPI_Request* request, int* complete, MPI_Status* status) {
  if (*request != MPI_REQUEST_NULL) return __real_MPI_Test(request, complete, status);
  *complete = 1;
  return MPI_SUCCESS;
}

namespace sluice::bench {

// In the place of AvailableBytes(): what is folded takes none.
std::optional<int64_t> UnknownBytes() __asm__("__wrap__ZN6sluice5bench14AvailableBytesEv");
std::optional<int64_t> UnknownBytes() { return std::nullopt; }

// In the place of ReadResidentMemory(): ranks are one process, whose memory is nobody's own.
std::optional<ResidentMemory> UnknownMemory() __asm__(
    "__wrap__ZN6sluice5bench18ReadResidentMemoryEv");
std::optional<ResidentMemory> UnknownMemory() { return std::nullopt; }

}  // namespace sluice::bench
// NOLINTEND(bugprone-reserved-identifier,bugprone-forward-declaration-namespace)
