// Requests as records, and a plan out of all of them.
#include "session/stream_start.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "session/agreement.h"
#include "tensor/check.h"

namespace sluice {
namespace {

struct StreamRequest {
  int64_t text_bytes = 0;
  int64_t first = 0;
  int64_t step = 1;
  int64_t end = -1;
  int64_t cursor_bytes = 0;
  std::array<char, Cursor::kBytesMax> cursor = {};
};
static_assert(sizeof(StreamRequest) <= Proposal::kMaxPayloadBytes);

StreamRequest Decode(absl::string_view text) {
  StreamRequest request;
  SLUICE_CHECK(text.size() == sizeof(request), "not a stream's request");
  std::memcpy(static_cast<void*>(&request), text.data(), sizeof(request));
  return request;
}

PlaceSet PlacesOf(const StreamRequest& request, int64_t items) {
  return {request.first, request.step, request.end < 0 ? items : std::min(request.end, items)};
}

// Where the cursors of all ranks say to go on; the beginning where there are none.
absl::StatusOr<ResumePoint> ResumeAt(absl::Span<const Cursor> cursors, size_t ranks,
                                     const StreamOptions& options, int64_t items) {
  if (cursors.empty()) return ResumePoint();
  if (cursors.size() != ranks) {
    return absl::InvalidArgumentError("some ranks pass a cursor and some do not");
  }
  absl::StatusOr<Cursor> merged = MergeCursors(cursors);
  if (!merged.ok()) return merged.status();
  if (merged->items != items || merged->shuffle != options.shuffle ||
      merged->seed != options.seed) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cursor is of another stream: '", merged->ToText(), "'; here are ", items,
                     " items, ", options.shuffle ? "shuffled by seed " : "not shuffled",
                     options.shuffle ? absl::StrCat(options.seed) : ""));
  }
  return std::move(merged->point);
}

}  // namespace

std::string StreamRequestOf(const StreamOptions& options, int64_t text_bytes) {
  StreamRequest request;
  request.text_bytes = text_bytes;
  request.first = options.selection.first;
  request.step = options.selection.step;
  request.end = options.selection.end;
  // A longer one is an error of its own.
  const absl::string_view cursor = absl::string_view(options.cursor).substr(0, Cursor::kBytesMax);
  request.cursor_bytes = static_cast<int64_t>(cursor.size());
  std::copy(cursor.begin(), cursor.end(), request.cursor.begin());
  return std::string(reinterpret_cast<const char*>(&request), sizeof(request));
}

int64_t TextBytesOf(absl::string_view request) { return Decode(request).text_bytes; }

// All ranks come to the same result, but for their own places.
absl::StatusOr<StreamStart> PlanStream(const StreamOptions& options, int64_t items, int rank,
                                       absl::Span<const std::string> requests) {
  if (items > StreamPlan::kItemsMax) {
    return absl::InvalidArgumentError(absl::StrCat(items, " items are too many"));
  }
  StreamPlanOptions plan;
  plan.items = items;
  plan.epochs = options.epochs;
  plan.shuffle = options.shuffle;
  plan.seed = options.seed;
  plan.exchange = options.exchange;
  std::vector<Cursor> cursors;
  for (const std::string& text : requests) {
    const StreamRequest request = Decode(text);
    plan.places.push_back(PlacesOf(request, items));
    if (request.cursor_bytes == 0) continue;
    absl::StatusOr<Cursor> cursor = Cursor::Parse(
        absl::string_view(request.cursor.data(), static_cast<size_t>(request.cursor_bytes)));
    if (!cursor.ok()) return cursor.status();
    cursors.push_back(*std::move(cursor));
  }
  absl::StatusOr<ResumePoint> resume = ResumeAt(cursors, requests.size(), options, items);
  if (!resume.ok()) return resume.status();
  plan.resume = *std::move(resume);
  StreamStart start;
  start.cursor.items = items;
  start.cursor.shuffle = options.shuffle;
  start.cursor.seed = options.seed;
  start.cursor.places = plan.places[static_cast<size_t>(rank)];
  start.cursor.point = plan.resume;
  start.plan = std::make_unique<StreamPlan>(plan, rank);
  return start;
}

}  // namespace sluice
