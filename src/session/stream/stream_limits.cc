// Budgets in bytes become slots.
#include "session/stream/stream_limits.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "session/base/bookkeeping.h"
#include "session/shard/shard_runner.h"
#include "session/stream/generate_gate.h"
#include "session/stream/item_normalizer.h"
#include "storage/source.h"
#include "tensor/checked.h"
#include "tensor/round.h"

namespace sluice {
namespace {

constexpr int64_t kPieceBytesMax = int64_t{8} << 20;
constexpr int64_t kPieceBytesMin = int64_t{64} << 10;
// Pieces hold whole elements, and begin at whole cache lines of their item.
constexpr int64_t kPieceUnit = 64;
constexpr int64_t kSlotsMax = int64_t{1} << 16;

// The most that a stream may ask for. An int64_t holds it, rounding included.
constexpr int64_t kBytesMax = int64_t{1} << 60;

int64_t PieceBytes(const StreamOptions& options, const StreamItems& items, bool whole_items) {
  const int64_t item_bytes = std::max<int64_t>(1, items.item_bytes_max());
  if (whole_items) return item_bytes;
  const int64_t eighth = options.reads.budget_bytes / 8 / kReadAlignment * kReadAlignment;
  const int64_t bytes =
      options.reads.piece_bytes.value_or(std::clamp(eighth, kPieceBytesMin, kPieceBytesMax));
  return bytes >= item_bytes ? item_bytes : RoundUp(bytes, kPieceUnit);
}

// Memory that any piece fits, wherever it begins.
int64_t BlockBytes(const StreamItems& items, int64_t piece_bytes, int64_t alignment) {
  const bool begins_aligned =
      items.aligned_to(alignment) &&
      (piece_bytes % alignment == 0 || piece_bytes >= items.item_bytes_max());
  const int64_t touched = begins_aligned ? piece_bytes : piece_bytes + alignment - 1;
  return RoundUp(RoundUp(touched, alignment), kReadAlignment);
}

int64_t CellBytes(const StreamOptions& options, const StreamItems& items) {
  const DeliveredSizes sizes = DeliveredSizesOf(options.buffers.transform, items);
  return sizes.uniform ? sizes.bytes_max : RoundUp(sizes.bytes_max, kPieceUnit);
}

// In order, nothing ends before a smaller piece but what has device memory: of items in as many
// cells as there are. So there is no use in looking further ahead than these and the slots.
int64_t WindowOf(const StreamOptions& options, int slots, int64_t pieces_per_item) {
  constexpr int64_t kWaiting = 64;
  const int64_t any_order = ShardRunner::WindowOf(slots);
  if (!options.order.in_order) return any_order;
  const std::optional<int64_t> ahead = CheckedProduct(
      {options.buffers.count, options.buffers.batch_items, pieces_per_item}, kBytesMax);
  return ahead ? std::min(any_order, slots + *ahead + kWaiting) : any_order;
}

// While batch N + 1 is made, batch N + 2 waits for the update. So a trainer that never comes back
// to the stream meanwhile leaves the generator with something to do.
absl::Status CheckOneAhead(const StreamOptions& options, const StreamLimits& limits,
                           const StreamShare& share) {
  const bool one_ahead =
      options.source.uri.empty() && options.source.generate_order == GenerateOrder::kOneAhead;
  const int64_t items = std::min(2 * options.buffers.batch_items, share.items_to_come);
  if (!one_ahead || limits.slots >= items) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("generating one ahead takes memory for two batches, ", items, " items of ",
                   limits.block_bytes, " bytes: budget_bytes ", options.reads.budget_bytes,
                   options.reads.slots ? absl::StrCat(" and slots ", *options.reads.slots) : "",
                   " hold ", limits.slots));
}

}  // namespace

absl::StatusOr<StreamLimits> ResolveStreamLimits(const StreamOptions& options,
                                                 const StreamItems& items, int64_t alignment,
                                                 bool whole_items, const StreamShare& share) {
  // A transform makes at most four times as many bytes.
  for (const int64_t bytes : {items.item_bytes_max(), options.reads.budget_bytes,
                              options.reads.piece_bytes.value_or(0)}) {
    if (bytes <= kBytesMax / 8) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("items, pieces or a budget of ", bytes, " bytes are too large"));
  }
  StreamLimits limits;
  limits.piece_bytes = PieceBytes(options, items, whole_items);
  limits.block_bytes = BlockBytes(items, limits.piece_bytes, alignment);
  const int64_t hedges_min = options.reads.hedge.enabled ? 1 : 0;
  const int64_t floor_bytes = (1 + hedges_min) * limits.block_bytes;
  if (options.reads.budget_bytes < floor_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "budget_bytes ", options.reads.budget_bytes, " is too small: the least is ", floor_bytes,
        " = ", 1 + hedges_min, " x ", limits.block_bytes, " bytes (a piece of ", limits.piece_bytes,
        " bytes at alignment ", alignment, hedges_min > 0 ? ", and one more for a hedge" : "",
        "); piece_bytes makes pieces smaller"));
  }
  const Bookkeeping kept = {.messages = share.sharers_max - 1,
                            .cells = options.buffers.count * options.buffers.batch_items};
  const int64_t blocks =
      std::min(BlocksInBudget(options.reads.budget_bytes, limits.block_bytes, kept, 1 + hedges_min),
               kSlotsMax);
  int64_t spares = 0;
  if (hedges_min > 0) {
    // A loser keeps its block until its read ends, ten times as long as others take: of one in a
    // hundred reads. A twelfth leaves room for four times as many at once.
    spares = std::max({hedges_min, std::min<int64_t>(2, blocks / 4), blocks / 12});
  }
  int64_t slots = std::min(blocks - spares, options.reads.slots.value_or(kSlotsMax));
  // More than there are pieces would never be used.
  const int64_t item_bytes = std::max<int64_t>(1, items.item_bytes_max());
  const int64_t pieces_per_item = (item_bytes + limits.piece_bytes - 1) / limits.piece_bytes;
  const std::optional<int64_t> pieces =
      CheckedProduct({std::max<int64_t>(1, share.items_to_come), pieces_per_item}, kBytesMax);
  if (pieces) slots = std::min(slots, *pieces);
  if (spares > 0) spares = std::min(spares, std::max<int64_t>(2, slots / 8));
  limits.slots = static_cast<int>(slots);
  if (absl::Status status = CheckOneAhead(options, limits, share); !status.ok()) return status;
  limits.spares = static_cast<int>(spares);
  limits.window = static_cast<int>(WindowOf(options, limits.slots, pieces_per_item));
  limits.cell_bytes = CellBytes(options, items);
  const std::optional<int64_t> batch = CheckedProduct(
      {options.buffers.batch_items, std::max<int64_t>(1, limits.cell_bytes), options.buffers.count},
      kBytesMax);
  if (!batch) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.buffers.count, " device buffers of ", options.buffers.batch_items, " items of ",
        limits.cell_bytes, " bytes are more than there can be memory for"));
  }
  limits.buffer_bytes = RoundUp(*batch / options.buffers.count, 64);
  return limits;
}

}  // namespace sluice
