// The facts of this build and of the system around it, for `python -m sluice.doctor`.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "session.h"
#include "storage/file/file_io.h"
#include "transport/direct/direct_limit.h"
#include "transport/direct/process_memory.h"
#include "transport/direct/shared_segment.h"
#include "transport/ucx/ucx_worker.h"

namespace sluice::python {
namespace {

std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

// From this process to itself, which the same limits forbid.
int TryCopy() {
  uint64_t from = 1;
  uint64_t to = 0;
  const DirectRows word = {sizeof(from), 0, 0};
  return ReadProcessMemory(getpid(), reinterpret_cast<uint64_t>(&from), word,
                           reinterpret_cast<std::byte*>(&to), word, 0, sizeof(from));
}

void AddCopies(nb::dict* facts) {
  DirectLimit limit;
  limit.yama_scope = YamaScope();
  limit.error = TryCopy();
  const bool refuses = limit.error != 0 || limit.yama_scope >= kYamaOfAdministrators;
  (*facts)["copies_error"] =
      refuses ? "the kernel does not let ranks of a node copy from one another" : "";
  (*facts)["copies_todo"] = refuses ? std::string(RemedyOf(limit)) : "";
}

nb::dict Facts() {
  nb::dict facts;
  facts["cuda"] = "";
  facts["nccl"] = "";
#ifdef SLUICE_PYTHON_CUDA
  facts["cuda"] = "built in";
#endif
#ifdef SLUICE_PYTHON_NCCL
  facts["nccl"] = "built in";
#endif
  const auto ucx = UcxWorker::Create(UcxTcp::kNever);
  facts["ucx"] = ucx.ok() ? (*ucx)->version() : "";
  facts["ucx_error"] = TextOf(ucx.status());
  AddCopies(&facts);
  constexpr size_t kSomeBytes = 4096;
  facts["memfd_error"] = TextOf(SharedSegment::Create(kSomeBytes).status());
  facts["uring_error"] = TextOf(MakeUringFileIo(1).status());
  return facts;
}

}  // namespace

void BindFacts(nb::module_& module) {
  module.def("facts", &Facts,
             "What this build has and this process may do. Texts; an empty one: no, or no error.");
}

}  // namespace sluice::python
