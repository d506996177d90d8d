// MPI_Alltoallw with subarray types: the library of MPI does the packing. With several tensors, a
// pair's types are joined into one, so that there is one call for all.
#include <mpi.h>

#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "reshard/baselines/baseline.h"
#include "reshard/baselines/chunks.h"
#include "reshard/baselines/wire.h"
#include "sluice/status.h"
#include "workload/reduced_values.h"

namespace sluice::bench {
namespace {

MPI_Datatype ElementType(int64_t bytes) {
  switch (bytes) {
    case 2:
      return MPI_UINT16_T;
    case 4:
      return MPI_UINT32_T;
    case 16:
      return MPI_C_DOUBLE_COMPLEX;
    case 8:
      return MPI_UINT64_T;
    default:
      return MPI_BYTE;
  }
}

// The parts of one peer's type.
struct Parts {
  std::vector<MPI_Datatype> types;
  std::vector<MPI_Aint> addresses;
};

class Alltoallw final : public Baseline {
 public:
  Alltoallw() = default;
  Alltoallw(const Alltoallw&) = delete;
  Alltoallw& operator=(const Alltoallw&) = delete;
  ~Alltoallw() override {
    for (std::vector<MPI_Datatype>* types : {&send_types_, &receive_types_}) {
      for (MPI_Datatype& type : *types) {
        if (type != MPI_BYTE) MPI_Type_free(&type);
      }
    }
  }

  absl::Status Plan(const BaselineJob& job) override {
    SLUICE_RETURN_IF_ERROR(CheckExpressible(*job.spec));
    wire_ = job.wire;
    std::map<int, Parts> sends;
    std::map<int, Parts> receives;
    ForEachChunk(*job.spec, [&](const Chunk& chunk) {
      if (chunk.src == job.rank) Add(chunk.block->src, job.src[chunk.tensor], &sends[chunk.dst]);
      if (chunk.dst == job.rank) Add(chunk.block->dst, job.dst[chunk.tensor], &receives[chunk.src]);
    });
    int ranks = 0;
    MPI_Comm_size(wire_->comm(), &ranks);
    zeros_.assign(static_cast<size_t>(ranks), 0);
    Join(&sends, ranks, &send_counts_, &send_types_);
    Join(&receives, ranks, &receive_counts_, &receive_types_);
    return absl::OkStatus();
  }

  absl::Status Run() override {
    const int code =
        MPI_Ialltoallw(MPI_BOTTOM, send_counts_.data(), zeros_.data(), send_types_.data(),
                       MPI_BOTTOM, receive_counts_.data(), zeros_.data(), receive_types_.data(),
                       wire_->comm(), &requests_.emplace_back());
    SLUICE_RETURN_IF_ERROR(Wire::FromMpi(code, "MPI_Ialltoallw"));
    return wire_->Wait(&requests_);
  }

 private:
  static absl::Status CheckExpressible(const TransferSpec& spec) {
    for (const TensorTransfer& tensor : spec.tensors) {
      if (HasPartial(tensor.src)) return absl::UnimplementedError("MPI_Alltoallw does not reduce");
      if (tensor.src_dtype != tensor.dst_dtype) {
        return absl::UnimplementedError("MPI_Alltoallw does not cast");
      }
      for (const int64_t size : tensor.shape) {
        if (size > std::numeric_limits<int>::max()) {
          return absl::UnimplementedError("a dimension is too long for an MPI subarray");
        }
      }
    }
    absl::Status status;
    ForEachChunk(spec, [&](const Chunk& chunk) {
      if (!status.ok() || (chunk.block->src.box() && chunk.block->dst.box())) return;
      status = absl::UnimplementedError(absl::StrCat("what rank ", chunk.src, " has for rank ",
                                                     chunk.dst, " of tensor ", chunk.tensor,
                                                     " is not a box"));
    });
    return status;
  }

  static void Add(const Block& block, const TensorView& view, Parts* parts) {
    std::vector<int> sizes;
    std::vector<int> lengths;
    std::vector<int> starts;
    for (size_t d = 0; d < block.shape().size(); ++d) {
      const IndexRange& range = block.positions()[d][0];
      sizes.push_back(static_cast<int>(block.shape()[d]));
      lengths.push_back(static_cast<int>(range.end - range.begin));
      starts.push_back(static_cast<int>(range.begin));
    }
    MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), lengths.data(),
                             starts.data(), MPI_ORDER_C, ElementType(DTypeBytes(view.dtype)),
                             &parts->types.emplace_back());
    MPI_Get_address(view.data, &parts->addresses.emplace_back());
  }

  // One type per rank, with addresses in it; counts are 0 where there is nothing.
  static void Join(std::map<int, Parts>* parts_by_rank, int ranks, std::vector<int>* counts,
                   std::vector<MPI_Datatype>* types) {
    counts->assign(static_cast<size_t>(ranks), 0);
    types->assign(static_cast<size_t>(ranks), MPI_BYTE);
    for (auto& [rank, parts] : *parts_by_rank) {
      const std::vector<int> ones(parts.types.size(), 1);
      MPI_Datatype* type = &(*types)[static_cast<size_t>(rank)];
      MPI_Type_create_struct(static_cast<int>(ones.size()), ones.data(), parts.addresses.data(),
                             parts.types.data(), type);
      MPI_Type_commit(type);
      (*counts)[static_cast<size_t>(rank)] = 1;
      for (MPI_Datatype& part : parts.types) MPI_Type_free(&part);
    }
  }

  Wire* wire_ = nullptr;
  std::vector<int> zeros_;
  std::vector<int> send_counts_;
  std::vector<int> receive_counts_;
  std::vector<MPI_Datatype> send_types_;
  std::vector<MPI_Datatype> receive_types_;
  Wire::Requests requests_;
};

}  // namespace

std::unique_ptr<Baseline> MakeAlltoallwBaseline() { return std::make_unique<Alltoallw>(); }

}  // namespace sluice::bench
