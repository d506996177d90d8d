// One rank's memory of all tensors on one side of a checkpoint, with the values that a tensor's
// name stands for.
#ifndef SLUICE_BENCH_CHECKPOINT_RANK_TENSORS_H_
#define SLUICE_BENCH_CHECKPOINT_RANK_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sluice/checkpoint.h"
#include "sluice/transfer.h"
#include "workload/fill.h"
#include "workload/local_part.h"

namespace sluice::bench {

class RankTensors {
 public:
  // `loads`: the side that is loaded into. ResourceExhausted if memory cannot be had; errors of the
  // layouts.
  static absl::StatusOr<RankTensors> Create(const TransferSpec& spec, bool loads, int rank,
                                            int64_t seed);

  absl::Span<const CheckpointTensor> tensors() const { return tensors_; }
  // What this rank has of the tensor at `place` in tensors().
  const LocalPart& part(size_t place) const { return parts_[place]; }
  void Fill();
  void Poison();
  // Gives the memory back to the system: it comes anew, a page at a time, when it is touched.
  absl::Status Renew();
  // Elements that are not what Fill writes; of a sample of them.
  int64_t CountWrong(bool sampled = false) const;

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }  // NOLINT
  };
  RankTensors() = default;

  std::unique_ptr<std::byte[], Free> data_;
  int64_t bytes_ = 0;
  std::vector<LocalPart> parts_;
  std::vector<Filler> fillers_;
  std::vector<CheckpointTensor> tensors_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_CHECKPOINT_RANK_TENSORS_H_
