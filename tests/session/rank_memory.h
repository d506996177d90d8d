// One rank's memory of all tensors of a transfer, on both sides, for tests.
#ifndef SLUICE_TESTS_SESSION_RANK_MEMORY_H_
#define SLUICE_TESTS_SESSION_RANK_MEMORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "session/tensor_memory.h"
#include "sluice/transfer.h"

namespace sluice::session_test {

class RankMemory {
 public:
  // Dense views, or, with a seed, views of random styles. With an accelerator they name its memory;
  // with a seed, too, that or the host's, by chance for each tensor and side.
  RankMemory(const TransferSpec& spec, int rank, std::optional<uint64_t> style_seed = {},
             const std::shared_ptr<Accelerator>& accelerator = nullptr);

  const std::vector<TensorView>& src() const { return src_views_; }
  const std::vector<TensorView>& dst() const { return dst_views_; }

  // Sets sources to the values of `round`, and poisons destinations.
  void Prepare(uint64_t round);
  // Names the first tensor whose destination is wrong, or whose source has changed, or of which a
  // byte outside the views has; empty if all is well.
  std::string Check(uint64_t round) const;
  // The same of the sources alone.
  std::string CheckSources(uint64_t round) const;
  // True if nothing has changed since Prepare.
  bool Untouched(uint64_t round) const;

 private:
  // Kept also where no tensor is on it: its end frees memory, which waits for all that the GPU
  // does.
  std::shared_ptr<Device> device_;
  // Of a tensor, or of a box of it.
  struct Memory {
    size_t tensor;
    TensorMemory memory;
  };
  std::vector<Memory> src_;
  std::vector<Memory> dst_;
  std::vector<TensorView> src_views_;
  std::vector<TensorView> dst_views_;
};

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_RANK_MEMORY_H_
