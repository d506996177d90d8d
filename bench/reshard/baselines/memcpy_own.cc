// No redistribution but a measure for all of them: each rank writes what its targets are to hold,
// from a copy of its own, by memcpy. Ranks without targets do nothing, and plain stores read what
// they write, so this is no bound: bound.cc has one.
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "reshard/baselines/baseline.h"
#include "sluice/status.h"
#include "workload/local_part.h"

namespace sluice::bench {
namespace {

class MemcpyOwn final : public Baseline {
 public:
  absl::Status Plan(const BaselineJob& job) override {
    SLUICE_RETURN_IF_ERROR(FillOnce(job));
    targets_ = job.dst;
    for (const TensorView& view : targets_) {
      const absl::Span<std::byte> bytes = BytesOf(view);
      contents_.emplace_back(bytes.begin(), bytes.end());
    }
    return absl::OkStatus();
  }

  absl::Status Run() override {
    for (size_t i = 0; i < contents_.size(); ++i) {
      if (contents_[i].empty()) continue;
      std::memcpy(BytesOf(targets_[i]).data(), contents_[i].data(), contents_[i].size());
    }
    return absl::OkStatus();
  }

 private:
  absl::Span<const TensorView> targets_;
  std::vector<std::vector<std::byte>> contents_;  // by target
};

}  // namespace

std::unique_ptr<Baseline> MakeMemcpyOwnBaseline() { return std::make_unique<MemcpyOwn>(); }

}  // namespace sluice::bench
