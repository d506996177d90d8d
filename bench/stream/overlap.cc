// Times that are known, over times that were measured.
#include "stream/overlap.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice::bench {
namespace {

double GenerateSeconds(const StreamBenchOptions& options) { return options.generate_ms * 1e-3; }
double ConsumeSeconds(const StreamBenchOptions& options) { return options.consume_us * 1e-6; }

}  // namespace

double SpeedUp(const StreamBenchOptions& options, int world, const Result& result) {
  if (result.total.seconds <= 0) return 0;
  const double each = GenerateSeconds(options) + ConsumeSeconds(options);
  return static_cast<double>(result.total.items) / world * each / result.total.seconds;
}

double SpeedUpIdeal(const StreamBenchOptions& options, int world) {
  const int makers = options.stream.reads.exchange && !options.deals() ? world : 1;
  // Those that work at one batch; a batch is made in so many turns.
  const int64_t items = options.stream.buffers.batch_items;
  const int64_t lanes =
      std::clamp<int64_t>(int64_t{options.stream.source.generator_threads} * makers, 1, items);
  const int64_t turns = (items + lanes - 1) / lanes;
  const double batch = static_cast<double>(items);
  const double make = GenerateSeconds(options) * static_cast<double>(turns) / batch;
  const double consume = ConsumeSeconds(options);
  const double least =
      options.generate_order == "after-update" ? make + consume : std::max(make, consume);
  return least > 0 ? (GenerateSeconds(options) + consume) / least : 0;
}

std::string OverlapLines(const StreamBenchOptions& options, int world,
                         const std::vector<Result>& results) {
  std::string text;
  const double ideal = SpeedUpIdeal(options, world);
  for (const Result& result : results) {
    absl::StrAppend(&text, "# ", result.mode, ": ");
    if (ideal > 0) {
      absl::StrAppendFormat(&text, "%.3f times as fast as one after the other",
                            SpeedUp(options, world, result));
      if (result.mode == Mode().Name()) absl::StrAppendFormat(&text, " (at most %.3f)", ideal);
      absl::StrAppend(&text, ", ");
    }
    absl::StrAppend(&text, "staleness at most ", result.total.staleness_max, ", items ",
                    absl::Hex(result.total.item_hash, absl::kZeroPad16), "\n");
  }
  return text;
}

}  // namespace sluice::bench
