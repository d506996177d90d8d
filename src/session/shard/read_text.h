// Reads one object as text, and waits: an index, before anything moves.
#ifndef SLUICE_SRC_SESSION_SHARD_READ_TEXT_H_
#define SLUICE_SRC_SESSION_SHARD_READ_TEXT_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "session/base/own_work.h"
#include "sluice/stream.h"
#include "storage/open/open_source.h"
#include "storage/open/source_address.h"
#include "storage/open/whole_object.h"
#include "storage/s3/s3_listing.h"

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

// The objects right below `address`, which is of S3, in the order of names: pages of ReadStorePage
// with retries. Objects do not count that hidden files would not, or whose names do not end in
// `suffix`. NotFound: there is none. InvalidArgument: one that counts has a name that no file has.
// Any thread.
absl::StatusOr<std::vector<S3Object>> ListStore(const SourceAddress& address,
                                                absl::string_view suffix,
                                                const OpenOptions& options,
                                                const RetryOptions& retry, const WorkStop& stop);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SHARD_READ_TEXT_H_
