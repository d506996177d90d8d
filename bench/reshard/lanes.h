// What the sessions of one run differ in, where knobs are compared with each other.
#ifndef SLUICE_BENCH_RESHARD_LANES_H_
#define SLUICE_BENCH_RESHARD_LANES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/gpu.h"
#include "job/job.h"
#include "reshard/options.h"
#include "sluice/session.h"

namespace sluice::bench {

// Each has staging of its own.
inline constexpr size_t kLanesMax = 64;
// Entries of one list.
inline constexpr size_t kComparedMax = 8;

// A session, and what tells it from others where several are compared.
struct Lane {
  std::unique_ptr<Session> session;  // null until OpenLanes
  SessionOptions options;            // until then without devices and traces
  std::string plan;                  // its name
  std::string suffix;  // of the case's id: "/budget-8/mpi/naive/no-coalesce/bucket-auto" and so on
};

// What the case's id ends with where joining is compared.
const char* CoalesceSuffix(bool coalesce);

// One for each combination of what the --compare flags list, or the one that the other flags
// describe. A budget of 0 buckets lifts the limit in bytes as well where budgets are compared.
// `options` are as ParseTexts has left them.
std::vector<Lane> LanesOf(const Options& options);

// The same with their sessions, the first one on `first_fabric`. Collective; errors as
// Session::Create.
absl::StatusOr<std::vector<Lane>> OpenLanes(const Options& options, const Gpu& gpu, Job* job,
                                            std::unique_ptr<Fabric> first_fabric);

// OK unless that is more than kLanesMax, or a list has more than kComparedMax entries.
absl::Status CheckLanes(const Options& options);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_LANES_H_
