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
  auto fabric = (*world)->MakeFabric();
  CheckOk(fabric.status());
  auto session = sluice::Session::Create(*std::move(fabric), {});
  CheckOk(session.status());

  const sluice::Layout layout = {two_jobs::MeshOf(**world, options->role, options->size),
                                 {sluice::Placement::Shard(1)}};
  const std::vector<int64_t> shape = {two_jobs::kRows, two_jobs::kColumns};
  const int rank = (*session)->rank();
  const auto owned = sluice::OwnedRanges(layout, shape, rank);
  CheckOk(owned.status());
  const auto local_shape = sluice::LocalShape(layout, shape, rank);
  CheckOk(local_shape.status());
  std::vector<float> served(static_cast<size_t>((*local_shape)[0] * (*local_shape)[1]));

  sluice::ConnectSpec own;
  sluice::ConnectTensor tensor;
  tensor.name = "embed_tokens";
  tensor.shape = shape;
  tensor.layout = layout;
  tensor.view = sluice::DenseView(served.data(), *local_shape, sluice::DType::kF32);
  own.targets.push_back(tensor);
  const auto connection = sluice::Connect(session->get(), own);
  CheckOk(connection.status());

  int64_t wrong = 0;
  for (int step = 1; step <= two_jobs::kSteps; ++step) {
    const auto run = (*connection)->Run(step);
    CheckOk(run.status());
    CheckOk(run->Wait());
    size_t at = 0;
    for (int64_t row = 0; row < two_jobs::kRows; ++row) {
      for (const sluice::IndexRange& columns : (*owned)[1]) {
        for (int64_t column = columns.begin; column < columns.end; ++column) {
          if (served[at++] != two_jobs::ValueAt(step, row, column)) ++wrong;
        }
      }
    }
  }
  CheckOk((*session)->Close());
  std::printf("server %d: %d versions, %lld wrong elements\n", options->rank, two_jobs::kSteps,
              static_cast<long long>(wrong));
  return wrong == 0 ? 0 : 1;
}
