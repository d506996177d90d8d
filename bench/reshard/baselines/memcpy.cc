// No redistribution but a bound on all of them: each rank writes what its targets are to hold, from
// a copy of its own, by memcpy. Each byte is written once, and nobody waits for another rank.
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "reshard/baselines/baseline.h"

namespace sluice::bench {
namespace {

std::byte* DataOf(const TensorView& view) {
  return view.data == nullptr ? nullptr : static_cast<std::byte*>(view.data) + view.byte_offset;
}

size_t BytesOf(const TensorView& view) {
  size_t bytes = DTypeBytes(view.dtype);
  for (const int64_t size : view.shape) bytes *= static_cast<size_t>(size);
  return bytes;
}

class Memcpy final : public Baseline {
 public:
  // What the targets are to hold is had by messages, once.
  absl::Status Plan(const BaselineJob& job) override {
    const std::unique_ptr<Baseline> isend = MakeIsendBaseline();
    absl::Status status = isend->Plan(job);
    if (status.ok()) status = isend->Run();
    if (!status.ok()) return status;
    targets_ = job.dst;
    for (const TensorView& view : targets_) {
      const std::byte* const data = DataOf(view);
      contents_.emplace_back(data, data + (data == nullptr ? 0 : BytesOf(view)));
    }
    return absl::OkStatus();
  }

  absl::Status Run() override {
    for (size_t i = 0; i < contents_.size(); ++i) {
      if (contents_[i].empty()) continue;
      std::memcpy(DataOf(targets_[i]), contents_[i].data(), contents_[i].size());
    }
    return absl::OkStatus();
  }

 private:
  absl::Span<const TensorView> targets_;
  std::vector<std::vector<std::byte>> contents_;  // by target
};

}  // namespace

std::unique_ptr<Baseline> MakeMemcpyBaseline() { return std::make_unique<Memcpy>(); }

}  // namespace sluice::bench
