// What the kernel says of CPUs, limits and memory.
#include "doctor/look_system.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "device/cache_share.h"
#include "device/numa.h"
#include "sluice/world.h"
#include "storage/file/file_io.h"
#include "transport/direct/direct_limit.h"
#include "transport/direct/process_memory.h"
#include "transport/direct/shared_segment.h"
#include "transport/environment_variable.h"
#include "transport/ucx/ucx_networks.h"
#include "world/store/socket_owner.h"

namespace sluice::bench {
namespace {

constexpr size_t kCpusMax = 1 << 14;
constexpr uint64_t kCapSysPtrace = 19;

// That this process may run on, ascending.
std::vector<int> OwnCpus() {
  cpu_set_t* const set = CPU_ALLOC(kCpusMax);
  const size_t bytes = CPU_ALLOC_SIZE(kCpusMax);
  CPU_ZERO_S(bytes, set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, bytes, set) == 0) {
    for (size_t cpu = 0; cpu < kCpusMax; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(static_cast<int>(cpu));
    }
  }
  CPU_FREE(set);
  return cpus;
}

std::string FirstLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// What follows `name` in a file of "name: value" lines.
std::string FieldOf(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, name)) return line.substr(name.size());
  }
  return "";
}

// The least that this control group or one above it allows, of cgroup version 2; 0: no limit.
double CpuQuota() {
  std::filesystem::path group = "/sys/fs/cgroup" + FieldOf("/proc/self/cgroup", "0::");
  double least = 0;
  while (group.string().size() >= std::string("/sys/fs/cgroup").size()) {
    const std::vector<std::string> words = absl::StrSplit(FirstLine(group / "cpu.max"), ' ');
    double part = 0;
    double period = 0;
    if (words.size() == 2 && absl::SimpleAtod(words[0], &part) &&
        absl::SimpleAtod(words[1], &period) && period > 0) {
      least = least > 0 ? std::min(least, part / period) : part / period;
    }
    group = group.parent_path();
  }
  return least;
}

// By trial, with a page that nobody uses.
bool CanPlaceNear() {
  const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const page =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  const bool is_placed = PlaceNearProcess(static_cast<std::byte*>(page), bytes);
  munmap(page, bytes);
  return is_placed;
}

int64_t LimitOr(rlim_t limit) {
  return limit == RLIM_INFINITY ? int64_t{-1} : static_cast<int64_t>(limit);
}

bool MayTrace() {
  uint64_t capabilities = 0;
  std::string text = FieldOf("/proc/self/status", "CapEff:\t");
  return absl::SimpleHexAtoi(text, &capabilities) && (capabilities >> kCapSysPtrace & 1) != 0;
}

}  // namespace

int CountEntries(const std::string& directory, const std::string& prefix) {
  std::error_code error;
  int count = 0;
  for (std::filesystem::directory_iterator each(directory, error), end; !error && each != end;
       each.increment(error)) {
    count += absl::StartsWith(each->path().filename().string(), prefix) ? 1 : 0;
  }
  return count;
}

CpuFacts LookAtCpus() {
  CpuFacts facts;
  facts.cpus = OwnCpus();
  facts.online = static_cast<int>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  facts.quota = CpuQuota();
  facts.numa_nodes = NumaNodes();
  facts.is_placed = CanPlaceNear();
  facts.cache_bytes = CacheShareBytes();
  facts.knows_cache = CacheShareIn("/sys/devices/system/cpu/cpu0/cache") > 0;
  return facts;
}

LimitFacts LookAtLimits() {
  LimitFacts facts;
  facts.yama_scope = YamaScope();
  facts.may_trace = MayTrace();
  if (!absl::SimpleAtoi(FieldOf("/proc/self/status", "Seccomp:\t"), &facts.seccomp)) {
    facts.seccomp = 0;
  }
  struct statvfs shm = {};
  if (statvfs("/dev/shm", &shm) == 0) {
    facts.shm_bytes = static_cast<int64_t>(shm.f_blocks) * static_cast<int64_t>(shm.f_frsize);
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) facts.memlock_bytes = LimitOr(limit.rlim_cur);
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    facts.files = LimitOr(limit.rlim_cur);
    facts.files_hard = LimitOr(limit.rlim_max);
  }
  facts.uring_error = std::string(MakeUringFileIo(1).status().message());
  return facts;
}

WireFacts LookAtOwnWires() {
  WireFacts facts;
  uint64_t from = 1;
  uint64_t to = 0;
  const DirectRows word = {sizeof(from), 0, 0};
  facts.own_copy_error =
      ReadProcessMemory(getpid(), reinterpret_cast<uint64_t>(&from), word,
                        reinterpret_cast<std::byte*>(&to), word, 0, sizeof(from));
  constexpr size_t kSomeBytes = 4096;
  facts.memfd_error = std::string(SharedSegment::Create(kSomeBytes).status().message());
  facts.rdma_devices = CountEntries("/sys/class/infiniband", "");
  return facts;
}

PortFacts LookAtPorts() {
  PortFacts facts;
  for (const SocketAddress& at : OwnListeners()) {
    if (at.IsLoopback()) {
      facts.loopback.push_back(at.port());
    } else {
      facts.others.push_back(at.Text());
    }
  }
  std::sort(facts.loopback.begin(), facts.loopback.end());
  std::sort(facts.others.begin(), facts.others.end());
  const absl::StatusOr<WorldOptions> world = WorldOptionsFromEnvironment();
  if (!world.ok()) return facts;
  facts.has_token = !world->token.empty() || !world->token_file.empty();
  const auto networks =
      ChooseUcxNetworks(EnvironmentVariable("UCX_TLS"), EnvironmentVariable("UCX_NET_DEVICES"),
                        world->wires == "ucx" ? UcxTcp::kIfNamed : UcxTcp::kNever);
  // Without devices that the user names it is loopback's alone.
  const std::string devices = EnvironmentVariable("UCX_NET_DEVICES");
  facts.asks_ucx_tcp = networks.ok() && networks->tcp && !devices.empty() && devices != "lo";
  return facts;
}

}  // namespace sluice::bench
