// Weight sync: after every training step, the trainer ranks' weights go to the inference ranks.
//
// The first half of the job trains, with each weight cut by rows (FSDP). The other half serves:
// its projection is cut by columns (tensor parallel), its embedding by rows, its norm replicated.
// The transfer is compiled once and run after every step; the inference ranks check every element.
//
//   mpirun -np 4 weight_sync
//   scripts/spawn.sh -n 4 weight_sync     # without MPI
#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "sluice/job.h"
#include "sluice/layout.h"
#include "sluice/session.h"
#include "sluice/status.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"

namespace {

using sluice::LocalTensor;
using sluice::Mesh;
using sluice::Placement;

constexpr int kSteps = 3;

// The value of element `index` of tensor `tensor` after `step`.
float ValueAt(int step, size_t tensor, int64_t index) {
  return static_cast<float>((index * 7 + static_cast<int64_t>(tensor) * 101 + int64_t{step} * 13) %
                            8191);
}

// This rank's parts of the tensors of one side.
struct Side {
  Side(const sluice::TransferSpec& spec, int rank, bool is_dst) {
    for (const sluice::TensorTransfer& tensor : spec.tensors) {
      parts.push_back(LocalTensor::Create(is_dst ? tensor.dst : tensor.src, tensor.shape,
                                          tensor.src_dtype, rank)
                          .value());
      views.push_back(parts.back().view());
    }
  }

  // Calls `visit` with each element, and what it is worth after `step`.
  template <typename Visit>
  void ForEach(int step, Visit visit) {
    for (size_t t = 0; t < parts.size(); ++t) {
      const std::vector<int64_t> indices = parts[t].GlobalIndices();
      const absl::Span<float> elements = parts[t].elements<float>();
      for (size_t i = 0; i < indices.size(); ++i) visit(elements[i], ValueAt(step, t, indices[i]));
    }
  }

  std::vector<LocalTensor> parts;
  std::vector<sluice::TensorView> views;
};

sluice::TransferSpec MakeSpec(int job_ranks) {
  const int trainers = std::max(1, job_ranks / 2);
  const int first_server = job_ranks == 1 ? 0 : trainers;
  const Mesh fsdp = Mesh::Range({trainers}).value();
  const Mesh tp = Mesh::Range({job_ranks - first_server}, first_server).value();

  sluice::TransferSpec spec;
  const auto add = [&](const char* name, std::vector<int64_t> shape, Placement target) {
    sluice::TensorTransfer tensor;
    tensor.name = name;
    tensor.shape = std::move(shape);
    tensor.src = {fsdp, {Placement::Shard(0)}};
    tensor.dst = {tp, {target}};
    spec.tensors.push_back(std::move(tensor));
  };
  add("embed_tokens", {2000, 512}, Placement::Shard(0));
  add("down_proj", {512, 1408}, Placement::Shard(1));
  add("norm", {512}, Placement::Replicate());
  return spec;
}

}  // namespace

int main() {
  const auto session = sluice::OrDie(sluice::OpenSession());
  const int rank = session->rank();
  const sluice::TransferSpec spec = MakeSpec(session->size());
  sluice::Transfer* const transfer = sluice::OrDie(session->Compile(spec));

  Side weights(spec, rank, /*is_dst=*/false);
  Side served(spec, rank, /*is_dst=*/true);
  int64_t wrong = 0;
  for (int step = 1; step <= kSteps; ++step) {
    weights.ForEach(step, [](float& weight, float value) { weight = value; });  // an update
    const sluice::Run run = sluice::OrDie(session->Start(transfer, weights.views, served.views));
    sluice::OrDie(run.Wait());
    served.ForEach(step, [&](float weight, float value) { wrong += weight == value ? 0 : 1; });
  }
  sluice::OrDie(session->Close());
  std::printf("rank %d: %d steps, %lld wrong elements\n", rank, kSteps,
              static_cast<long long>(wrong));
  return wrong == 0 ? 0 : 1;
}
