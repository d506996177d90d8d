// One of two jobs that were started apart: after every step its ranks push their weights, which are
// cut by rows, to the servers. How the servers cut theirs it does not know.
//
//   scripts/nodes/two_jobs.sh
#include <cstdio>
#include <memory>
#include <vector>

#include "sluice/connect.h"
#include "sluice/session.h"
#include "sluice/world.h"
#include "two_jobs/weights.h"

namespace {

void CheckOk(const absl::Status& status) { two_jobs::CheckOk("trainer", status); }

}  // namespace

int main() {
  const auto options = sluice::WorldOptionsFromEnvironment();
  CheckOk(options.status());
  const auto world = sluice::World::Join(*options);
  CheckOk(world.status());
  std::printf("trainer %d: waits for the servers\n", options->rank);
  std::fflush(stdout);

  const auto session = sluice::Session::Create(world->get(), {});
  CheckOk(session.status());

  const sluice::Layout layout = {two_jobs::MeshOf(**world, options->role, options->size),
                                 {sluice::Placement::Shard(0)}};
  const std::vector<int64_t> shape = {two_jobs::kRows, two_jobs::kColumns};
  auto weights =
      sluice::LocalTensor::Create(layout, shape, sluice::DType::kF32, (*session)->rank());
  CheckOk(weights.status());
  const std::vector<int64_t> indices = weights->GlobalIndices();
  const absl::Span<float> elements = weights->elements<float>();

  sluice::ConnectSpec own;
  own.sources.push_back({{"embed_tokens", shape, sluice::DType::kF32, layout, weights->view()}});
  const auto connection = sluice::Connect(session->get(), own);
  CheckOk(connection.status());

  for (int step = 1; step <= two_jobs::kSteps; ++step) {
    for (size_t i = 0; i < indices.size(); ++i) {  // stands for an optimiser step
      elements[i] = two_jobs::ValueAt(step, indices[i]);
    }
    const auto run = (*connection)->Start({.version = step});
    CheckOk(run.status());
    CheckOk(run->Wait());
  }
  CheckOk((*session)->Close());
  std::printf("trainer %d: pushed %d versions\n", options->rank, two_jobs::kSteps);
}
