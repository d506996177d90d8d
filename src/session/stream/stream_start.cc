// Requests as records, and a plan out of all of them.
#include "session/stream/stream_start.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "session/peers/agreement.h"
#include "tensor/error_text.h"
#include "tensor/stable_hash.h"

namespace sluice {
namespace {

// Changes with the record: ranks of other builds are told apart.
constexpr uint64_t kFormat = 0x53545245'414d0003;

constexpr int64_t kAll = -1;  // the end of a selection without one

struct Record {
  uint64_t format = kFormat;
  int64_t first = 0;
  int64_t step = 1;
  int64_t end = kAll;
  uint64_t cursor_hash = 0;
};
static_assert(sizeof(Record) <= Proposal::kMaxPayloadBytes);

PlaceSet PlacesOf(const Selection& selection, int64_t items) {
  return {selection.first, selection.step, std::min(selection.end.value_or(items), items)};
}

// The items that the cursors of all ranks call released; nothing without cursors.
absl::StatusOr<std::vector<ReleasedLayer>> ReleasedBefore(absl::Span<const StreamRequest> requests,
                                                          const Cursor& order) {
  std::vector<Cursor> cursors;
  const std::string* last = nullptr;
  for (const StreamRequest& request : requests) {
    if (request.cursor.empty() != requests[0].cursor.empty()) {
      return absl::InvalidArgumentError("some ranks pass a cursor and some do not");
    }
    // Mostly all ranks pass the same merged one.
    if (request.cursor.empty() || (last != nullptr && *last == request.cursor)) continue;
    last = &request.cursor;
    SLUICE_ASSIGN_OR_RETURN(Cursor cursor, Cursor::Parse(request.cursor));
    cursors.push_back(std::move(cursor));
  }
  if (cursors.empty()) return std::vector<ReleasedLayer>();
  SLUICE_ASSIGN_OR_RETURN(Cursor merged, MergeCursors(cursors));
  if (merged.items != order.items || merged.shuffle != order.shuffle || merged.seed != order.seed ||
      merged.block_items != order.block_items) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the cursor is of another stream: '", merged.ToText().substr(0, 200), "'; here are ",
        order.items, " items, ", order.shuffle ? "shuffled by seed " : "not shuffled",
        order.shuffle ? absl::StrCat(order.seed) : "",
        order.block_items != 1 ? absl::StrCat(", in blocks of ", order.block_items) : ""));
  }
  if (merged.data != 0 && order.data != 0 && merged.data != order.data) {
    return absl::InvalidArgumentError(
        "the cursor is of another data set: it has as many items, but not the same ones");
  }
  if (absl::Status status = CheckReleased(order.items, merged.layers); !status.ok()) {
    return status;
  }
  return std::move(merged.layers);
}

}  // namespace

std::string StreamRequestText(const StreamOptions& options) {
  Record record;
  record.first = options.selection.first;
  record.step = options.selection.step;
  record.end = options.selection.end.value_or(kAll);
  StableHash hash;
  hash.AddText(options.order.cursor);
  record.cursor_hash = hash.value();
  return std::string(reinterpret_cast<const char*>(&record), sizeof(record));
}

absl::StatusOr<StreamRequest> ParseStreamRequest(absl::string_view text, int rank) {
  Record record;
  const bool whole = text.size() == sizeof(record);
  if (whole) std::memcpy(static_cast<void*>(&record), text.data(), sizeof(record));
  if (!whole || record.format != kFormat) {
    return DisagreementError(RankInWords(rank),
                             " runs another build of Sluice: it asks for a stream in ",
                             "another form");
  }
  StreamRequest request;
  request.selection = {record.first, record.step, absl::nullopt};
  if (record.end != kAll) request.selection.end = record.end;
  request.cursor_hash = record.cursor_hash;
  return request;
}

// All ranks come to the same result, but for their own places.
absl::StatusOr<StreamStart> PlanStream(const StreamOptions& options, int64_t items, uint64_t data,
                                       int rank, absl::Span<const StreamRequest> requests) {
  if (items > StreamPlan::kItemsMax) {
    return absl::InvalidArgumentError(absl::StrCat(items, " items are too many"));
  }
  if (options.order.epochs > kPositionsMax / items) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.order.epochs, " epochs of ", items, " items are too many"));
  }
  StreamStart start;
  start.order.items = items;
  start.order.shuffle = options.order.shuffle;
  start.order.seed = options.order.seed;
  start.order.block_items = options.order.shuffle_block_items.value_or(1);
  start.order.data = data;
  SLUICE_ASSIGN_OR_RETURN(std::vector<ReleasedLayer> released,
                          ReleasedBefore(requests, start.order));
  StreamPlanOptions plan;
  plan.items = items;
  plan.epochs = options.order.epochs;
  plan.shuffle = options.order.shuffle;
  plan.seed = options.order.seed;
  plan.block_items = start.order.block_items;
  plan.exchange = options.reads.exchange;
  plan.released = std::move(released);
  for (const StreamRequest& request : requests) {
    plan.places.push_back(PlacesOf(request.selection, items));
  }
  start.plan = std::make_unique<StreamPlan>(plan, rank);
  return start;
}

}  // namespace sluice
