// Work whose pieces are drained as soon as they are there, and copied nowhere.
#ifndef SLUICE_TESTS_STREAM_DRAINED_WORK_H_
#define SLUICE_TESTS_STREAM_DRAINED_WORK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "session/shard/shard_runner.h"

namespace sluice::stream_test {

class DrainedWork : public ShardWork {
 public:
  void AddMessages(const ShardPiece&, std::byte*, uint64_t, std::vector<TransportOp>*) override {}
  void Arrived(const ShardPiece&) override {}
  bool MayDrain(const ShardPiece&) override { return true; }
  absl::Status Drain(const ShardPiece&, std::byte*, CopyQueue*) override {
    return absl::OkStatus();
  }
  absl::Status Done(const ShardPiece&, const std::byte*) override { return absl::OkStatus(); }
};

}  // namespace sluice::stream_test

#endif  // SLUICE_TESTS_STREAM_DRAINED_WORK_H_
