// Rounds of attempts, each awaited as a whole.
#include "stream/baselines/plain_reader.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"

namespace sluice::bench {
namespace {

constexpr int64_t kAfterCancelNs = 100'000'000;

bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status);
}

}  // namespace

void PlainReader::Wait(int64_t until_ns) const {
  const int64_t left_ns = std::max<int64_t>(0, until_ns - MonotonicNs());
  const timespec timeout = {left_ns / 1'000'000'000, left_ns % 1'000'000'000};
  pollfd ready = {source_->ready_fd(), POLLIN, 0};
  ppoll(&ready, 1, &timeout, nullptr);
}

absl::Status PlainReader::Read(absl::Span<ReadOp> ops, std::vector<const std::byte*>* data) {
  data->assign(ops.size(), nullptr);
  std::vector<size_t> which(ops.size());
  std::iota(which.begin(), which.end(), size_t{0});
  which.erase(
      std::remove_if(which.begin(), which.end(), [&](size_t i) { return ops[i].bytes == 0; }),
      which.end());
  absl::Duration backoff = retry_.backoff;
  for (int attempt = 0; !which.empty(); ++attempt) {
    for (const size_t i : which) {
      ops[i].cookie = i;
      ops[i].attempt = attempt;
    }
    std::vector<size_t> again;
    absl::Status cause;
    absl::Status status = ReadOnce(ops, which, data, &again, &cause);
    if (!status.ok()) return status;
    if (again.empty()) break;
    if (attempt + 1 >= retry_.attempts_max) {
      return absl::Status(cause.code(), absl::StrCat("after ", retry_.attempts_max,
                                                     " attempts: ", cause.message()));
    }
    retries_ += static_cast<int64_t>(again.size());
    absl::SleepFor(backoff);
    backoff *= 2;
    which = std::move(again);
  }
  return absl::OkStatus();
}

absl::Status PlainReader::ReadOnce(absl::Span<ReadOp> ops, const std::vector<size_t>& which,
                                   std::vector<const std::byte*>* data, std::vector<size_t>* again,
                                   absl::Status* cause) {
  std::vector<ReadOp> batch;
  batch.reserve(which.size());
  for (const size_t i : which) batch.push_back(ops[i]);
  const int64_t begin_ns = MonotonicNs();
  int64_t limit_ns = begin_ns + absl::ToInt64Nanoseconds(retry_.request_timeout);
  if (absl::Status status = source_->Start(batch); !status.ok()) return status;
  absl::Status failure;
  std::vector<bool> ended(ops.size());
  for (size_t left = batch.size(); left > 0;) {
    std::array<ReadEvent, 64> events;
    const absl::StatusOr<int> count = source_->Poll(absl::MakeSpan(events));
    if (!count.ok()) return count.status();
    for (int e = 0; e < *count; ++e) {
      const ReadEvent& event = events[static_cast<size_t>(e)];
      const auto i = static_cast<size_t>(event.cookie);
      ended[i] = true;
      --left;
      reading_ns_ += MonotonicNs() - begin_ns;
      if (event.status.ok()) {
        (*data)[i] = ops[i].data + event.skew;
      } else if (IsTransient(event.status)) {
        again->push_back(i);
        *cause = event.status;
      } else {
        failure.Update(event.status);
      }
    }
    if (*count > 0) continue;
    if (MonotonicNs() >= limit_ns) {
      for (const ReadOp& op : batch) {
        if (!ended[static_cast<size_t>(op.cookie)]) source_->Cancel(op.cookie);
      }
      limit_ns = MonotonicNs() + kAfterCancelNs;
    } else if (left > 0) {
      Wait(limit_ns);
    }
  }
  return failure;
}

}  // namespace sluice::bench
