// A row of numbers of each member, brought to all members over the session itself.
//
// Trainer 0 gathers the rows and spreads them, so few messages cross. A call ends nowhere before
// all members have made it.
#ifndef SLUICE_BENCH_SYNC_EXCHANGE_H_
#define SLUICE_BENCH_SYNC_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/run.h"
#include "sluice/session.h"

namespace sluice::bench {

// What trainer 0 tells all others with its row.
enum class Word : int64_t {
  kWait,   // it is there, and no version begins yet
  kBegin,  // the next version begins now
  kEnd,    // the epoch is over
};

struct SyncRow {
  static constexpr int64_t kNew = -1;

  int64_t alike = 0;       // SyncWeights::hash
  int64_t word = 0;        // of trainer 0
  int64_t reached = kNew;  // the last version that has come to its end here; kNew: none yet
  int64_t time_us = 0;     // what that took here
  int64_t wrong = 0;       // elements of it
  // Of servers: the version that they hold whole, and its Place.
  int64_t held_version = 0;
  int64_t held_servers = 0;
  int64_t held_index = 0;
  // Of this epoch's transfer of a version.
  int64_t sent_bytes = 0;
  int64_t received_bytes = 0;
  // Of this epoch's transfer to those that catch up.
  int64_t catch_up_sent_bytes = 0;
  int64_t catch_up_us = 0;  // 0: it has not ended here, or brings nothing here
  int64_t catch_up_wrong = 0;
};
static_assert(std::is_trivially_copyable_v<SyncRow>);

// Thread: the session's.
class Exchange {
 public:
  // Waits for a run. An error ends the call.
  using Await = absl::FunctionRef<absl::Status(const Run&)>;

  // Collective. `session` must outlive it. Errors are Session::Compile's.
  static absl::StatusOr<std::unique_ptr<Exchange>> Create(Session* session);

  // Collective. The rows of all ranks, in their order.
  absl::StatusOr<std::vector<SyncRow>> Swap(const SyncRow& own, Await await);

 private:
  explicit Exchange(Session* session) : session_(session) {}

  Session* const session_;
  // What runs read and write.
  std::vector<SyncRow> own_;
  std::vector<SyncRow> gathered_;  // on rank 0
  std::vector<SyncRow> all_;
  Transfer* gather_ = nullptr;
  Transfer* spread_ = nullptr;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SYNC_EXCHANGE_H_
