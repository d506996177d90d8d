// MPI's own collective of the case's name, a call for each tensor.
//
// The calls block, unlike all else here. MPI libraries put their best algorithms there, and a
// comparison with others would flatter us. A rank that dies ends the job, as mpirun sees to it.
#include <mpi.h>

#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "reshard/baselines/baseline.h"
#include "reshard/baselines/wire.h"
#include "sluice/status.h"
#include "workload/collectives.h"
#include "workload/local_part.h"
#include "workload/reduced_values.h"

namespace sluice::bench {
namespace {

// Sums of more f32 fill values than this may be rounded, which depends on their order.
constexpr int kMostExactRanks = 256;

// The type in which elements can be added up; null where MPI has none, or sums may be rounded.
MPI_Datatype NumberType(DType dtype, int ranks) {
  switch (dtype) {
    case DType::kF64:
      return MPI_DOUBLE;
    case DType::kF32:
      return ranks <= kMostExactRanks ? MPI_FLOAT : MPI_DATATYPE_NULL;
    case DType::kI64:
      return MPI_INT64_T;
    case DType::kI32:
      return MPI_INT32_T;
    case DType::kU64:
      return MPI_UINT64_T;
    case DType::kU32:
      return MPI_UINT32_T;
    default:
      return MPI_DATATYPE_NULL;
  }
}

struct Call {
  Collective collective;
  MPI_Comm comm;  // null on ranks that are not in it
  MPI_Datatype type;
  int all;   // elements of the tensor
  int part;  // of what one rank has, or one gives to another
  std::byte* src;
  std::byte* dst;
  size_t bytes;  // of the tensor
};

class MpiCollective final : public Baseline {
 public:
  absl::Status Plan(const BaselineJob& job) override {
    rank_ = job.rank;
    sets_.emplace(job.wire->comm());
    // Everywhere the same, so that either all ranks make communicators or none.
    for (const TensorTransfer& tensor : job.spec->tensors) {
      SLUICE_ASSIGN_OR_RETURN(const auto call, Make(tensor));
      calls_.push_back(call);
    }
    for (size_t i = 0; i < calls_.size(); ++i) {
      const TensorTransfer& tensor = job.spec->tensors[i];
      SLUICE_ASSIGN_OR_RETURN(calls_[i].comm, sets_->Get(0, Larger(tensor).ranks()));
      calls_[i].src = static_cast<std::byte*>(job.src[i].data);
      calls_[i].dst = static_cast<std::byte*>(job.dst[i].data);
    }
    return absl::OkStatus();
  }

  absl::Status Run() override {
    for (const Call& call : calls_) {
      if (call.comm == MPI_COMM_NULL) continue;
      SLUICE_RETURN_IF_ERROR(Carry(call));
    }
    return absl::OkStatus();
  }

 private:
  static const Mesh& Larger(const TensorTransfer& tensor) {
    const bool src = tensor.src.mesh.ranks().size() > tensor.dst.mesh.ranks().size();
    return src ? tensor.src.mesh : tensor.dst.mesh;
  }

  static absl::StatusOr<Call> Make(const TensorTransfer& tensor) {
    const std::optional<Collective> collective = CollectiveOf(tensor.src, tensor.dst);
    if (!collective) return absl::UnimplementedError("the layouts are no collective's");
    if (tensor.src_dtype != tensor.dst_dtype) {
      return absl::UnimplementedError("collectives of MPI do not cast");
    }
    const auto ranks = static_cast<int64_t>(Larger(tensor).ranks().size());
    const int64_t parts = *collective == Collective::kAllToAll ? ranks * ranks : ranks;
    const bool is_cut =
        *collective != Collective::kBroadcast && *collective != Collective::kAllReduce;
    if (is_cut && tensor.shape[0] % parts != 0) {
      return absl::UnimplementedError(
          absl::StrCat("the first dimension is no multiple of ", parts, ": parts differ"));
    }
    int64_t elements = ElementsOf(tensor.shape);
    const int64_t element = DTypeBytes(tensor.dst_dtype);
    Call call = {};
    call.collective = *collective;
    call.bytes = static_cast<size_t>(elements * element);
    call.type = MPI_BYTE;
    if (HasPartial(tensor.src)) {
      call.type = NumberType(tensor.src_dtype, static_cast<int>(ranks));
      if (call.type == MPI_DATATYPE_NULL) {
        return absl::UnimplementedError(
            absl::StrCat("MPI does not add up ", DTypeName(tensor.src_dtype), " as we do"));
      }
    } else {
      elements *= element;
    }
    if (elements > std::numeric_limits<int>::max()) {
      return absl::UnimplementedError("more than MPI can count");
    }
    call.all = static_cast<int>(elements);
    call.part = static_cast<int>(elements / parts);
    return call;
  }

  absl::Status Carry(const Call& c) const {
    switch (c.collective) {
      case Collective::kAllGather:
        return Wire::FromMpi(MPI_Allgather(c.src, c.part, c.type, c.dst, c.part, c.type, c.comm),
                             "MPI_Allgather");
      case Collective::kReduceScatter:
        return Wire::FromMpi(
            MPI_Reduce_scatter_block(c.src, c.dst, c.part, c.type, MPI_SUM, c.comm),
            "MPI_Reduce_scatter_block");
      case Collective::kAllReduce:
        return Wire::FromMpi(MPI_Allreduce(c.src, c.dst, c.all, c.type, MPI_SUM, c.comm),
                             "MPI_Allreduce");
      case Collective::kAllToAll:
        return Wire::FromMpi(MPI_Alltoall(c.src, c.part, c.type, c.dst, c.part, c.type, c.comm),
                             "MPI_Alltoall");
      case Collective::kBroadcast:
        // MPI's root has the data where others get it.
        if (rank_ == 0 && c.bytes > 0) std::memcpy(c.dst, c.src, c.bytes);
        return Wire::FromMpi(MPI_Bcast(c.dst, c.all, c.type, 0, c.comm), "MPI_Bcast");
      case Collective::kScatter:
        return Wire::FromMpi(MPI_Scatter(c.src, c.part, c.type, c.dst, c.part, c.type, 0, c.comm),
                             "MPI_Scatter");
      case Collective::kGather:
        return Wire::FromMpi(MPI_Gather(c.src, c.part, c.type, c.dst, c.part, c.type, 0, c.comm),
                             "MPI_Gather");
    }
    return absl::InternalError("no such collective");
  }

  int rank_ = -1;
  std::optional<RankSets> sets_;
  std::vector<Call> calls_;
};

}  // namespace

std::unique_ptr<Baseline> MakeMpiCollectiveBaseline() { return std::make_unique<MpiCollective>(); }

}  // namespace sluice::bench
