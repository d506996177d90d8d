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

  auto fabric = (*world)->MakeFabric();
  CheckOk(fabric.status());
  auto session = sluice::Session::Create(*std::move(fabric), {});
  CheckOk(session.status());

  const sluice::Layout layout = {two_jobs::MeshOf(**world, options->role, options->size),
                                 {sluice::Placement::Shard(0)}};
  const std::vector<int64_t> shape = {two_jobs::kRows, two_jobs::kColumns};
  const int rank = (*session)->rank();
  const auto owned = sluice::OwnedRanges(layout, shape, rank);
  CheckOk(owned.status());
  const auto local_shape = sluice::LocalShape(layout, shape, rank);
  CheckOk(local_shape.status());
  std::vector<float> weights(static_cast<size_t>((*local_shape)[0] * (*local_shape)[1]));

  sluice::ConnectSpec own;
  sluice::ConnectTensor tensor;
  tensor.name = "embed_tokens";
  tensor.shape = shape;
  tensor.layout = layout;
  tensor.view = sluice::DenseView(weights.data(), *local_shape, sluice::DType::kF32);
  own.sources.push_back(tensor);
  const auto connection = sluice::Connect(session->get(), own);
  CheckOk(connection.status());

  for (int step = 1; step <= two_jobs::kSteps; ++step) {
    size_t at = 0;  // stands for an optimiser step
    for (const sluice::IndexRange& rows : (*owned)[0]) {
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        for (int64_t column = 0; column < two_jobs::kColumns; ++column) {
          weights[at++] = two_jobs::ValueAt(step, row, column);
        }
      }
    }
    const auto run = (*connection)->Run(step);
    CheckOk(run.status());
    CheckOk(run->Wait());
  }
  CheckOk((*session)->Close());
  std::printf("trainer %d: pushed %d versions\n", options->rank, two_jobs::kSteps);
}
