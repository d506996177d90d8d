// One item after the other: made, then consumed, by one thread.
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "stream/baselines/baseline.h"

namespace sluice::bench {

absl::Status RunLoop(const BaselineJob& job, RankOutcome* outcome) {
  const StreamSource& source = job.stream->source;
  std::vector<std::byte> item(static_cast<size_t>(source.item_bytes));
  int64_t position = job.plan.NextPosition(0);
  int64_t making_ns = 0;
  while (!job.consumer->done()) {
    const int64_t number = job.plan.ItemAt(position);
    job.consumer->Asked();
    const int64_t begin_ns = MonotonicNs();
    if (absl::Status status = source.generator(number, absl::MakeSpan(item)); !status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("making item ", number, ": ", status.message()));
    }
    making_ns += MonotonicNs() - begin_ns;
    job.consumer->Arrived(true);
    job.consumer->Consume(number, job.plan.EpochOf(position),
                          DenseView(item.data(), {source.item_bytes}, DType::kU8));
    position = job.plan.NextPosition(position + 1);
    ++outcome->requests;
    outcome->bytes_read += source.item_bytes;
  }
  outcome->opens = 1;
  outcome->peak_slots = 1;
  outcome->limit_slots = 1;
  outcome->peak_bytes = source.item_bytes;
  outcome->limit_bytes = source.item_bytes;
  outcome->stage_s.read = static_cast<double>(making_ns) * 1e-9;
  return absl::OkStatus();
}

}  // namespace sluice::bench
