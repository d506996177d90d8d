// One small record per rank and round.
#include "session/peers/rounds.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "session/peers/agreement.h"
#include "tensor/error_text.h"
#include "transport/wire_status.h"

namespace sluice {
namespace {

struct RoundRecord {
  enum State : int32_t { kWorking, kDone, kFailed };
  int32_t state = kWorking;
  int32_t moved = 0;
  WireStatus<600> status;
};
static_assert(sizeof(RoundRecord) <= Fabric::kMaxRecordBytes);

}  // namespace

Rounds::Rounds(Fabric* fabric, const char* call, absl::Duration timeout)
    : fabric_(fabric),
      call_(call),
      timeout_ns_(absl::ToInt64Nanoseconds(timeout)),
      moved_ns_(MonotonicNs()),
      since_ns_(moved_ns_) {}

absl::StatusOr<bool> Rounds::Poll(const Standing& standing, const absl::Status& own,
                                  int64_t now_ns) {
  moved_ = moved_ || standing.moved;
  if (fabric_->size() == 1) {
    if (std::exchange(moved_, false)) moved_ns_ = now_ns;
    if (!own.ok()) return own;
    return standing.done;
  }
  out_of_step_ = true;
  if (!gathers_) {
    if (standing.done || !own.ok() || now_ns - since_ns_ > kIntervalNs) {
      if (absl::Status status = Begin(standing.done, own, now_ns); !status.ok()) return status;
    }
    return false;
  }
  SLUICE_ASSIGN_OR_RETURN(const bool gathered, fabric_->PollAllGather(&all_, &missing_));
  if (!gathered && now_ns - since_ns_ > timeout_ns_) {
    return MakeError(absl::StatusCode::kDeadlineExceeded, call_, ": no word from ",
                     NamedRanks(missing_), " for ",
                     absl::FormatDuration(absl::Nanoseconds(timeout_ns_)));
  }
  if (!gathered) return false;
  gathers_ = false;
  since_ns_ = now_ns;
  out_of_step_ = false;
  return End(own, now_ns);
}

absl::Status Rounds::Begin(bool done, const absl::Status& own, int64_t now_ns) {
  RoundRecord record;
  record.moved = std::exchange(moved_, false) ? 1 : 0;
  if (!own.ok()) {
    record.state = RoundRecord::kFailed;
    record.status = WireStatus<600>(own);
  } else if (done) {
    record.state = RoundRecord::kDone;
  }
  gathers_ = true;
  since_ns_ = now_ns;
  return fabric_->StartAllGather(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&record), sizeof(record)));
}

// All ranks come to the same, but for the words of the first one that has failed.
absl::StatusOr<bool> Rounds::End(const absl::Status& own, int64_t now_ns) {
  bool over = true;
  std::vector<int> failed;
  RoundRecord first;
  for (int rank = 0; rank < fabric_->size(); ++rank) {
    RoundRecord record;
    std::memcpy(&record, all_.data() + static_cast<size_t>(rank) * sizeof(record), sizeof(record));
    over = over && record.state == RoundRecord::kDone;
    if (record.moved != 0) moved_ns_ = now_ns;
    if (record.state != RoundRecord::kFailed) continue;
    if (failed.empty()) first = record;
    failed.push_back(rank);
  }
  if (failed.empty()) return over;
  if (failed.front() == fabric_->rank()) {
    // In its own words, with the fields of the others' error.
    ErrorFields fields = FieldsOf(own);
    if (fields.ranks.empty()) fields.ranks = std::move(failed);
    return WithFields(own, fields);
  }
  return MakeError(first.status.code(), call_, " failed on ", NamedRanks(failed), ": ",
                   first.status.ToStatus());
}

}  // namespace sluice
