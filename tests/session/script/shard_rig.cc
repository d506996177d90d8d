// What a stream does with its runner, told by a script.
#include "session/script/shard_rig.h"

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "session/script/script_rig.h"
#include "tensor/check.h"

namespace sluice::session_test {
namespace {

using deadlock::ScriptWords;

// Longer than any test takes.
constexpr int64_t kHourNs = 3'600'000'000'000;

int64_t TakeLimit(ScriptWords& words, const std::string& key) {
  const std::string limit = words.Take(key, std::string("no"));
  return limit == "hour" ? kHourNs : limit == "second" ? 1'000'000'000 : 0;
}

}  // namespace

bool ShardRunnerRig::ObeyOwn(ScriptWords& words) {
  const std::string& name = words.name();
  if (name == "slow") {
    SLUICE_CHECK(source_->BeginLongAgo(words.RestFrom(1)), "a script slows what is not open");
  } else if (name == "oldest") {
    log_.Write(runner()->DescribeOldest().text());
  } else if (name == "due") {
    TellDue();
  } else if (name == "counters") {
    const EngineCounters& engine = runner()->counters();
    const ReadDeskCounters& reads = runner()->read_counters();
    log_.Write(absl::StrCat("finished ", engine.finished, ", failed ", engine.failed, ", held ",
                            engine.held_buckets, "; peak of blocks ", runner()->held_peak(),
                            "; retries ", reads.retries, ", hedges ", reads.hedges, ", won ",
                            reads.hedges_won));
  } else {
    return false;
  }
  return true;
}

void ShardRunnerRig::Drive() {
  bool moved = failure_.ok();
  while (moved) {
    const absl::StatusOr<bool> polled = runner()->Poll();
    moved = polled.ok() && *polled;
    if (polled.ok()) continue;
    failure_ = polled.status();
    log_.Write(absl::StrCat("failed: ", StatusText(failure_)));
  }
  if (!failure_.ok()) return Settle();
  if (over_ || !runner()->done()) return;
  over_ = true;
  log_.Write("all is done");
}

void ShardRunnerRig::TellDue() {
  const int64_t due_ns = runner()->next_due_ns();
  log_.Write(due_ns <= MonotonicNs() + kHourNs ? "due within an hour" : "nothing is due");
}

void ShardRunnerRig::Settle() {
  // A stream calls it again and again: what one call has taken in the next one sees.
  if (over_ || (!runner()->Settle(true) && !runner()->Settle(true))) return;
  over_ = true;
  log_.Write("settled");
}

void ShardRunnerRig::Poison(const absl::Status& status) {
  failure_ = status;
  runner()->Poison(status);
}

ShardRig::ShardRig(ScriptWords& words) : work_(&log_) {
  ShardRunnerOptions options;
  options.slots = words.Take("slots", 2);
  options.spares = words.Take("spares", 0);
  options.kept = words.Take("kept", 0);
  options.window = ShardRunner::WindowOf(options.slots);
  options.block_bytes = 4096;
  options.channels = words.Take("channels", 2);
  options.operations_max = 2;
  options.object_names = {"a.bin"};
  options.hedge.enabled = words.Take("hedge", std::string("no")) == "yes";
  options.hedge.extra_share_max = 1;
  options.retry.attempts_max = words.Take("attempts", 4);
  options.retry.backoff = absl::ZeroDuration();
  options.retry.request_timeout = absl::InfiniteDuration();
  options.head_start_ns = TakeLimit(words, "head_start");
  options.first_sends_ns = TakeLimit(words, "sends_first");
  work_.SetBlocks(options.slots + options.spares, options.kept);
  auto device = std::make_unique<LogDevice>(DeviceTraits(), &log_, "block");
  auto source =
      std::make_unique<LogSource>(options.object_names, words.Take("alignment", 1), &log_);
  const TransportTraits traits = {
      .name = "log", .in_stream_order = words.Take("order", std::string("no")) == "yes"};
  auto transport = std::make_unique<LogTransport>(traits, &log_);
  device_ = device.get();
  source_ = source.get();
  transport_ = transport.get();
  device_->set_unit_bytes(static_cast<size_t>(options.block_bytes));
  owned_device_ = std::move(device);
  owned_source_ = std::move(source);
  absl::StatusOr<std::shared_ptr<DeviceMemory>> staging =
      ShardRunner::AllocateStaging(device_, options);
  SLUICE_CHECK(staging.ok(), "fakes have memory");
  absl::StatusOr<std::unique_ptr<ShardRunner>> made = ShardRunner::Make(
      &work_, device_, source_, std::move(transport), *std::move(staging), options);
  SLUICE_CHECK(made.ok(), "fakes make a runner");
  runner_ = *std::move(made);
  if (words.Take("room", std::string("no")) == "no") log_.Take();
}

bool ShardRig::ObeyOwn(ScriptWords& words) {
  const std::string& name = words.name();
  if (name == "piece") {
    work_.Add(words);
  } else if (name == "over") {
    work_.AddNoMore();
  } else if (name == "memory") {
    work_.set_has_memory(words.Take("here", std::string("yes")) == "yes");
  } else if (name == "answered") {
    AddAnswered(words.number());
  } else if (name == "limit_passes") {
    work_.WaitUntil(runner_->next_due_ns());
  } else {
    return ShardRunnerRig::ObeyOwn(words);
  }
  return true;
}

void ShardRig::AddAnswered(int64_t pieces) {
  for (int64_t i = 0; i < pieces; ++i) {
    ScriptWords piece(absl::StrCat("piece drain=nothing read=", 8 * i, "+8"));
    work_.Add(piece);
  }
  Drive();
  Done("all");
  Drive();
  log_.Take();
}

void ShardRig::End() { runner_.reset(); }

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
  piece.piece.bytes = 64;
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
  while (MonotonicNs() < wait_until_ns_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
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
