// Filling and sleeping.
#include "stream/generate.h"

#include <sys/prctl.h>

#include <memory>

#include "base/clock.h"
#include "job/host_clock.h"

namespace sluice::bench {

Generator MakeFillGenerator(const ShardFill& fill, int64_t generate_ns) {
  const auto kept = std::make_shared<const ShardFill>(fill);
  return [kept, generate_ns](int64_t item, absl::Span<std::byte> into) {
    const int64_t due_ns = MonotonicNs() + generate_ns;
    kept->FillItem(item, 0, into);
    if (generate_ns > 0) {
      // As the consumer does: otherwise the kernel may wake this thread 50 us late.
      prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
      SleepUntilNs(due_ns);
    }
    return absl::OkStatus();
  };
}

}  // namespace sluice::bench
