// Reads one object as text, and waits: an index, before anything moves.
#ifndef SLUICE_SRC_SESSION_SHARD_READ_TEXT_H_
#define SLUICE_SRC_SESSION_SHARD_READ_TEXT_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "session/base/own_work.h"
#include "sluice/stream.h"
#include "storage/open/open_source.h"
#include "storage/open/source_address.h"
#include "storage/open/whole_object.h"

namespace sluice {

// Calls `read` until its status is not Unavailable, at most retry.attempts_max times, with the
// pauses of `retry` in between. The error after several attempts says how many there were. Gives up
// with Cancelled once `stop` is set. `what` is for messages. Any thread.
absl::Status ReadWithRetries(absl::string_view what, const RetryOptions& retry,
                             const WorkStop& stop, absl::FunctionRef<absl::Status()> read);

// Object `name` at `address`, of at most `bytes_max` bytes, by ReadWholeObject with retries. A read
// of a Source has to know its length, so an object of unknown length does not go through one. Any
// thread.
absl::StatusOr<WholeObject> FetchText(const SourceAddress& address, absl::string_view name,
                                      int64_t bytes_max, const OpenOptions& options,
                                      const RetryOptions& retry, const WorkStop& stop);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SHARD_READ_TEXT_H_
