// Options of HTTP: how many connections, how long to wait, whom to trust.
#ifndef SLUICE_SRC_STORAGE_HTTP_HTTP_OPTIONS_H_
#define SLUICE_SRC_STORAGE_HTTP_HTTP_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/http/http_signer.h"
#include "storage/http/http_version.h"

namespace sluice {

// A slower answer is as good as silence: byte by byte an object would have no end.
inline constexpr long kHttpLeastBytesPerSecond = 1024;

struct HttpOptions {
  // Requests at once, each on a connection of its own. A source talks to one host: the smaller of
  // the two counts, and what is beyond it waits its turn.
  int connections_per_host = 16;
  int connections_max = 64;
  // From the moment that a request has its turn, connecting included, to its last byte. INT64_MAX:
  // no limit, of this and of the next one.
  int64_t timeout_ns = 60'000'000'000;
  // Between two bytes, before the first, and while fewer come than kHttpLeastBytesPerSecond.
  int64_t stall_timeout_ns = 20'000'000'000;
  // Certificates (PEM) to trust for https; empty: the system's.
  std::string ca_file = {};
  // Sizes of the objects as far as they are known, -1 where not; empty: none is. An answer that
  // states another size is an error.
  std::vector<int64_t> object_bytes = {};
  // Versions of the objects as far as they are known, one for each object; or null. A source adds
  // those that it meets first, within its own calls and by its own thread. An answer of another
  // version is an error.
  std::shared_ptr<HttpVersions> versions = nullptr;
  // Signs all requests; null: they are not signed.
  std::shared_ptr<HttpSigner> signer = nullptr;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_HTTP_HTTP_OPTIONS_H_
