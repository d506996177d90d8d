// How ranks that each have something to do of their own end together: none waits for another one
// without hearing of it, and streams go on.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/clock.h"
#include "session/rounds.h"
#include "session/session_impl.h"

namespace sluice {

absl::Status SessionImpl::FinishTogether(const char* call, absl::Duration timeout,
                                         absl::FunctionRef<absl::StatusOr<StepResult>()> step,
                                         absl::FunctionRef<std::string()> describe) {
  const int64_t timeout_ns = absl::ToInt64Nanoseconds(timeout);
  Rounds rounds(fabric_.get(), call, timeout);
  absl::Status own;
  StepResult result;
  int64_t moved_ns = MonotonicNs();
  call_wait_.Reset();
  while (true) {
    if (absl::Status status = CheckAlarm(); !status.ok()) return status;
    bool moved = AdvanceStreams();
    int64_t now_ns = MonotonicNs();
    const bool works = own.ok() && !result.done;
    if (works) {
      const absl::StatusOr<StepResult> stepped = step();
      own = stepped.status();
      result = stepped.value_or(StepResult());
      moved |= result.moved;
      now_ns = MonotonicNs();
      if (result.moved || result.waits) moved_ns = now_ns;
      // What this rank waits for may be behind what others are busy with.
      const int64_t last_ns = std::max(moved_ns, rounds.moved_ns());
      if (own.ok() && !result.done && now_ns - last_ns > timeout_ns) {
        own = absl::DeadlineExceededError(absl::StrCat(
            "no progress on any rank for ", absl::FormatDuration(timeout), "; ", describe()));
      }
    }
    const Rounds::Standing standing = {.done = result.done,
                                       .moved = works && (result.moved || result.waits)};
    const absl::StatusOr<bool> over = rounds.Poll(standing, own, now_ns);
    if (!over.ok()) return rounds.out_of_step() ? Poison(over.status()) : over.status();
    if (*over) return absl::OkStatus();
    if (moved) {
      call_wait_.Reset();
    } else {
      call_wait_.Pause(size() > 1 || !streams_.empty() ? Awaited::kRanks : Awaited::kFiles,
                       std::min(result.due_ns, next_due_ns()) - MonotonicNs());
    }
  }
}

absl::Status SessionImpl::WorkTogether(const char* call, absl::Duration timeout,
                                       OwnWorkFunction own_work) {
  std::unique_ptr<OwnWork> work;
  absl::Status started;
  if (own_work != nullptr) {
    absl::StatusOr<std::unique_ptr<OwnWork>> thread =
        OwnWork::Start(std::move(own_work), [this] { call_wait_.Wake(); });
    started = thread.status();
    if (thread.ok()) work = *std::move(thread);
  }
  absl::Status status = FinishTogether(
      call, timeout,
      [&]() -> absl::StatusOr<StepResult> {
        if (!started.ok()) return started;
        if (work == nullptr) return StepResult{.moved = true, .done = true};
        if (!work->ended()) return StepResult{.waits = true};
        if (!work->outcome().ok()) return work->outcome();
        return StepResult{.moved = true, .done = true};
      },
      [] { return std::string(); });
  if (status.ok() || work == nullptr) return status;
  // Another rank has failed. The work uses what its caller owns, so its end is waited for.
  work->Stop();
  Backoff backoff;
  while (!work->ended()) PauseFor(&backoff);
  return status;
}

void SessionImpl::WorkAlone(const std::function<void()>& work) {
  const absl::StatusOr<std::unique_ptr<OwnWork>> thread = OwnWork::Start(
      [&work](const WorkStop&) {
        work();
        return absl::OkStatus();
      },
      [this] { call_wait_.Wake(); });
  if (!thread.ok()) return work();  // late, but not never
  Backoff backoff;
  while (!(*thread)->ended()) PauseFor(&backoff);
}

}  // namespace sluice
