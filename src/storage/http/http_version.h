// The version of an object that an answer over HTTP is of, as far as the server says.
#ifndef SLUICE_SRC_STORAGE_HTTP_HTTP_VERSION_H_
#define SLUICE_SRC_STORAGE_HTTP_HTTP_VERSION_H_

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

// Both texts empty: not known, or the server does not say.
struct HttpVersion {
  std::string etag;
  std::string last_modified;
  int64_t bytes = -1;  // of the object; -1: not known, or the server does not say

  bool is_known() const { return !etag.empty() || !last_modified.empty(); }
};

// One for each object of a source. Processes that read the same objects tell each other.
using HttpVersions = std::vector<HttpVersion>;

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_HTTP_HTTP_VERSION_H_
