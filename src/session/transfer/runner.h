// Carries out runs: feeds the engine, and says what the stages of buckets do, which its carrier has
// done by device and transport. Makes no decisions of its own.
#ifndef SLUICE_SRC_SESSION_TRANSFER_RUNNER_H_
#define SLUICE_SRC_SESSION_TRANSFER_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "engine/engine.h"
#include "session/base/carrier.h"
#include "session/peers/bucket_report.h"
#include "session/transfer/bucket_work.h"
#include "session/transfer/compiled_transfer.h"
#include "session/transfer/group_line.h"
#include "session/transfer/transfer_run.h"
#include "sluice/session.h"
#include "sluice/transport.h"
#include "tensor/error_text.h"
#include "trace/joined_log.h"
#include "trace/recorder.h"

namespace sluice {

class Runner {
 public:
  // The recorder of stages, and the log that numbers names of tensors; or null. Both must outlive
  // the runner. `device_track`: where to record there when the device was busy. The track after it
  // is for the device's second row.
  struct Trace {
    TraceRecorder* recorder = nullptr;
    JoinedTraceLog* log = nullptr;
    int device_track = -1;
  };
  // `slots`: the budget, 0 for no limit.
  Runner(std::unique_ptr<Device> device, std::unique_ptr<Transport> transport, int64_t slots,
         int max_in_flight, const Trace& trace);
  ~Runner();

  // The rules of the transport and the device for tensors' memory; `accelerator` is the device's,
  // or null.
  MemoryRules MemoryRulesFor(const Accelerator* accelerator) const;

  // Makes room for runs of `transfer`, beside those of the transfers before: the engine's tables,
  // staging, transport operations. ResourceExhausted, with the breakdown, if there is none. Not
  // while a run is in flight.
  absl::Status Prepare(CompiledTransfer* transfer);
  // Staging that Prepare has replaced may be open on other ranks. To be called on all ranks, in
  // this order: the first before they meet, the second afterwards. Not while a run is in flight.
  void CloseImports() { carrier_.transport()->CloseImports(); }
  void FreeOutgrown() { outgrown_ = DeviceMemory(); }
  // Takes back what Prepare has counted for it. Staging stays. Not while a run is in flight.
  void Forget(CompiledTransfer* transfer);

  // Takes in a run of a prepared transfer, above all earlier ones, which stays until it is removed.
  // It is carried on once it is released.
  void Add(TransferRun* run);
  // Its copies come after what its stream holds now.
  absl::Status BeginInStream(TransferRun* run);
  // True once what its stream gets comes after all of the run, which is done. Call it again if not.
  absl::StatusOr<bool> EndInStream(TransferRun* run);
  // True while the device may wait for a stream of a caller's, which has not come to a run's
  // beginning. Such a time is the caller's.
  bool IsHeldByCaller() const;
  // Removes a run that is done, or was never released.
  void Remove(TransferRun* run);

  // Carries the runs on as far as they go without waiting; true if anything moved. An error is the
  // first failure; nothing new is started after it.
  absl::StatusOr<bool> Poll();

  // The two halves of cancelling: Engine::Freeze and Engine::Thaw.
  BucketId Freeze(TransferRun* run);
  void Cut(TransferRun* run, const BucketId& last);

  // Fails all runs from outside. A stall is described before, not after.
  void Poison(const absl::Status& status);
  // After a failure: takes back what is under way, and parts from the other ranks; true once that
  // is over. Call it again if not.
  bool Settle();
  // Whether anything is under way that uses memory of the runs.
  bool has_operations() const { return carrier_.has_operations(); }
  // True while the device works on what has ended for the runs.
  bool busy() const { return carrier_.outstanding_copies() > 0; }

  // Says in words what the runs wait for.
  ErrorText DescribeStall() const;
  // The smallest unfinished bucket that was fed, as a question to its other members.
  bool OldestBucket(BucketQuestion* question, std::vector<int>* members) const;
  // Reports how far this rank is with a bucket of `run`.
  BucketReport Report(const TransferRun& run, const BucketId& id) const;

  SessionCounters counters() const;
  void ResetCounters();

 private:
  using Lane = std::vector<TransferRun*>;  // runs that are not fed to their end, in order

  // A bucket that has its slot.
  struct Held {
    BucketWork work;
    int64_t begin_ns = 0;  // of its stage, while there is a trace
    uint64_t range = 0;    // of its stage, for profilers
  };

  // Functions that the carrier calls of its handler.
  friend class Carrier;
  absl::StatusOr<bool> PollOthers();
  absl::StatusOr<Carrier::Fed> Feed();
  Carrier::Admission Admit(size_t slot, const Command& command);
  static bool Copies(size_t, Stage stage) { return stage != Stage::kMoving; }
  absl::Status Begin(size_t slot, Stage stage);
  absl::Status Continue(size_t slot, Stage stage);
  void StageOver(size_t slot, Stage stage, bool last);
  absl::Status BucketOver(size_t slot);
  absl::Status Flush() { return in_groups_ ? FlushHop() : carrier_.Send(); }

  void FeedLane(int lane);
  void AnnounceFirst(int lane);
  Lane& LaneOf(const TransferRun& run) { return lanes_[static_cast<size_t>(run.lane())]; }
  absl::Status AdvanceChannel(size_t slot);
  absl::Status AdvanceBucket(size_t slot, Stage stage, int rounds_max);
  absl::Status FlushHop();

  void TraceBegin(Held* held, Stage stage);
  void TraceEnd(size_t slot, Stage stage);
  void TraceDevice();
  void TraceNames(CompiledTransfer* transfer);

  // The sizes of tables.
  struct Needs {
    int64_t slots = 1;
    int64_t slot_bytes = 64;
    int operations = 1;  // of a bucket
    int fold_sources = 0;
    int lanes = 1;
  };
  Needs NeedsOfAll() const;
  absl::Status MakeRoom(const Needs& needs);
  absl::StatusOr<DeviceMemory> AllocateStaging(size_t bytes);
  absl::Status GrowStaging(int64_t slots, int64_t slot_bytes);
  void CountIn(CompiledTransfer* transfer);
  void CountOut(CompiledTransfer* transfer);
  void KeepTime();

  const int64_t slots_;
  const int max_in_flight_;
  // Work of the device may still be in staging, and may wait for operations that the transport
  // gives up. So the carrier, which has the transport, ends first, the device next.
  DeviceMemory staging_;
  DeviceMemory outgrown_;                             // staging before
  std::vector<std::unique_ptr<Fence>> caller_marks_;  // where runs that have ended began
  const std::unique_ptr<Device> device_;
  Carrier carrier_;
  const Trace trace_;
  const bool in_groups_;

  // The needs of all transfers that are there, together. Channels are known by their content and
  // priority class, whichever transfer they are of.
  struct SharedChannel {
    int number = 0;
    int transfers = 0;      // that have it
    int64_t in_flight = 0;  // the most buckets that one run of each of them can have in flight
  };
  std::vector<const CompiledTransfer*> transfers_;
  std::map<std::vector<int64_t>, SharedChannel> channels_;
  std::vector<std::vector<int>> free_channels_;  // numbers of each lane that no transfer uses
  int channel_numbers_ = 0;                      // in use or free
  int64_t slot_bytes_ = 64;
  int lane_count_ = 1;

  std::vector<Held> held_;  // by slot
  GroupLine groups_;
  std::vector<TransportOp> hop_;  // scratch for FlushHop

  std::vector<TransferRun*> runs_;
  std::vector<Lane> lanes_;

  int64_t last_time_ns_ = 0;
  int64_t running_ns_ = 0;
  int64_t budget_wait_ns_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_RUNNER_H_
