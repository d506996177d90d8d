// Fuzz target: whatever a server answers, its head is taken or refused with a short text.
#include "fuzz/fuzz_bytes.h"
#include "storage/http/http_response.h"

namespace sluice {
namespace {

HttpResponse Take(absl::string_view head) {
  HttpResponse response;
  while (!head.empty()) {
    const size_t end = head.find('\n');
    const absl::string_view line = head.substr(0, end == head.npos ? end : end + 1);
    if (response.AddLine(line)) break;
    head.remove_prefix(line.size());
  }
  return response;
}

void TryRange(const HttpResponse& response, int64_t offset, int64_t bytes, int64_t object_bytes,
              const HttpVersion* version) {
  const HttpRange range = {"shards/a.bin", offset, bytes, object_bytes, version};
  const absl::Status status = CheckRangeResponse(response, range);
  if (!status.ok()) return CheckError(status);
  SLUICE_CHECK(response.code == 206 || response.code == 200, "another answer was taken");
  SLUICE_CHECK(response.content_length < 0 || response.content_length == bytes,
               "an answer of another length was taken");
  SLUICE_CHECK(response.code != 206 || response.range_first == offset,
               "an answer from elsewhere was taken");
  SLUICE_CHECK(version == nullptr || version->etag.empty() || response.version.etag.empty() ||
                   response.version.etag == version->etag,
               "an answer of another version was taken");
}

}  // namespace
}  // namespace sluice

SLUICE_FUZZ_TARGET(http_head) {
  const sluice::HttpResponse response = sluice::Take(sluice::TextOf(data, size));
  const sluice::HttpVersion version = {"\"a\"", "Mon, 01 Jan 2024 00:00:00 GMT"};
  for (const sluice::HttpVersion* const known :
       {static_cast<const sluice::HttpVersion*>(nullptr), &version}) {
    sluice::TryRange(response, 0, 100, -1, known);
    sluice::TryRange(response, 100, 100, 1000, known);
    sluice::TryRange(response, int64_t{1} << 62, 1, -1, known);
  }
  const absl::Status whole = sluice::CheckWholeResponse(response, "index.json");
  if (!whole.ok()) sluice::CheckError(whole);
  return 0;
}
