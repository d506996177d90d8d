// The state that ranks of a loopback fabric share in one process: gathers and posts through memory,
// and the messages of each of its transports.
#ifndef SLUICE_SRC_TRANSPORT_LOOPBACK_LOOPBACK_CONTROL_H_
#define SLUICE_SRC_TRANSPORT_LOOPBACK_LOOPBACK_CONTROL_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "transport/loopback/loopback_messages.h"

namespace sluice {

// Shared by the fabrics of all ranks. Threads: any; one lock.
class LoopbackControl {
 public:
  using Record = std::vector<std::byte>;

  LoopbackControl(int size, LoopbackSends sends)
      : sends_(sends), inboxes_(static_cast<size_t>(size)) {}

  // Adds the record of `rank` to the gather number `index`.
  void Bring(int rank, size_t index, absl::Span<const std::byte> record);
  // The records of gather `index`, in rank order; empty for those that have not come. False while
  // one is missing; once true, counts as taken by the caller.
  bool TakeAll(size_t index, std::vector<std::optional<Record>>* records);

  // As Fabric's. A post counts as pending until its receiver has polled it.
  absl::Status Post(int src, int dst, absl::Span<const std::byte> record);
  bool TakePost(int rank, int* src, Record* record);

  // Those of every rank's transport number `index`.
  std::shared_ptr<LoopbackMessages> Messages(size_t index);

 private:
  struct Gather {
    std::vector<std::optional<Record>> records;
    size_t taken = 0;
  };
  struct Posted {
    int src;
    Record record;
  };
  size_t size() const { return inboxes_.size(); }

  const LoopbackSends sends_;
  std::mutex mutex_;
  size_t first_gather_ = 0;     // number of gathers_.front()
  std::deque<Gather> gathers_;  // those that not all ranks have taken
  std::vector<std::deque<Posted>> inboxes_;
  std::vector<std::shared_ptr<LoopbackMessages>> messages_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_LOOPBACK_LOOPBACK_CONTROL_H_
