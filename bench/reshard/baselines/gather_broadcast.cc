// Tensor by tensor: gathered whole on the first source rank, broadcast, cut on every target.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "reshard/baselines/baseline.h"
#include "reshard/baselines/chunks.h"
#include "reshard/baselines/wire.h"
#include "sluice/status.h"
#include "tensor/round.h"
#include "workload/local_part.h"
#include "workload/reduce.h"

namespace sluice::bench {
namespace {

constexpr int64_t kAlignment = 64;

// What the root gets of one group of source ranks: their whole local tensors, one per contribution.
struct Part {
  std::vector<int> src;
  Block in_whole;
};

struct TensorPlan {
  int root;
  std::vector<ReduceStep> steps;
  std::vector<Part> parts;
  std::optional<Block> cut;  // what this rank, if it is a target, takes out of the whole
  DType src_dtype;
  DType whole_dtype;  // as it is broadcast: the smaller of source and target
  int64_t whole_bytes;
  MPI_Comm members;     // the root, as rank 0, and the targets; null elsewhere
  std::byte* src_data;  // this rank's tensors
  std::byte* dst_data;
  DType dst_dtype;
};

class GatherBroadcast final : public Baseline {
 public:
  absl::Status Plan(const BaselineJob& job) override {
    rank_ = job.rank;
    wire_ = job.wire;
    sets_.emplace(job.wire->comm());
    size_t whole = 0;
    size_t staging = 0;
    for (size_t i = 0; i < job.spec->tensors.size(); ++i) {
      SLUICE_RETURN_IF_ERROR(AddPlan(job, i));
      const TensorPlan& plan = plans_.back();
      if (plan.members != MPI_COMM_NULL) {
        whole = std::max(whole, static_cast<size_t>(plan.whole_bytes));
      }
      if (plan.root == rank_) staging = std::max(staging, static_cast<size_t>(StagingOf(plan)));
    }
    whole_.resize(whole);
    staging_.resize(staging);
    return absl::OkStatus();
  }

  absl::Status Run() override {
    for (const TensorPlan& plan : plans_) {
      std::byte* whole = WholeOf(plan);
      SLUICE_RETURN_IF_ERROR(plan.root == rank_ ? Gather(plan, whole) : SendParts(plan));
      SLUICE_RETURN_IF_ERROR(wire_->Wait(&requests_));
      if (plan.root == rank_) PutTogether(plan, whole);
      if (plan.members == MPI_COMM_NULL) continue;
      SLUICE_RETURN_IF_ERROR(Broadcast(plan, whole));
      if (plan.cut && whole != plan.dst_data) {
        Pack(*plan.cut, plan.whole_dtype, whole, plan.dst_dtype, plan.dst_data);
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status AddPlan(const BaselineJob& job, size_t index) {
    const TensorTransfer& tensor = job.spec->tensors[index];
    const SourceGroups groups(tensor.src);
    const bool narrower = DTypeBytes(tensor.dst_dtype) < DTypeBytes(tensor.src_dtype);
    TensorPlan& plan = plans_.emplace_back();
    plan.root = tensor.src.mesh.ranks()[0];
    plan.steps = groups.steps();
    plan.src_dtype = tensor.src_dtype;
    plan.dst_dtype = tensor.dst_dtype;
    plan.whole_dtype = narrower ? tensor.dst_dtype : tensor.src_dtype;
    plan.whole_bytes = ElementsOf(tensor.shape) * DTypeBytes(plan.whole_dtype);
    plan.src_data = static_cast<std::byte*>(job.src[index].data);
    plan.dst_data = static_cast<std::byte*>(job.dst[index].data);
    AddParts(tensor, groups, &plan);
    if (tensor.dst.mesh.PositionOf(rank_)) {
      plan.cut.emplace(tensor.shape, OwnedBy(tensor.dst, tensor.shape, rank_));
    }
    SLUICE_ASSIGN_OR_RETURN(plan.members, sets_->Get(plan.root, tensor.dst.mesh.ranks()));
    return absl::OkStatus();
  }

  static void AddParts(const TensorTransfer& tensor, const SourceGroups& groups, TensorPlan* plan) {
    for (const int64_t base : groups.bases()) {
      const int first = tensor.src.mesh.ranks()[static_cast<size_t>(base)];
      Block block(tensor.shape, OwnedBy(tensor.src, tensor.shape, first));
      if (block.elements() == 0) continue;
      Part part{{}, std::move(block)};
      for (size_t i = 0; i < groups.contributions(); ++i) {
        const std::vector<int> holders = groups.Holders(base, i);
        const bool own = std::find(holders.begin(), holders.end(), plan->root) != holders.end();
        part.src.push_back(own ? plan->root : holders[plan->parts.size() % holders.size()]);
      }
      plan->parts.push_back(std::move(part));
    }
  }

  static int64_t BytesOf(const TensorPlan& plan, const Part& part) {
    return part.in_whole.elements() * DTypeBytes(plan.src_dtype);
  }

  static int64_t StagingOf(const TensorPlan& plan) {
    int64_t bytes = 0;
    for (const Part& part : plan.parts) {
      bytes += RoundUp(BytesOf(plan, part), kAlignment) * static_cast<int64_t>(part.src.size());
    }
    return bytes;
  }

  // Goes to, or comes from, its place in the whole without a copy.
  static bool IsStraight(const TensorPlan& plan, const Part& part) {
    return part.src.size() == 1 && part.in_whole.contiguous() && plan.src_dtype == plan.whole_dtype;
  }

  // Where the whole lies on this rank: in a tensor of its own, where that is the whole.
  std::byte* WholeOf(const TensorPlan& plan) {
    const int64_t elements = plan.whole_bytes / DTypeBytes(plan.whole_dtype);
    if (plan.root == rank_) {
      const bool whole = plan.parts.size() == 1 && plan.parts[0].src[0] == rank_ &&
                         IsStraight(plan, plan.parts[0]);
      return whole ? plan.src_data : whole_.data();
    }
    const bool whole =
        plan.cut && plan.cut->elements() == elements && plan.dst_dtype == plan.whole_dtype;
    return whole ? plan.dst_data : whole_.data();
  }

  absl::Status SendParts(const TensorPlan& plan) {
    for (const Part& part : plan.parts) {
      if (std::find(part.src.begin(), part.src.end(), rank_) == part.src.end()) continue;
      SLUICE_RETURN_IF_ERROR(
          wire_->Send(plan.src_data, BytesOf(plan, part), plan.root, kPayloadTag, &requests_));
    }
    return absl::OkStatus();
  }

  absl::Status Gather(const TensorPlan& plan, std::byte* whole) {
    std::byte* staging = staging_.data();
    for (const Part& part : plan.parts) {
      for (const int src : part.src) {
        std::byte* data = staging;
        if (IsStraight(plan, part)) {
          data = whole + part.in_whole.first() * DTypeBytes(plan.whole_dtype);
        }
        staging += RoundUp(BytesOf(plan, part), kAlignment);
        if (src == rank_) {
          if (data != plan.src_data) {
            std::memcpy(data, plan.src_data, static_cast<size_t>(BytesOf(plan, part)));
          }
          continue;
        }
        SLUICE_RETURN_IF_ERROR(
            wire_->Receive(data, BytesOf(plan, part), src, kPayloadTag, &requests_));
      }
    }
    return absl::OkStatus();
  }

  void PutTogether(const TensorPlan& plan, std::byte* whole) {
    std::byte* staging = staging_.data();
    std::vector<std::byte*> contributions;
    for (const Part& part : plan.parts) {
      contributions.clear();
      for (size_t i = 0; i < part.src.size(); ++i) {
        contributions.push_back(staging);
        staging += RoundUp(BytesOf(plan, part), kAlignment);
      }
      if (IsStraight(plan, part)) continue;
      ReduceInPlace(plan.steps, plan.src_dtype, part.in_whole.elements(), contributions);
      Unpack(part.in_whole, plan.whole_dtype, whole, plan.src_dtype, contributions[0]);
    }
  }

  absl::Status Broadcast(const TensorPlan& plan, std::byte* whole) {
    for (int64_t done = 0; done < plan.whole_bytes; done += kMostBytes) {
      const auto count = static_cast<int>(std::min(kMostBytes, plan.whole_bytes - done));
      SLUICE_RETURN_IF_ERROR(Wire::FromMpi(
          MPI_Ibcast(whole + done, count, MPI_BYTE, 0, plan.members, &requests_.emplace_back()),
          "MPI_Ibcast"));
    }
    return wire_->Wait(&requests_);
  }

  int rank_ = -1;
  Wire* wire_ = nullptr;
  std::optional<RankSets> sets_;
  std::vector<TensorPlan> plans_;
  std::vector<std::byte> whole_;
  std::vector<std::byte> staging_;
  Wire::Requests requests_;
};

}  // namespace

std::unique_ptr<Baseline> MakeGatherBroadcastBaseline() {
  return std::make_unique<GatherBroadcast>();
}

}  // namespace sluice::bench
