// Names of modes.
#include "stream/mode.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sluice::bench {
namespace {

constexpr int kMostWorkers = 1024;
constexpr int kMostAhead = 65536;
constexpr int kMostSlabs = 65536;

}  // namespace

std::string Mode::Name() const {
  switch (kind) {
    case Kind::kWarm:
      return "warm";
    case Kind::kSerial:
      return "serial";
    case Kind::kLoop:
      return "loop";
    case Kind::kWaves:
      return absl::StrCat("waves:", slabs);
    case Kind::kThreads:
      return absl::StrCat("threads:", workers, "x", ahead);
    case Kind::kSluice:
      break;
  }
  return "sluice";
}

absl::StatusOr<Mode> ParseBaselineMode(absl::string_view text) {
  if (text == "warm") return Mode{Mode::Kind::kWarm};
  if (text == "serial") return Mode{Mode::Kind::kSerial};
  if (text == "loop") return Mode{Mode::Kind::kLoop};
  absl::string_view counts = text;
  Mode mode{Mode::Kind::kWaves};
  if (absl::ConsumePrefix(&counts, "waves:") && absl::SimpleAtoi(counts, &mode.slabs) &&
      mode.slabs >= 1 && mode.slabs <= kMostSlabs) {
    return mode;
  }
  counts = text;
  mode = Mode{Mode::Kind::kThreads};
  if (absl::ConsumePrefix(&counts, "threads:")) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(counts, absl::MaxSplits('x', 1));
    if (absl::SimpleAtoi(sides.first, &mode.workers) && mode.workers >= 1 &&
        mode.workers <= kMostWorkers && absl::SimpleAtoi(sides.second, &mode.ahead) &&
        mode.ahead >= 1 && mode.ahead <= kMostAhead) {
      return mode;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is neither warm, serial, loop, waves:N (N slabs, 1 to ", kMostSlabs,
      ") nor threads:WxQ, W workers (1 to ", kMostWorkers, ") of Q items each"));
}

}  // namespace sluice::bench
