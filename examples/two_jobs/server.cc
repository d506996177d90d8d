// The other of two jobs that were started apart: its ranks receive the weights of each step, cut by
// columns, and check every element.
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

void CheckOk(const absl::Status& status) { two_jobs::CheckOk("server", status); }

}  // namespace

int main() {
  const auto options = sluice::WorldOptionsFromEnvironment();
  CheckOk(options.status());
  const auto world = sluice::World::Join(*options);
  CheckOk(world.status());
  const auto session = sluice::Session::Create(world->get(), {});
  CheckOk(session.status());

  const sluice::Layout layout = {two_jobs::MeshOf(**world, options->role, options->size),
                                 {sluice::Placement::Shard(1)}};
  const std::vector<int64_t> shape = {two_jobs::kRows, two_jobs::kColumns};
  auto served = sluice::LocalTensor::Create(layout, shape, sluice::DType::kF32, (*session)->rank());
  CheckOk(served.status());
  const std::vector<int64_t> indices = served->GlobalIndices();
  const absl::Span<float> elements = served->elements<float>();

  sluice::ConnectSpec own;
  own.targets.push_back({{"embed_tokens", shape, sluice::DType::kF32, layout, served->view()}});
  const auto connection = sluice::Connect(session->get(), own);
  CheckOk(connection.status());

  int64_t wrong = 0;
  for (int step = 1; step <= two_jobs::kSteps; ++step) {
    const auto run = (*connection)->Start({.version = step});
    CheckOk(run.status());
    CheckOk(run->Wait());
    for (size_t i = 0; i < indices.size(); ++i) {
      if (elements[i] != two_jobs::ValueAt(step, indices[i])) ++wrong;
    }
  }
  CheckOk((*session)->Close());
  std::printf("server %d: %d versions, %lld wrong elements\n", options->rank, two_jobs::kSteps,
              static_cast<long long>(wrong));
  return wrong == 0 ? 0 : 1;
}
