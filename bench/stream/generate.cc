// Filling and sleeping.
#include "stream/generate.h"

#include <memory>

#include "absl/time/clock.h"
#include "job/host_clock.h"

namespace sluice::bench {

Generator MakeFillGenerator(const ShardFill& fill, int64_t generate_ns) {
  const auto kept = std::make_shared<const ShardFill>(fill);
  return [kept, generate_ns](int64_t item, absl::Span<std::byte> into) {
    const int64_t due_ns = NowNs() + generate_ns;
    kept->FillItem(item, 0, into);
    if (generate_ns > 0) absl::SleepFor(absl::Nanoseconds(due_ns - NowNs()));
    return absl::OkStatus();
  };
}

}  // namespace sluice::bench
