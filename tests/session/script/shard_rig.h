// A runner of shards in a script: over pieces that the script makes up, or those of another work.
//
//   `shards slots=2 spares=0 kept=0 channels=2 alignment=1 attempts=4 head_start=no`
//   `sends_first=no hedge=no order=no room=no`
//                          One line. For head_start and sends_first: an hour of each, a second, or
//                          none. order=yes: the transport works in stream order. room=yes: tells
//                          what room the runner takes.
//   `piece read=0+64 stages=FD channel=0 item=0 to=1,2 from=3 fill=nothing drain=copy done=yes`
//                          The next piece. Its fill and its drain: nothing, copy or fail. A drain
//                          may also keep the block. Where `done` is no, its end fails.
//   `over`                 There are no more.
//   `memory here=no`       Nothing may be drained. With here=yes it may again.
//   `slow read 1`          It was begun long ago.
//   `answered 16`          So many pieces, which are over at once. Tells nothing of them.
//   `limit_passes`         So does the limit of sends_first, when the runner asks for a piece next.
//   `oldest` / `counters` / `due`
//                          What the runner says.
#ifndef SLUICE_TESTS_SESSION_SCRIPT_SHARD_RIG_H_
#define SLUICE_TESTS_SESSION_SCRIPT_SHARD_RIG_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "deadlock/script_words.h"
#include "fakes/operations_log.h"
#include "session/checkpoint/checkpoint_run.h"
#include "session/script/script_rig.h"
#include "session/shard/shard_runner.h"

namespace sluice::session_test {

// Pieces of shards that a script makes up, and writes to the log what becomes of them.
class PieceWork final : public ShardWork {
 public:
  // `log` must outlive the work. Blocks from `first_kept` on are the work's.
  explicit PieceWork(OperationsLog* log);
  void SetBlocks(int first_kept, int kept);

  // From the words of "piece".
  void Add(deadlock::ScriptWords& words);
  void AddNoMore() { over_ = true; }
  void set_has_memory(bool has) { has_memory_ = has; }
  // The next piece is given after that.
  void WaitUntil(int64_t time_ns) { wait_until_ns_ = time_ns; }

  bool NextPiece(ShardPiece* piece) override;
  bool over() const override { return over_ && given_ == pieces_.size(); }
  absl::Status Fill(const ShardPiece& piece, std::byte* data, CopyQueue* copies) override;
  void AddMessages(const ShardPiece& piece, std::byte* data, uint64_t cookie,
                   std::vector<TransportOp>* messages) override;
  void Arrived(const ShardPiece& piece) override { Tell(piece, "is here"); }
  bool MayDrain(const ShardPiece&) override { return has_memory_; }
  int KeepBlock(const ShardPiece& piece, std::byte* data, std::byte* memory, int block) override;
  absl::Status Drain(const ShardPiece& piece, std::byte* data, CopyQueue* copies) override;
  ErrorText MembersOf(const ShardPiece& piece) override;
  absl::Status Done(const ShardPiece& piece, const std::byte* data) override;

 private:
  struct Piece {
    ShardPiece piece;
    std::vector<int> to;
    std::vector<int> from;
    std::string fill;
    std::string drain;
    bool ends_well = true;
  };
  const Piece& Of(const ShardPiece& piece) const {
    return pieces_[static_cast<size_t>(piece.part)];
  }
  void Tell(const ShardPiece& piece, absl::string_view what);

  OperationsLog* const log_;
  std::vector<Piece> pieces_;  // by `part`
  size_t given_ = 0;
  bool over_ = false;
  bool has_memory_ = true;
  int64_t wait_until_ns_ = 0;
  std::vector<int> kept_;  // blocks to give
  std::vector<std::byte> cells_;
};

// What all runners of shards share.
class ShardRunnerRig : public ScriptRig {
 protected:
  bool ObeyOwn(deadlock::ScriptWords& words) override;
  void Drive() override;
  void Poison(const absl::Status& status) override;

  virtual ShardRunner* runner() = 0;

 private:
  void Settle();
  void TellDue();

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
  void AddAnswered(int64_t pieces);
  ShardRunner* runner() override { return runner_.get(); }

  PieceWork work_;
  std::unique_ptr<Device> owned_device_;
  std::unique_ptr<Source> owned_source_;
  std::unique_ptr<ShardRunner> runner_;
};

// One rank's part of a load or a save in a script, once its catalog is known.
//
//   `checkpoint rank=0 flow=load piece=64 budget=65536 slots=0 attempts=4 alignment=1 files=a.st`
//   `room=no`
//            The machine, one line.
//   `tensor a shape=16 type=f32 file_type=f32 layout=0,1:S(0) file=0 begin=8`
//            One tensor of its catalog.
//   `go`     Plans, and begins.
//   `stats`  What has been done.
//
// A save must have no file rank here.

class CheckpointRig final : public ShardRunnerRig {
 public:
  // From the words of "checkpoint".
  explicit CheckpointRig(deadlock::ScriptWords& words);

 private:
  bool ObeyOwn(deadlock::ScriptWords& words) override;
  void Drive() override;
  void End() override;
  ShardRunner* runner() override { return run_->runner(); }
  void AddTensor(deadlock::ScriptWords& words);
  void Go();
  void TellStats();

  CheckpointRunParts parts_;
  CheckpointOptions options_;
  bool tells_room_ = false;
  std::vector<CheckpointTensor> tensors_;
  std::list<std::vector<std::byte>> memory_;
  std::unique_ptr<CheckpointRun> run_;
};

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_SCRIPT_SHARD_RIG_H_
