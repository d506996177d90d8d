// Leases that point to memory of the source, which may lose its bytes while they are held.
#ifndef SLUICE_SRC_SESSION_STREAM_LENT_LEASES_H_
#define SLUICE_SRC_SESSION_STREAM_LENT_LEASES_H_

#include <atomic>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "session/stream/delivery.h"

namespace sluice {

// Thread: the consumer's, but for gone() and status().
class LentLeases {
 public:
  // `items` of a device buffer have been taken.
  void Taken(int buffer, absl::Span<const DeliveredItem> items);
  // They are given back. True if bytes are gone from now on, and were not before.
  bool Release(int buffer, absl::Span<const DeliveredItem> items);
  // The same for those that are held.
  bool LookAtHeld(const Delivery& delivery);

  // Some bytes were gone while they were leased. Any thread.
  bool gone() const { return gone_.load(std::memory_order_acquire); }
  // Says whose bytes are gone, in words; only once gone() is true. Any thread.
  const absl::Status& status() const { return status_; }

 private:
  bool Look(absl::Span<const DeliveredItem> items);

  std::vector<int> held_;  // buffers with items that are lent
  std::atomic<bool> gone_{false};
  absl::Status status_;  // written before gone_
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_LENT_LEASES_H_
