// Carries out runs: feeds the engine, does what it commands with device and transport, and tells it
// what has finished. Makes no decisions of its own.
#ifndef SLUICE_SRC_SESSION_RUNNER_H_
#define SLUICE_SRC_SESSION_RUNNER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/device.h"
#include "engine/engine.h"
#include "session/bucket_report.h"
#include "session/compiled_transfer.h"
#include "sluice/session.h"
#include "transport/transport.h"

namespace sluice {

class Runner {
 public:
  // `slots`: the budget, 0 for no limit.
  Runner(std::unique_ptr<Device> device, std::unique_ptr<Transport> transport, int64_t slots,
         int max_in_flight);
  ~Runner();

  // Makes room for runs of `transfer`: the engine's tables, staging, transport operations.
  // ResourceExhausted, with the breakdown, if there is none. Not while a run is in flight.
  absl::Status Prepare(const CompiledTransfer& transfer);

  // Begins a run of a prepared transfer with the views bound to it; `run` is above all earlier
  // ones.
  void Begin(const CompiledTransfer* transfer, uint64_t run);

  // Carries the run on as far as it goes without waiting; true if anything moved. An error is the
  // first failure; nothing new is started after it.
  absl::StatusOr<bool> Poll();

  bool in_flight() const { return transfer_ != nullptr; }

  // Fails the run from outside. A stall is described before, not after.
  void Poison(const absl::Status& status);
  // After a failure: takes back what is under way; true once nothing is any more.
  bool Settle();
  // The question about the smallest unfinished bucket and, in `members`, who takes part in it;
  // false if there is none.
  bool AskAboutOldest(BucketQuestion* question, std::vector<int>* members) const;
  // Where this rank stands with a bucket of the run in flight.
  BucketReport Report(const BucketQuestion& question) const;
  // What the run waits for, in words.
  std::string DescribeStall() const;

  SessionCounters counters() const;
  void ResetCounters();

 private:
  absl::StatusOr<bool> Step();
  absl::StatusOr<bool> PollTransport();
  absl::StatusOr<bool> PollDevice();
  void Feed();
  Submission SubmissionOf(size_t index);

  absl::Status CarryOut(const Command& command);
  void QueueMove(const Command& command);
  absl::Status FlushMoves();
  absl::Status CopyChunks(const Command& command);
  absl::Status StartBatch(size_t count, uint64_t cookie);
  void EndCopy(uint64_t cookie);

  const Bucket& BucketAt(size_t index) const { return transfer_->plan().buckets[index]; }
  std::byte* ContiguousAddress(const Bucket& bucket) const;
  std::byte* SlotAddress(int slot) const;
  StridedCopy CopyOf(const Bucket& bucket, const Chunk& chunk, std::byte* staging) const;
  absl::Status Explain(const absl::Status& status, uint64_t cookie) const;
  void KeepTime();

  const int64_t slots_;
  const int max_in_flight_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Transport> transport_;

  std::optional<Engine> engine_;
  DeviceMemory staging_;
  int64_t slot_bytes_ = 0;
  std::vector<TransportOp> moves_;  // commanded, not yet started
  std::vector<TransportEvent> events_;
  std::vector<uint64_t> copied_;
  std::array<StridedCopy, 32> batch_;
  int device_outstanding_ = 0;
  // Per bucket of the plan: its memory where it needs no staging; copy batches under way.
  std::vector<std::byte*> contiguous_;
  std::vector<int32_t> batches_;

  const CompiledTransfer* transfer_ = nullptr;
  uint64_t run_ = 0;
  size_t next_bucket_ = 0;  // the first that is not submitted

  int64_t last_time_ns_ = 0;
  int64_t running_ns_ = 0;
  int64_t budget_wait_ns_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_RUNNER_H_
