// All tensors of a job on all ranks, in symbols, and what the plans' chunks do to them.
#ifndef SLUICE_TESTS_PLAN_JOB_TENSORS_H_
#define SLUICE_TESTS_PLAN_JOB_TENSORS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "plan/job.h"
#include "plan/plan.h"
#include "plan/region_map.h"
#include "plan/values.h"

namespace sluice::oracle {

// One byte each; an element's value stands at its first.
using Wire = std::vector<Value>;

// All that changes memory or a wire checks its bounds, that nothing is written twice, and that runs
// and extents fit each other.
class JobTensors {
 public:
  // Both must outlive this object.
  JobTensors(const Job& job, const std::vector<Plan>& plans);

  // Writes what `rank` holds of a bucket: as its destinations get it, or as a contribution.
  absl::Status Pack(int rank, const Bucket& bucket, Wire* wire) const;
  absl::Status PackContribution(int rank, const Bucket& bucket, Wire* contribution) const;

  // Reduces contributions that are in order, level by level, into what the destinations get.
  absl::Status Reduce(int owner, const Bucket& bucket, absl::Span<const Level> levels,
                      const std::vector<Wire>& contributions, Wire* wire) const;

  // Writes what `rank` gets of a bucket; `src`: the source, or the owner of the reduction.
  absl::Status Unpack(int rank, int src, const Bucket& bucket, const Wire& wire);
  absl::Status CopyLocal(int rank, const Bucket& bucket);

  // OK if every target rank has all it should own.
  absl::Status CheckAllArrived() const;

  // Bytes of a bucket's elements, without padding, in one of the three dtypes.
  enum class As { kSrc, kWire, kDst };
  int64_t PayloadBytes(int rank, const Bucket& bucket, As as) const;

 private:
  struct LocalTensor {
    std::vector<int64_t> shape;
    std::vector<int64_t> elements;  // global flat indices
    std::vector<Value> values;
  };
  struct Tensor {
    std::vector<LocalTensor> src, dst;  // by rank
    std::vector<Value> expected;        // by element
    std::vector<uint64_t> holders;      // by element, a bit per source rank
    std::vector<uint64_t> needers;      // by element, a bit per target rank
    int64_t src_bytes, wire_bytes;
    bool reduced;
    bool gathers;  // reduced where the least crosses, not where it is needed
  };

  void AddTensor(int index);
  const Chunk& ChunkOf(int rank, const Bucket& bucket, int32_t c) const;
  const RegionMap& MapOf(int rank, int32_t region) const;
  const Tensor& TensorOf(const Chunk& chunk) const;
  absl::Status CheckChunk(int rank, const Bucket& bucket, const Chunk& chunk) const;
  absl::Status CheckRegion(int rank, const Chunk& chunk, int32_t region, bool src_is_wire,
                           bool dst_is_wire) const;
  absl::Status PackAs(As as, int rank, const Bucket& bucket, Wire* wire) const;
  absl::Status Arrive(Tensor* tensor, int src, int rank, int64_t offset, Value value);
  absl::Status CheckServer(const Tensor& tensor, int src, int rank, int64_t element) const;

  const Job& job_;
  const std::vector<Plan>& plans_;
  std::vector<std::vector<RegionMap>> maps_;  // by rank, by region
  std::vector<uint64_t> node_mates_;          // by rank, a bit per rank
  std::vector<Tensor> tensors_;
};

}  // namespace sluice::oracle

#endif  // SLUICE_TESTS_PLAN_JOB_TENSORS_H_
