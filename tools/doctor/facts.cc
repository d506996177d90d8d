// Facts as JSON, on their way between ranks.
#include "doctor/facts.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace sluice::bench {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MpiFacts, has_all_threads, thread_level, lacks, components, btl,
                                   single_copy, yield_when_idle, oversubscribed, launched)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WireFacts, direct_error, refused, own_copy_error, memfd_error,
                                   rdma_devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CpuFacts, cpus, online, quota, numa_nodes, is_placed,
                                   cache_bytes, knows_cache)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuFacts, built_in, has_cuda, has_nccl, visible, nvidia_devices,
                                   device, error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LimitFacts, yama_scope, may_trace, seccomp, shm_bytes,
                                   memlock_bytes, files, files_hard, uring_error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PortFacts, loopback, others, has_token, asks_ucx_tcp)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFacts, host, machine, pid_namespace, mpi, wires, cpu, gpu,
                                   limits, ports)

std::string ToText(const RankFacts& facts) {
  const nlohmann::json json = facts;
  // Names of hosts need not be UTF-8.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<RankFacts> RankFactsOf(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<RankFacts>();
  } catch (const nlohmann::json::exception& error) {
    return absl::InternalError(absl::StrCat("a rank's facts cannot be read: ", error.what()));
  }
}

}  // namespace sluice::bench
