// The chunks of a redistribution as the baselines see them: one region of one tensor that one
// source rank has and one target rank needs. Enumerated in the same order on all ranks.
#ifndef SLUICE_BENCH_RESHARD_BASELINES_CHUNKS_H_
#define SLUICE_BENCH_RESHARD_BASELINES_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"
#include "workload/reduce.h"

namespace sluice::bench {

// What OwnedRanges returns: ascending ranges of global indices per dimension.
using Ranges = std::vector<std::vector<IndexRange>>;
// Of a valid layout.
Ranges OwnedBy(const Layout& layout, absl::Span<const int64_t> shape, int rank);

// A product of ranges of local positions, in a dense local tensor of `shape`.
class Block {
 public:
  // Ranges ascend; touching ones are joined.
  Block(std::vector<int64_t> shape, const Ranges& positions);

  int64_t elements() const { return elements_; }
  // One range in each dimension.
  bool box() const;
  // One stretch of memory, from `first()` on.
  bool contiguous() const;
  int64_t first() const;  // offset of the first element, in elements

  const std::vector<int64_t>& shape() const { return shape_; }
  const Ranges& positions() const { return positions_; }

  // Calls `visit(offset, count)` for each stretch of memory, in elements, in row-major order.
  template <typename Visit>
  void ForEachRun(Visit visit) const {
    if (elements_ > 0) Walk(0, 0, visit);
  }

 private:
  template <typename Visit>
  void Walk(size_t dim, int64_t offset, Visit& visit) const {
    for (const IndexRange& range : positions_[dim]) {
      if (dim == run_dim_) {
        visit(offset + range.begin * strides_[dim], (range.end - range.begin) * strides_[dim]);
        continue;
      }
      for (int64_t i = range.begin; i < range.end; ++i) {
        Walk(dim + 1, offset + i * strides_[dim], visit);
      }
    }
  }

  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  Ranges positions_;
  int64_t elements_ = 1;
  size_t run_dim_ = 0;  // all dimensions after it are whole
};

// The elements that two owners of parts of a tensor have in common, as each finds them in its own
// dense local tensor.
struct SharedBlock {
  Block src;
  Block dst;
};

// Nothing if they share no element.
std::optional<SharedBlock> Intersect(const Ranges& src, const Ranges& dst);

// Copies the block's elements between a local tensor of `dtype` and a dense stretch of
// `wire_dtype`, casting if these differ.
void Pack(const Block& block, DType dtype, const std::byte* local, DType wire_dtype,
          std::byte* wire);
void Unpack(const Block& block, DType dtype, std::byte* local, DType wire_dtype,
            const std::byte* wire);

struct Chunk {
  size_t tensor;
  int src;
  int dst;
  // Under a Partial source, the chunks of one region are its contributions, one after the other.
  size_t contribution;
  const SourceGroups* groups;  // of the tensor
  const SharedBlock* block;
};

// A target that has the elements itself is its own source; the others take turns over the ranks
// that hold them.
void ForEachChunk(const TransferSpec& spec, absl::FunctionRef<void(const Chunk&)> visit);

// What the chunks of `tensor` travel as: contributions as they are, else the smaller dtype.
DType WireDType(const TensorTransfer& tensor);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_BASELINES_CHUNKS_H_
