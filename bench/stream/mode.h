// Who delivers the items: Sluice, or one of the plain loaders that it is compared with.
#ifndef SLUICE_BENCH_STREAM_MODE_H_
#define SLUICE_BENCH_STREAM_MODE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice::bench {

struct Mode {
  // kWarm: Sluice once more, without the injected latency. It bounds what hiding latency can give.
  enum class Kind : uint8_t { kSluice, kWarm, kSerial, kWaves, kThreads, kLoop };
  Kind kind = Kind::kSluice;
  int workers = 0;  // of kThreads,
  int ahead = 0;    // and items of each
  int slabs = 0;    // of kWaves

  std::string Name() const;
  // A stream of the library's delivers the items.
  bool is_stream() const { return kind == Kind::kSluice || kind == Kind::kWarm; }
  friend bool operator==(const Mode&, const Mode&) = default;
};

// Reads "warm", "serial", "loop", "waves:8" or "threads:8x4". InvalidArgument quotes what is none
// of them.
absl::StatusOr<Mode> ParseBaselineMode(absl::string_view text);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_MODE_H_
