// The part of one tensor that one rank owns, as stretches of consecutive global elements.
//
// This is the benchmark's own reading of a layout for filling and checking memory. Of the library
// it asks only whether the layout is valid.
#ifndef SLUICE_BENCH_WORKLOAD_LOCAL_PART_H_
#define SLUICE_BENCH_WORKLOAD_LOCAL_PART_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "workload/owned_indices.h"

namespace sluice::bench {

int64_t ElementsOf(absl::Span<const int64_t> shape);
// All of a dense tensor; empty if it has no memory.
absl::Span<std::byte> BytesOf(const TensorView& view);

// Boxes of a rank lie one after the other, each dense.
class LocalPart {
 public:
  // Errors as ValidateLayout.
  static absl::StatusOr<LocalPart> Create(const Layout& layout, absl::Span<const int64_t> shape,
                                          int rank);

  // Of the dense local tensor; elements per dimension. With boxes: the number of elements alone.
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t elements() const { return elements_; }

  // A view of it at `data`, as a transfer takes it; null `data`: of memory to come.
  TensorView View(std::byte* data, DType dtype) const;

  // Row-major flat indices of the first and the last local element, if there are any.
  std::optional<int64_t> first() const;
  std::optional<int64_t> last() const;

  // Calls `visit(local, global, count)` for local elements [local, local + count), which are the
  // global elements [global, global + count). Together the calls cover the local tensor, in order.
  using Visit = absl::FunctionRef<void(int64_t local, int64_t global, int64_t count)>;
  void ForEachRun(Visit visit) const;

 private:
  using Stretches = std::vector<OwnedIndices::Stretch>;
  // A dense piece of it.
  struct Block {
    std::vector<Stretches> owned;  // by tensor dimension
    std::vector<int64_t> shape;
    int64_t elements = 1;
  };

  LocalPart() = default;
  void Add(Block block);
  // The last dimension that needs walking: all after it are owned whole.
  size_t RunDimension(const Block& block) const;
  void Walk(const Block& block, size_t dim, size_t run_dim, int64_t global, int64_t* local,
            Visit visit) const;

  bool has_boxes_ = false;
  std::vector<Block> blocks_;  // boxes; or the local tensor
  std::vector<int64_t> global_shape_;
  std::vector<int64_t> strides_;  // of the global tensor, in elements
  std::vector<int64_t> shape_;
  int64_t elements_ = 0;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_LOCAL_PART_H_
