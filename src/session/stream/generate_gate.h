// Decides how far ahead of its trainer a generator may run, by the order that the generator keeps.
#ifndef SLUICE_SRC_SESSION_STREAM_GENERATE_GATE_H_
#define SLUICE_SRC_SESSION_STREAM_GENERATE_GATE_H_

#include <algorithm>
#include <cstdint>

#include "sluice/stream.h"

namespace sluice {

// Batches and updates count from 0, on each rank by itself. A rank that makes an item for others
// goes by its own.
class GenerateGate {
 public:
  explicit GenerateGate(const StreamSource& source)
      : order_(source.generate_order), ahead_(source.generate_ahead) {}

  // Next has returned a batch.
  void Taken() { ++taken_; }
  // An update without a batch of its own is none.
  void UpdateEnded() { updates_ = std::min(updates_ + 1, taken_); }

  int64_t updates() const { return updates_; }
  // Batches below this one may begin. A consumer that waits in Next for a batch, with all updates
  // before it ended, finds the batch among them.
  int64_t batches() const {
    switch (order_) {
      case GenerateOrder::kAfterUpdate:
        return updates_ + 1;
      case GenerateOrder::kOneAhead:
        return updates_ + 2;
      case GenerateOrder::kFree:
        break;
    }
    return taken_ > INT64_MAX - ahead_ ? INT64_MAX : taken_ + ahead_;
  }

 private:
  const GenerateOrder order_;
  const int64_t ahead_;
  int64_t taken_ = 0;
  int64_t updates_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_GENERATE_GATE_H_
