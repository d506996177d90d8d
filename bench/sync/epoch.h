// One epoch of a sync: the versions that the same members get, from their session to its end.
#ifndef SLUICE_BENCH_SYNC_EPOCH_H_
#define SLUICE_BENCH_SYNC_EPOCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "sluice/run.h"
#include "sluice/session.h"
#include "sluice/world.h"
#include "sync/catch_up.h"
#include "sync/holding.h"
#include "sync/options.h"
#include "sync/report.h"
#include "sync/weights.h"

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

// Brings a row of numbers of each member to all members, over the session itself. Trainer 0 gathers
// the rows and spreads them, so few messages cross. A call ends nowhere before all members have
// made it.
//
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

// What a member takes from one epoch to the next.
struct SyncState {
  const SyncOptions* options = nullptr;
  const SyncWeights* weights = nullptr;
  World* world = nullptr;
  bool is_trainer = false;
  // Takes a version that has come to all members.
  std::function<void(const SyncVersion&)> tell;
  // Is told when an epoch is ready for versions, of so many trainers and servers.
  std::function<void(int trainers, int servers)> tell_ready;

  Shelf shelf = {};  // before what it is to outlive

  // Of a trainer what it gives, of a server the newest version that it has whole; null: nothing.
  std::shared_ptr<Holding> newest = nullptr;
  std::shared_ptr<Holding> spare = nullptr;  // for a version to come; null: none
  // As SyncRow has them.
  int64_t reached = SyncRow::kNew;
  int64_t time_us = 0;
  int64_t wrong = 0;
  // The last version that has come here. Whether it has come to all, the next exchange says.
  std::optional<SyncVersion> untold = std::nullopt;
  int64_t begun = 0;   // the last version that has begun
  int64_t filled = 0;  // of a trainer: that `newest` holds; 0: none
};

class SyncEpoch {
 public:
  SyncEpoch(SyncState* state, std::unique_ptr<Session> session);

  // Collective. Syncs versions until the last one, or until the epoch is to end for those that have
  // joined. Unavailable and DeadlineExceeded: a member is lost, or silent. FailedPrecondition:
  // members were given different things.
  absl::Status Run();
  // To be called at the end. False: others may still use memory of this epoch, so it must stay as
  // it is. What a trainer gave stays with it.
  bool Close();

 private:
  int64_t last_version() const { return state_->options->versions; }
  bool is_first() const { return session_->rank() == 0; }
  Place OwnPlace() const;

  absl::Status Await(const sluice::Run& run);
  // Between steps of longer work: hears of failures, and goes on with what is under way.
  absl::Status Breathe();
  SyncRow OwnRow(Word word) const;
  absl::StatusOr<std::vector<SyncRow>> Swap(Word word);

  absl::Status Begin();
  absl::Status CheckAlike(absl::Span<const SyncRow> rows) const;
  absl::Status ConnectWeights();
  absl::Status StartCatchUp(absl::Span<const SyncRow> rows);
  // Memory and content for the next version.
  absl::Status Prepare();
  absl::Status AwaitBegin();
  absl::Status PauseFirst();
  Word NextWord();
  absl::Status RunVersion();
  absl::Status Verify(int64_t* wrong);
  bool EndsHere() const;

  // What the rows of all members complete.
  void Tell(absl::Span<const SyncRow> rows);
  void TellCatchUp(absl::Span<const SyncRow> rows);
  // Bytes that left either role, and members.
  SyncVersion Totals(absl::Span<const SyncRow> rows, bool catch_up) const;

  SyncState* const state_;
  std::unique_ptr<Session> session_;
  int trainers_ = 0;
  int servers_ = 0;
  int64_t next_ = 0;        // the version that comes next
  bool is_new_ = false;     // no version has come to any member before
  bool has_ended_ = false;  // before its next version
  std::unique_ptr<Exchange> exchange_;
  Layouts trainer_layouts_;
  std::vector<Layouts> server_layouts_;
  std::unique_ptr<Connection> weights_;
  std::shared_ptr<Holding> target_;  // of a server, for the next version
  const Holding* bound_ = nullptr;   // that weights_ goes to
  std::unique_ptr<CatchUp> catch_up_;
  std::vector<bool> catches_up_;  // by server
  bool is_catch_up_told_ = false;
  bool is_timed_ = false;           // a version is under way
  std::shared_ptr<Holding> given_;  // of a trainer, that others may still read
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SYNC_EPOCH_H_
