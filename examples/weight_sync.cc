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
#include <memory>
#include <numeric>
#include <vector>

#include "ranks.h"
#include "sluice/layout.h"
#include "sluice/session.h"
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
  std::vector<int> train(static_cast<size_t>(trainers));
  std::iota(train.begin(), train.end(), 0);
  std::vector<int> serve(static_cast<size_t>(std::max(1, job_ranks - trainers)));
  std::iota(serve.begin(), serve.end(), job_ranks == 1 ? 0 : trainers);
  const Mesh fsdp = Mesh::Create({trainers}, train).value();
  const Mesh tp = Mesh::Create({static_cast<int64_t>(serve.size())}, serve).value();

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

int64_t TrainAndServe(examples::Ranks* ranks) {
  auto fabric = ranks->MakeFabric();
  ranks->CheckOk(fabric.status());
  auto session = sluice::Session::Create(*std::move(fabric), {});
  ranks->CheckOk(session.status());
  const int rank = (*session)->rank();

  const sluice::TransferSpec spec = MakeSpec((*session)->size());
  auto transfer = (*session)->Compile(spec);
  ranks->CheckOk(transfer.status());

  Side weights(spec, rank, /*is_dst=*/false);
  Side served(spec, rank, /*is_dst=*/true);
  int64_t wrong = 0;
  for (int step = 1; step <= kSteps; ++step) {
    weights.ForEach(step, [](float& weight, float value) { weight = value; });  // an update
    auto run = (*session)->Start(*transfer, weights.views, served.views);
    ranks->CheckOk(run.status());
    ranks->CheckOk(run->Wait());
    served.ForEach(step, [&](float weight, float value) { wrong += weight == value ? 0 : 1; });
  }
  ranks->CheckOk((*session)->Close());
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  const std::unique_ptr<examples::Ranks> ranks = examples::Ranks::Start(&argc, &argv);
  const int64_t wrong_total = ranks->Sum(TrainAndServe(ranks.get()));
  if (ranks->rank() == 0) {
    std::printf("weight_sync: %d steps, %lld wrong elements\n", kSteps,
                static_cast<long long>(wrong_total));
  }
  return wrong_total == 0 ? 0 : 1;
}
