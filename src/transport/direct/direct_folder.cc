// Stretches that lie together on all sides, and blocks of what has to be read first.
#include "transport/direct/direct_folder.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "device/stream_rows.h"
#include "transport/direct/process_memory.h"

namespace sluice {
namespace {

// Two of them stay in a core's second cache; the kernel's call is dear for much less.
constexpr uint64_t kBlockBytes = 128 << 10;

constexpr uint64_t kScratchBytes = kBlockBytes + kKernelPageBytes;

// A scratch block, which all blocks of a fold lie in one after the other.
constexpr DirectRows ScratchRows(uint64_t bytes) { return {bytes, kBlockBytes, 0}; }

}  // namespace

void DirectFolder::Reserve(size_t contributions) {
  sides_.reserve(contributions);
  stretches_.reserve(contributions);
  // Not touched before it is used.
  if (scratch_ == nullptr) scratch_.reset(new std::byte[2 * kScratchBytes + kKernelPageBytes]);
}

void DirectFolder::AddOwn(const std::byte* data, const DirectRows& rows) {
  sides_.push_back({data, nullptr, 0, rows});
}

void DirectFolder::AddPeers(const DirectPeer& peer, const DirectPlace& place) {
  sides_.push_back({peer.Reach(place), &peer, place.address, place.rows});
}

DirectFoldResult DirectFolder::Run(const Fold& fold, std::byte* to, const DirectRows& to_rows,
                                   uint64_t begin, uint64_t end, WriteHint stores) {
  DirectFoldResult result;
  const bool all_here = std::all_of(sides_.begin(), sides_.end(),
                                    [](const Side& side) { return side.data != nullptr; });
  if (all_here) {
    const RowFold rows(fold.op, fold.dtype, fold.divisor);
    FoldStretches(rows, sides_, to, to_rows, begin, end, stores);
  } else {
    while (begin < end && result.error == 0) {
      const uint64_t next = std::min((begin / kBlockBytes + 1) * kBlockBytes, end);
      result = FoldBlock(fold, to, to_rows, begin, next, stores);
      begin = next;
    }
  }
  if (stores == WriteHint::kStreaming) StreamFence();
  return result;
}

void DirectFolder::FoldStretches(const RowFold& fold, absl::Span<const Side> sides, std::byte* to,
                                 const DirectRows& to_rows, uint64_t begin, uint64_t end,
                                 WriteHint stores) {
  for (uint64_t at = begin; at < end;) {
    uint64_t bytes = std::min(to_rows.StretchAt(at), end - at);
    stretches_.clear();
    for (const Side& side : sides) {
      bytes = std::min(bytes, side.rows.StretchAt(at));
      stretches_.push_back(side.data + side.rows.OffsetOf(at));
    }
    fold.Fold(stretches_, to + to_rows.OffsetOf(at),
              static_cast<int64_t>(bytes) / fold.element_bytes(), stores);
    at += bytes;
  }
}

// The result so far stays in the first scratch block, and what is added comes into the second.
DirectFoldResult DirectFolder::FoldBlock(const Fold& fold, std::byte* to, const DirectRows& to_rows,
                                         uint64_t begin, uint64_t end, WriteHint stores) {
  const RowFold step(fold.op, fold.dtype, 1);
  const RowFold last_step(fold.op, fold.dtype, fold.divisor);
  std::byte* const sum = ScratchFor(sides_[0], begin, scratch_.get());
  std::array<Side, 2> pair;
  int error = Fetch(sides_[0], sum, begin, end, &pair[0]);
  if (error != 0) return {error, 0};
  for (size_t i = 1; i < sides_.size(); ++i) {
    std::byte* const incoming = ScratchFor(sides_[i], begin, scratch_.get() + kScratchBytes);
    error = Fetch(sides_[i], incoming, begin, end, &pair[1]);
    if (error != 0) return {error, i};
    if (i + 1 == sides_.size()) {
      FoldStretches(last_step, pair, to, to_rows, begin, end, stores);
    } else {
      const DirectRows rows = ScratchRows(to_rows.bytes);
      FoldStretches(step, pair, sum, rows, begin, end, WriteHint::kPlain);
      pair[0] = {sum, nullptr, 0, rows};
    }
  }
  return {};
}

// Chooses a place in its page as the contribution's byte `begin` has. Then the kernel copies whole
// pages. It copies by `rep movsb`, which on AMD's Zen takes three times as long where the target
// lies 1 to 31 bytes behind the source, modulo a page.
std::byte* DirectFolder::ScratchFor(const Side& side, uint64_t begin, std::byte* block) {
  const uint64_t first = side.address + side.rows.OffsetOf(begin) - begin;
  return block + (first - reinterpret_cast<uint64_t>(block)) % kKernelPageBytes;
}

int DirectFolder::Fetch(const Side& side, std::byte* scratch, uint64_t begin, uint64_t end,
                        Side* here) {
  *here = side;
  if (side.data != nullptr) return 0;
  *here = {scratch, nullptr, 0, ScratchRows(side.rows.bytes)};
  if (side.peer->HasEndedLately()) return ESRCH;
  return ReadProcessMemory(side.peer->pid(), side.address, side.rows, scratch, here->rows, begin,
                           end);
}

}  // namespace sluice
