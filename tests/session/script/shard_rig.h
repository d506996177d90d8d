// A runner of shards in a script: over pieces that the script makes up, or those of another work.
//
//   `shards slots=2 spares=0 kept=0 window=72 block=4096 channels=2 messages=2 alignment=1`
//   `attempts=4 head_start=no sends_first=no hedge=no order=no objects=a.bin`
//                          One line. For head_start, sends_first and hedge: an hour of each, or
//                          none. order=yes: the transport works in stream order.
//   `piece read=0+64 stages=FD channel=0 item=0 to=1,2 from=3 fill=nothing drain=copy done=yes`
//                          The next piece. Its fill and its drain: nothing, copy or fail. A drain
//                          may also keep the block. Where `done` is no, its end fails.
//   `over`                 There are no more.
//   `memory here=no`       Nothing may be drained. With here=yes it may again.
//   `slow read 1`          It was begun long ago.
//   `settle parts=no`      Takes back nothing of its own accord.
//   `oldest` / `counters`  What the runner says.
#ifndef SLUICE_TESTS_SESSION_SCRIPT_SHARD_RIG_H_
#define SLUICE_TESTS_SESSION_SCRIPT_SHARD_RIG_H_

#include <memory>

#include "absl/status/status.h"
#include "session/script/piece_work.h"
#include "session/script/script_rig.h"
#include "session/shard/shard_runner.h"

namespace sluice::session_test {

// What all runners of shards share.
class ShardRunnerRig : public ScriptRig {
 protected:
  bool ObeyOwn(deadlock::ScriptWords& words) override;
  void Drive() override;
  void Poison(const absl::Status& status) override;

  virtual ShardRunner* runner() = 0;

 private:
  void Settle(bool parts);

  absl::Status failure_;
  bool over_ = false;  // that it is done, or settled, has been said
};

class ShardRig final : public ShardRunnerRig {
 public:
  // From the words of "shards".
  explicit ShardRig(deadlock::ScriptWords& words);

 private:
  bool ObeyOwn(deadlock::ScriptWords& words) override;
  void End() override;
  ShardRunner* runner() override { return runner_.get(); }

  PieceWork work_;
  std::unique_ptr<Device> owned_device_;
  std::unique_ptr<Source> owned_source_;
  std::unique_ptr<ShardRunner> runner_;
};

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_SCRIPT_SHARD_RIG_H_
