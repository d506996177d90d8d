// Steps and threads of own work, in rounds with all ranks.
#include "session/peers/together.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "session/peers/rounds.h"

namespace sluice {

absl::Status FinishTogether(Peers* peers, const char* call, absl::Duration timeout,
                            absl::FunctionRef<absl::StatusOr<TogetherStep>()> step,
                            absl::FunctionRef<ErrorText()> describe) {
  const int64_t timeout_ns = absl::ToInt64Nanoseconds(timeout);
  Rounds rounds(peers->fabric(), call, timeout);
  absl::Status own;
  TogetherStep result;
  int64_t moved_ns = MonotonicNs();
  peers->call_wait()->Reset();
  while (true) {
    if (absl::Status status = peers->CheckAlarm(); !status.ok()) return status;
    bool moved = peers->host()->AdvanceStreams();
    int64_t now_ns = MonotonicNs();
    const bool works = own.ok() && !result.done;
    if (works) {
      const absl::StatusOr<TogetherStep> stepped = step();
      own = stepped.status();
      result = stepped.value_or(TogetherStep());
      moved |= result.moved;
      now_ns = MonotonicNs();
      if (result.moved || result.waits) moved_ns = now_ns;
      // The work that this rank waits for may be behind work that others are busy with.
      const int64_t last_ns = std::max(moved_ns, rounds.moved_ns());
      if (own.ok() && !result.done && now_ns - last_ns > timeout_ns) {
        own = MakeError(absl::StatusCode::kDeadlineExceeded, "no progress on any rank for ",
                        absl::FormatDuration(timeout), "; ", describe());
      }
    }
    const Rounds::Standing standing = {.done = result.done,
                                       .moved = works && (result.moved || result.waits)};
    const absl::StatusOr<bool> over = rounds.Poll(standing, own, now_ns);
    if (!over.ok()) return rounds.out_of_step() ? peers->Poison(over.status()) : over.status();
    if (*over) return absl::OkStatus();
    if (moved) {
      peers->call_wait()->Reset();
    } else {
      peers->call_wait()->Pause(
          peers->size() > 1 || peers->host()->has_streams() ? Awaited::kRanks : Awaited::kFiles,
          std::min(result.due_ns, peers->host()->next_due_ns()) - MonotonicNs());
    }
  }
}

absl::Status WorkTogether(Peers* peers, const char* call, absl::Duration timeout,
                          OwnWorkFunction own_work) {
  std::unique_ptr<OwnWork> work;
  absl::Status started;
  if (own_work != nullptr) {
    absl::StatusOr<std::unique_ptr<OwnWork>> thread =
        OwnWork::Start(std::move(own_work), [peers] { peers->call_wait()->Wake(); });
    started = thread.status();
    if (thread.ok()) work = *std::move(thread);
  }
  absl::Status status = FinishTogether(
      peers, call, timeout,
      [&]() -> absl::StatusOr<TogetherStep> {
        if (!started.ok()) return started;
        if (work == nullptr) return TogetherStep{.moved = true, .done = true};
        if (!work->ended()) return TogetherStep{.waits = true};
        if (!work->outcome().ok()) return work->outcome();
        return TogetherStep{.moved = true, .done = true};
      },
      [] { return ErrorText(); });
  if (status.ok() || work == nullptr) return status;
  // Another rank has failed. The work uses what its caller owns, so its end is waited for.
  work->Stop();
  Backoff backoff;
  while (!work->ended()) peers->PauseFor(&backoff);
  return status;
}

void WorkAlone(Peers* peers, const std::function<void()>& work) {
  const absl::StatusOr<std::unique_ptr<OwnWork>> thread = OwnWork::Start(
      [&work](const WorkStop&) {
        work();
        return absl::OkStatus();
      },
      [peers] { peers->call_wait()->Wake(); });
  if (!thread.ok()) return work();  // late, but not never
  Backoff backoff;
  while (!(*thread)->ended()) peers->PauseFor(&backoff);
}

}  // namespace sluice
