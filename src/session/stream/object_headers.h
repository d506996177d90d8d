// The headers of a directory's files, which say what items are in them.
#ifndef SLUICE_SRC_SESSION_STREAM_OBJECT_HEADERS_H_
#define SLUICE_SRC_SESSION_STREAM_OBJECT_HEADERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "session/base/own_work.h"
#include "sluice/stream.h"
#include "storage/source.h"

namespace sluice {

struct ObjectFile {
  std::string name;
  int64_t bytes = 0;
};

// The header of each of `files`, which are the objects of `source`, and no more than the header.
// `format` is one that has headers. Many are read at a time, in one or two reads each. Retries,
// stop and errors of reads are those of ReadRanges; other errors name the file.
absl::StatusOr<std::vector<std::string>> ReadObjectHeaders(Source* source,
                                                           const std::vector<ObjectFile>& files,
                                                           ItemFormat format,
                                                           const RetryOptions& retry,
                                                           const WorkStop& stop);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_OBJECT_HEADERS_H_
