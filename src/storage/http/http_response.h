// The head of a server's answer, and whether it answers what was asked. Knows no libcurl.
#ifndef SLUICE_SRC_STORAGE_HTTP_HTTP_RESPONSE_H_
#define SLUICE_SRC_STORAGE_HTTP_HTTP_RESPONSE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/http/http_version.h"

namespace sluice {

// The head of an answer, as far as read; -1 and empty: not said.
struct HttpResponse {
  int code = 0;
  int64_t content_length = -1;
  // Content-Range: the first and last byte, and the object's size. A Content-Range that cannot be
  // read is there, with both ends -1.
  bool has_range = false;
  int64_t range_first = -1;
  int64_t range_last = -1;
  int64_t object_bytes = -1;
  std::string encoding;
  std::string location;
  std::string retry_after;
  std::string date;
  std::string region;  // of a store's bucket
  HttpVersion version;

  // Allocates nothing where the strings had room before.
  void Clear();
  // Takes one line, its end included or not. A status line begins a new answer: only the last of
  // several counts (after a 100, say). True at the empty line that ends the head of a final answer.
  bool AddLine(absl::string_view line);
};

// A longer head, with those of interim answers and what follows a chunked body, is given up:
// ResourceExhausted. libcurl keeps it in memory.
inline constexpr int64_t kHttpHeadBytesMax = 256 << 10;
absl::Status HttpHeadTooLong(absl::string_view text);

// The range that a request asked for. `object_bytes` is the object's size as far as it is known.
struct HttpRange {
  absl::string_view object;  // for messages
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t object_bytes = -1;
  const HttpVersion* version = nullptr;  // of earlier answers, if there were any
};

// OK if the body will be the range's bytes: 206 and just this range, or 200 where the range is all
// of the object. Otherwise as ReadEvent::status demands.
absl::Status CheckRangeResponse(const HttpResponse& response, const HttpRange& range);

// OK if the body will be the whole object as it is.
absl::Status CheckWholeResponse(const HttpResponse& response, absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_HTTP_HTTP_RESPONSE_H_
