// First the beginning of each file, then the whole of those headers that are longer.
#include "session/stream/object_headers.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/types/span.h"
#include "session/shard/read_ranges.h"
#include "storage/format/npy.h"
#include "storage/format/safetensors.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// The size that most headers fit in; the others are read once more, as long as they say they are.
constexpr int64_t kFirstBytes = 64 << 10;

absl::StatusOr<int64_t> HeaderBytes(ItemFormat format, const std::string& first, int64_t bytes) {
  const absl::Span<const std::byte> begin(reinterpret_cast<const std::byte*>(first.data()),
                                          first.size());
  return format == ItemFormat::kNpy ? NpyHeaderBytes(begin, bytes)
                                    : SafetensorsHeaderBytes(begin, bytes);
}

// Reads the first `bytes[i]` bytes of each file for which that is not 0, in place of `texts[i]`.
absl::Status ReadFirst(Source* source, const std::vector<std::string>& names,
                       const std::vector<int64_t>& bytes, const RetryOptions& retry,
                       const WorkStop& stop, std::vector<std::string>* texts) {
  std::vector<RangeRead> ranges;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > 0) ranges.push_back({static_cast<int>(i), 0, bytes[i], ""});
  }
  absl::Status status = ReadRanges(source, names, retry, stop, absl::MakeSpan(ranges));
  if (!status.ok()) return status;
  for (RangeRead& range : ranges) {
    (*texts)[static_cast<size_t>(range.object)] = std::move(range.text);
  }
  return status;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadObjectHeaders(Source* source,
                                                           const std::vector<ObjectFile>& files,
                                                           ItemFormat format,
                                                           const RetryOptions& retry,
                                                           const WorkStop& stop) {
  std::vector<std::string> headers(files.size());
  std::vector<std::string> names;
  std::vector<int64_t> bytes;
  for (const ObjectFile& file : files) {
    names.push_back(file.name);
    bytes.push_back(std::min(file.bytes, kFirstBytes));
  }
  absl::Status status = ReadFirst(source, names, bytes, retry, stop, &headers);
  if (!status.ok()) return status;
  for (size_t i = 0; i < files.size(); ++i) {
    const absl::StatusOr<int64_t> header = HeaderBytes(format, headers[i], files[i].bytes);
    if (!header.ok()) {
      return MakeError(header.status().code(), files[i].name, ": ", header.status());
    }
    const bool is_longer = *header > bytes[i];
    bytes[i] = is_longer ? *header : 0;
    if (!is_longer) headers[i].resize(static_cast<size_t>(*header));
  }
  status = ReadFirst(source, names, bytes, retry, stop, &headers);
  if (!status.ok()) return status;
  return headers;
}

}  // namespace sluice
