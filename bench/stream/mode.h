// Who delivers the items: Sluice, or one of the plain loaders that it is compared with.
#ifndef SLUICE_BENCH_STREAM_MODE_H_
#define SLUICE_BENCH_STREAM_MODE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice::bench {

struct Mode {
  enum class Kind : uint8_t { kSluice, kSerial, kThreads };
  Kind kind = Kind::kSluice;
  int workers = 0;  // of kThreads,
  int ahead = 0;    // and items of each

  std::string Name() const;
  friend bool operator==(const Mode&, const Mode&) = default;
};

// Reads "serial" or "threads:8x4". InvalidArgument quotes what is neither.
absl::StatusOr<Mode> ParseBaselineMode(absl::string_view text);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_MODE_H_
