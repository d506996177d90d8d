// Bits by run.
#include "session/transfer/run_outcomes.h"

#include "absl/strings/str_cat.h"

namespace sluice {

bool RunSet::Insert(RunId run) {
  uint64_t& word = pages_[run / kPageRuns][static_cast<size_t>(run % kPageRuns / 64)];
  const uint64_t bit = uint64_t{1} << (run % 64);
  const bool added = (word & bit) == 0;
  word |= bit;
  return added;
}

bool RunSet::Has(RunId run) const {
  const auto page = pages_.find(run / kPageRuns);
  if (page == pages_.end()) return false;
  return (page->second[static_cast<size_t>(run % kPageRuns / 64)] >> (run % 64) & 1) != 0;
}

void RunOutcomes::Add(RunId run, const absl::Status& status) {
  newest_[run] = status;
  if (newest_.size() <= kWholeMax) return;
  const auto oldest = newest_.begin();
  older_[oldest->second.code()].Insert(oldest->first);
  newest_.erase(oldest);
}

absl::Status RunOutcomes::Of(RunId run) const {
  const auto whole = newest_.find(run);
  if (whole != newest_.end()) return whole->second;
  for (const auto& [code, runs] : older_) {
    if (!runs.Has(run)) continue;
    if (code == absl::StatusCode::kCancelled) return Cancelled(run);
    return absl::Status(code, absl::StrCat("run ", run, " failed; the messages of the newest ",
                                           kWholeMax, " runs that failed are kept, not this one"));
  }
  return absl::OkStatus();
}

absl::Status RunOutcomes::Cancelled(RunId run) {
  return absl::CancelledError(absl::StrCat("run ", run, " was cancelled"));
}

}  // namespace sluice
