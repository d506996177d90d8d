// Attempts, and pauses that a stop cuts short.
#include "session/shard/read_text.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "session/shard/next_attempt.h"
#include "storage/object_name.h"
#include "storage/open/store_page.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

bool IsStopped(const WorkStop& stop) { return stop.load(std::memory_order_relaxed); }

absl::Status Stopped() { return absl::CancelledError("nobody needs what is read any more"); }

void SleepUnless(const WorkStop& stop, absl::Duration time) {
  constexpr int64_t kLookNs = 10'000'000;
  const int64_t begin_ns = MonotonicNs();
  int64_t rest_ns = absl::ToInt64Nanoseconds(time);
  while (rest_ns > 0 && !IsStopped(stop)) {
    absl::SleepFor(absl::Nanoseconds(std::min(rest_ns, kLookNs)));
    rest_ns = absl::ToInt64Nanoseconds(time) - (MonotonicNs() - begin_ns);
  }
}

}  // namespace

absl::Status ReadWithRetries(absl::string_view what, const RetryOptions& retry,
                             const WorkStop& stop, absl::FunctionRef<absl::Status()> read) {
  AskedPauses asked;
  for (int attempt = 1; !IsStopped(stop); ++attempt) {
    absl::Status status = read();
    absl::optional<absl::Duration> pause;
    if (absl::IsUnavailable(status)) pause = NextAttempt(retry, status, attempt, &asked);
    if (!pause && (status.ok() || attempt == 1)) return status;
    if (!pause) {
      return MakeError(status.code(), what, ": gave up after ", attempt, " attempts: ", status);
    }
    SleepUnless(stop, *pause);
  }
  return Stopped();
}

absl::StatusOr<WholeObject> FetchText(const SourceAddress& address, absl::string_view name,
                                      int64_t bytes_max, const OpenOptions& options,
                                      const RetryOptions& retry, const WorkStop& stop) {
  const int64_t stall_ns = absl::ToInt64Nanoseconds(retry.request_timeout);
  OpenOptions found = options;
  SLUICE_RETURN_IF_ERROR(FindAccess(address, &found));
  absl::StatusOr<WholeObject> object = Stopped();
  SLUICE_RETURN_IF_ERROR(ReadWithRetries(name, retry, stop, [&] {
    object = ReadWholeObject(address, name, bytes_max, found, stall_ns, stop);
    return object.status();
  }));
  return object;
}

absl::StatusOr<std::vector<S3Object>> ListStore(const SourceAddress& address,
                                                absl::string_view suffix,
                                                const OpenOptions& options,
                                                const RetryOptions& retry, const WorkStop& stop) {
  const int64_t stall_ns = absl::ToInt64Nanoseconds(retry.request_timeout);
  OpenOptions found = options;
  SLUICE_RETURN_IF_ERROR(FindAccess(address, &found));
  S3Listing listing;
  while (!listing.is_whole) {
    SLUICE_RETURN_IF_ERROR(ReadWithRetries(address.place, retry, stop, [&] {
      return ReadStorePage(address, found, stall_ns, stop, &listing);
    }));
  }
  std::vector<S3Object>& objects = listing.objects;
  std::erase_if(objects, [&](const S3Object& object) {
    return object.name[0] == '.' || !absl::EndsWith(object.name, suffix);
  });
  if (objects.empty()) {
    return absl::NotFoundError(
        absl::StrCat(address.place, " has no objects", suffix.empty() ? "" : " *", suffix));
  }
  for (const S3Object& object : objects) SLUICE_RETURN_IF_ERROR(CheckObjectName(object.name));
  std::sort(objects.begin(), objects.end(),
            [](const S3Object& a, const S3Object& b) { return a.name < b.name; });
  return std::move(objects);
}

}  // namespace sluice
