// What a script's pieces ask for.
#include "session/script/piece_work.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "session/script/script_rig.h"
#include "tensor/check.h"

namespace sluice::session_test {
namespace {

// Where pieces are drained to, and where a fill copies to in its block.
constexpr size_t kCellBytes = 4096;
constexpr size_t kFillOffset = 2048;

}  // namespace

PieceWork::PieceWork(OperationsLog* log) : log_(log), cells_(64 * kCellBytes) {
  log_->Name(cells_.data(), cells_.size(), "cell", kCellBytes);
}

void PieceWork::SetBlocks(int first_kept, int kept) {
  for (int block = first_kept; block < first_kept + kept; ++block) kept_.push_back(block);
}

void PieceWork::Add(deadlock::ScriptWords& words) {
  Piece piece;
  const int64_t number = static_cast<int64_t>(pieces_.size());
  const std::vector<std::string> range =
      absl::StrSplit(words.Take("read", std::string("0+0")), '+');
  SLUICE_CHECK(range.size() == 2 && absl::SimpleAtoi(range[0], &piece.piece.read.offset) &&
                   absl::SimpleAtoi(range[1], &piece.piece.read.bytes),
               "a read is spelled offset+bytes");
  piece.piece.id = BucketId({.n = static_cast<uint64_t>(number)});
  piece.piece.channel = words.Take("channel", 0);
  piece.piece.stages = deadlock::ParseStages(words.Take("stages", std::string("FD")));
  piece.piece.bytes = words.Take("bytes", 64);
  piece.piece.index = words.Take("item", 0);
  piece.piece.read.item = piece.piece.index;
  piece.piece.part = number;
  piece.to = RanksFrom(words.Take("to", std::string()));
  piece.from = RanksFrom(words.Take("from", std::string()));
  piece.fill = words.Take("fill", std::string("nothing"));
  piece.drain = words.Take("drain", std::string("copy"));
  piece.ends_well = words.Take("done", std::string("yes")) == "yes";
  pieces_.push_back(std::move(piece));
}

void PieceWork::Tell(const ShardPiece& piece, absl::string_view what) {
  log_->Write(absl::StrCat("piece ", piece.part, " ", what));
}

bool PieceWork::NextPiece(ShardPiece* piece) {
  if (given_ == pieces_.size()) return false;
  *piece = pieces_[given_++].piece;
  return true;
}

absl::Status PieceWork::Fill(const ShardPiece& piece, std::byte* data, CopyQueue* copies) {
  if (Of(piece).fill == "fail") return absl::DataLossError("no such bytes");
  if (Of(piece).fill == "nothing") return absl::OkStatus();
  return copies->AddFlat({data}, {data + kFillOffset}, piece.bytes);
}

void PieceWork::AddMessages(const ShardPiece& piece, std::byte* data, uint64_t cookie,
                            std::vector<TransportOp>* messages) {
  const auto add = [&](TransportOp::Kind kind, int peer) {
    TransportOp op;
    op.kind = kind;
    op.peer = peer;
    op.tag = piece.channel;
    op.data = data;
    op.bytes = static_cast<size_t>(piece.bytes);
    op.cookie = cookie;
    messages->push_back(op);
  };
  for (const int peer : Of(piece).from) add(TransportOp::Kind::kReceive, peer);
  for (const int peer : Of(piece).to) add(TransportOp::Kind::kSend, peer);
}

int PieceWork::KeepBlock(const ShardPiece& piece, std::byte* data, std::byte*, int block) {
  if (Of(piece).drain != "keep") return kNoBlock;
  SLUICE_CHECK(!kept_.empty(), "a script keeps more blocks than there are");
  const int given = kept_.front();
  kept_.erase(kept_.begin());
  kept_.push_back(block);
  Tell(piece, absl::StrCat("keeps ", log_->Place(data, static_cast<size_t>(piece.bytes)),
                           ", gives block ", given));
  return given;
}

absl::Status PieceWork::Drain(const ShardPiece& piece, std::byte* data, CopyQueue* copies) {
  if (Of(piece).drain == "fail") return absl::DataLossError("bytes that nobody can use");
  if (Of(piece).drain == "nothing") return absl::OkStatus();
  std::byte* const cell = cells_.data() + static_cast<size_t>(piece.part) % 64 * kCellBytes;
  return copies->AddFlat({data}, {cell}, piece.bytes);
}

ErrorText PieceWork::MembersOf(const ShardPiece& piece) {
  std::vector<int> peers = Of(piece).to;
  peers.insert(peers.end(), Of(piece).from.begin(), Of(piece).from.end());
  return peers.empty() ? ErrorText() : ErrorText("with ranks ", absl::StrJoin(peers, ", "));
}

absl::Status PieceWork::Done(const ShardPiece& piece, const std::byte*) {
  Tell(piece, "is done");
  return Of(piece).ends_well ? absl::OkStatus() : absl::DataLossError("an end that fails");
}

}  // namespace sluice::session_test
