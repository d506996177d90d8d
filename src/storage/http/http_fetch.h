// One whole object over HTTP, waited for: an index, when a stream is opened. Never on a hot path.
#ifndef SLUICE_SRC_STORAGE_HTTP_HTTP_FETCH_H_
#define SLUICE_SRC_STORAGE_HTTP_HTTP_FETCH_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/http/http_options.h"

namespace sluice {

struct HttpFetch {
  std::string url;
  std::string query = {};  // without '?', percent-encoded
  std::string shown = {};  // for messages; empty: the URL
};

// The object at `url` (CheckHttpUrl), for which all of `options` but the connections and sizes
// count. Errors are those of ReadEvent::status and MakeHttpSource; ResourceExhausted if the object
// has more than `bytes_max` bytes. Blocks, at most for options.timeout_ns,
// and no longer than options.stall_timeout_ns (in whole seconds) without a byte. Any thread.
// Ends with Cancelled soon after `stop`, if there is one, has become true.
absl::StatusOr<std::string> FetchHttpObject(const HttpFetch& what, int64_t bytes_max,
                                            const HttpOptions& options,
                                            const std::atomic<bool>* stop = nullptr);
inline absl::StatusOr<std::string> FetchHttpObject(absl::string_view url, int64_t bytes_max,
                                                   const HttpOptions& options,
                                                   const std::atomic<bool>* stop = nullptr) {
  return FetchHttpObject(HttpFetch{std::string(url)}, bytes_max, options, stop);
}

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_HTTP_HTTP_FETCH_H_
