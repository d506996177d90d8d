// One member of a sync, from joining the world to its last version: epoch after epoch.
#ifndef SLUICE_BENCH_SYNC_MEMBER_H_
#define SLUICE_BENCH_SYNC_MEMBER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sluice/session.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "sync/epoch.h"
#include "sync/options.h"
#include "sync/report.h"
#include "sync/weights.h"

namespace sluice::bench {

class SyncMember {
 public:
  // All must outlive it.
  SyncMember(const SyncOptions* options, const SyncWeights* weights, SyncReport* report);

  // Joins, and takes part until the last version has come to all members. Errors are World::Join's,
  // NextSession's and SyncEpoch::Run's; a lost member is none.
  absl::Status Run(const WorldOptions& world);

 private:
  // Before the first epoch. Trainer 0 waits until so many servers have come that syncing begins,
  // and then tells the others at the store. Otherwise the first that come would be an epoch by
  // themselves.
  absl::Status WaitForBeginning(const WorldOptions& world);
  absl::Status WaitForServers();
  // Of a server that comes to a sync that has begun: takes its memory now. Once it has joined, the
  // others would wait for it.
  void StockForJoining(const WorldOptions& world);
  bool Leads() const { return state_.is_trainer && report_->rank == 0; }
  absl::StatusOr<bool> HasEnough();
  absl::StatusOr<std::unique_ptr<Session>> NextSessionOfAll();
  // Runs one epoch. False: there are more.
  absl::StatusOr<bool> RunEpoch(std::unique_ptr<Session> session);
  // Names the members of the last epoch that are gone. False: there are none.
  bool NoteLost();
  // The same, for a while: the session may know before the store.
  bool AwaitLost();
  void AddLost(const WorldMember& member);
  // Whether the others have seen the last version come to all members, and have left.
  bool HaveOthersLeft();
  void Tell(const SyncVersion& version);
  // The last version, where no exchange has told that it has come to all.
  void TellLast();
  void TellReady(int trainers, int servers);

  const SyncOptions& options_;
  const SyncWeights& weights_;
  SyncReport* const report_;
  std::unique_ptr<World> world_;
  StoreOptions store_options_;
  std::string begun_key_;  // at the store: trainer 0 has told the others
  SyncState state_;
  std::vector<WorldMember> members_;              // of the last epoch, without those that are lost
  int64_t session_ns_ = 0;                        // when its session was there
  int64_t session_us_ = 0;                        // how long that took
  int64_t epoch_ = 0;                             // its number
  int failures_ = 0;                              // in a row, without a known cause
  std::vector<std::unique_ptr<SyncEpoch>> kept_;  // whose memory others may still use
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SYNC_MEMBER_H_
