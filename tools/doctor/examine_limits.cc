// What the system allows a process, and whether a limit costs anything here.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "doctor/findings.h"
#include "transport/direct/direct_limit.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

constexpr int kSeccompFilter = 2;
constexpr int64_t kShmBytesOfRank = int64_t{4} << 20;  // of Open MPI 4.1
// Files of data shards are closed and opened again where fewer than this may be open.
constexpr int64_t kFilesEnough = 1024;
constexpr int64_t kFilesBesideRanks = 64;  // libraries, pipes, shared memory

std::string SizeOrNone(int64_t bytes) { return bytes < 0 ? "no limit" : BytesName(bytes); }
std::string CountOrNone(int64_t count) { return count < 0 ? "no limit" : absl::StrCat(count); }

size_t LargestNode(const JobFacts& job) {
  size_t most = 0;
  for (const std::vector<int>& ranks : RanksOfNodes(job)) most = std::max(most, ranks.size());
  return most;
}

// Where ranks share a node, wire_node says what comes of it.
Finding ExaminePtrace(const LimitFacts& limits, bool has_pairs) {
  const std::string scope =
      limits.yama_scope < 0 ? "no Yama" : absl::StrCat("Yama's ptrace_scope ", limits.yama_scope);
  Finding finding = {
      "ptrace",
      absl::StrCat(scope, ", ", limits.may_trace ? "with" : "without", " CAP_SYS_PTRACE, ",
                   limits.seccomp == kSeccompFilter ? "a" : "no", " seccomp filter"),
      State::kOk, "", ""};
  const bool refuses = limits.yama_scope > kYamaOfAdministrators ||
                       (limits.yama_scope == kYamaOfAdministrators && !limits.may_trace);
  if (!refuses || has_pairs) return finding;
  DirectLimit limit;
  limit.yama_scope = limits.yama_scope;
  finding.state = State::kSlow;
  absl::StrAppend(&finding.value, ": ranks of a node could not copy from one another");
  finding.todo = std::string(RemedyOf(limit));
  return finding;
}

Finding ExamineMemfd(const WireFacts& wires) {
  if (wires.memfd_error.empty()) {
    return {"memfd", "memory can be shared between ranks", State::kOk, "", ""};
  }
  return {"memfd", absl::StrCat("no memory can be shared: ", wires.memfd_error), State::kMissing,
          "a seccomp filter that allows memfd_create and fcntl seals, and memory to spare", ""};
}

Finding ExamineShm(const JobFacts& job, const LimitFacts& limits) {
  if (!job.uses_mpi) return {"dev_shm", "not needed", State::kOk, "", ""};
  if (limits.shm_bytes < 0) {
    return {"dev_shm", "there is no /dev/shm, which MPI takes for messages within a node",
            State::kMissing, "mount a tmpfs there", ""};
  }
  const std::string size = BytesName(limits.shm_bytes);
  const int64_t wanted = kShmBytesOfRank * static_cast<int64_t>(LargestNode(job));
  if (limits.shm_bytes >= wanted) {
    return {"dev_shm", absl::StrCat(size, " (MPI's; Sluice takes none)"), State::kOk, "", ""};
  }
  return {"dev_shm",
          absl::StrCat(size, ", and Open MPI takes up to ", BytesName(wanted),
                       " for the ranks of a node (Sluice takes none)"),
          State::kSlow, "docker run --shm-size=1g, or mount -o remount,size=1g /dev/shm", ""};
}

Finding ExamineMemlock(const LimitFacts& limits, const WireFacts& wires) {
  const std::string limit = SizeOrNone(limits.memlock_bytes);
  if (limits.memlock_bytes < 0 || wires.rdma_devices == 0) {
    return {"memlock",
            limits.memlock_bytes < 0
                ? limit
                : absl::StrCat(limit, ", which holds up RDMA networks alone: there is none"),
            State::kOk, "", ""};
  }
  return {"memlock", absl::StrCat(limit, " may be locked, and RDMA networks lock what they send"),
          State::kSlow,
          "ulimit -l unlimited where ranks are started (limits.conf; LimitMEMLOCK=infinity for "
          "slurmd; docker run --ulimit memlock=-1)",
          ""};
}

Finding ExamineFiles(const JobFacts& job, const LimitFacts& limits) {
  const std::string value = absl::StrCat(CountOrNone(limits.files), ", up to ",
                                         CountOrNone(limits.files_hard), " if asked for");
  const auto wanted = static_cast<int64_t>(job.ranks.size()) + kFilesBesideRanks;
  if (limits.files >= 0 && limits.files < wanted) {
    return {"open_files", absl::StrCat(value, ": so many ranks want ", wanted, " each"),
            State::kMissing, absl::StrCat("ulimit -n ", std::max(wanted, kFilesEnough)), ""};
  }
  if (limits.files_hard >= 0 && limits.files_hard < kFilesEnough) {
    return {"open_files", absl::StrCat(value, ": files of data shards are closed and opened again"),
            State::kSlow,
            absl::StrCat("ulimit -n ", kFilesEnough, " or more, where ranks are started"), ""};
  }
  return {"open_files", value, State::kOk, "", ""};
}

Finding ExamineUring(const LimitFacts& limits) {
  if (limits.uring_error.empty()) {
    return {"io_uring", "allowed: it reads files of data shards and checkpoints", State::kOk, "",
            ""};
  }
  return {"io_uring",
          absl::StrCat(limits.uring_error,
                       ". Threads read files, at most 16 at once; O_DIRECT is the same"),
          State::kSlow,
          "sysctl kernel.io_uring_disabled=0; in containers a seccomp filter that allows "
          "io_uring_setup, io_uring_enter and io_uring_register",
          ""};
}

}  // namespace

Findings ExamineLimits(const JobFacts& job) {
  Findings all;
  const auto add = [&](const auto& judge) {
    for (Finding& finding : ForRanks(job, judge)) all.push_back(std::move(finding));
  };
  const bool has_pairs = LargestNode(job) > 1;
  add([&](const RankFacts& facts, int) { return ExaminePtrace(facts.limits, has_pairs); });
  add([](const RankFacts& facts, int) { return ExamineMemfd(facts.wires); });
  add([&](const RankFacts& facts, int) { return ExamineShm(job, facts.limits); });
  add([](const RankFacts& facts, int) { return ExamineMemlock(facts.limits, facts.wires); });
  add([&](const RankFacts& facts, int) { return ExamineFiles(job, facts.limits); });
  add([](const RankFacts& facts, int) { return ExamineUring(facts.limits); });
  return all;
}

}  // namespace sluice::bench
