// Which ranks of a fabric have ended without a farewell, as their node's processes see it.
#ifndef SLUICE_SRC_WORLD_RANK_ENDS_H_
#define SLUICE_SRC_WORLD_RANK_ENDS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "transport/process_name.h"
#include "transport/rank_processes.h"
#include "transport/tcp/tcp_links.h"

namespace sluice {

// Links notice the end of a process too, but not while a child of the process holds its
// connections. A rank that has done its part may end before the others. It says farewell to those
// that it is connected to, so only such ranks are looked at: those one message away in a gather.
// A rank that notices an end tells all others. Thread: the fabric's.
class RankEnds {
 public:
  // `names` and `nodes` of all ranks. The gather that every fabric begins with is over.
  RankEnds(std::shared_ptr<TcpLinks> links, std::vector<ProcessName> names,
           absl::Span<const int> nodes);

  // Unavailable names the ranks. Costs little.
  absl::Status Check();
  // As RankProcesses has it.
  std::string Limit() const { return processes_.Limit(); }

 private:
  const std::shared_ptr<TcpLinks> links_;
  const std::vector<ProcessName> names_;
  RankProcesses processes_;
  std::vector<int> looked_at_;
};

// Whether a gather's messages go from one of the ranks to the other.
bool IsOneMessageAway(int a, int b, int size);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_RANK_ENDS_H_
