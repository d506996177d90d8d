// Pieces of shards that a script makes up, and writes to the log what becomes of them.
#ifndef SLUICE_TESTS_SESSION_SCRIPT_PIECE_WORK_H_
#define SLUICE_TESTS_SESSION_SCRIPT_PIECE_WORK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "deadlock/script_words.h"
#include "fakes/operations_log.h"
#include "session/shard/shard_runner.h"

namespace sluice::session_test {

class PieceWork final : public ShardWork {
 public:
  // `log` must outlive the work. Blocks from `first_kept` on are the work's.
  explicit PieceWork(OperationsLog* log);
  void SetBlocks(int first_kept, int kept);

  // From the words of "piece".
  void Add(deadlock::ScriptWords& words);
  void AddNoMore() { over_ = true; }
  void set_has_memory(bool has) { has_memory_ = has; }

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
  std::vector<int> kept_;  // blocks to give
  std::vector<std::byte> cells_;
};

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_SCRIPT_PIECE_WORK_H_
