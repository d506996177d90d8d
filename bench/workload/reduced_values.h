// What targets of a Partial source must hold: all contributions to each element, made again from
// the fill, reduced in the source dtype and cast.
#ifndef SLUICE_BENCH_WORKLOAD_REDUCED_VALUES_H_
#define SLUICE_BENCH_WORKLOAD_REDUCED_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/transfer.h"
#include "workload/fill.h"
#include "workload/reduce.h"

namespace sluice::bench {

// How `rank`, in the source mesh of `tensor`, fills its elements: with its contribution if a
// placement is Partial, else with the elements' values.
Filler MakeSourceFiller(const TensorTransfer& tensor, int rank, const Fill& fill);

bool HasPartial(const Layout& layout);

class ReducedValues final : public Values {
 public:
  // `tensor`: valid, with a cast that ConvertElements has.
  ReducedValues(const TensorTransfer& tensor, const Fill& fill);

  void Write(int64_t g, int64_t count, std::byte* dst) const override;

 private:
  // Indices [begin, end) of one tensor dimension; `position`: what they add to their group's base.
  struct Owned {
    int64_t begin;
    int64_t end;
    int64_t position;
  };
  // From a global element on: how many elements belong to one group, and which.
  struct Stretch {
    int64_t base;
    int64_t count;
  };

  void AddOwned(const TensorTransfer& tensor, size_t dim);
  Stretch StretchAt(int64_t g) const;
  void WriteStretch(int64_t g, const Stretch& stretch, std::byte* dst) const;

  DType src_dtype_;
  SourceGroups groups_;
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  std::vector<std::vector<Owned>> owned_;     // by tensor dimension, ascending
  size_t last_cut_ = 0;                       // the last tensor dimension that is cut
  std::vector<std::vector<Filler>> fillers_;  // by base and contribution; empty: no base
  // Contributions of one stretch; scratch of Write, so that it allocates nothing.
  mutable std::vector<std::vector<std::byte>> stretches_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_REDUCED_VALUES_H_
