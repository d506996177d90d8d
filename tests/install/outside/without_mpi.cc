// A program that links sluice::sluice alone: asks who owns what, and needs no MPI to link.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/fabric.h"
#include "sluice/layout.h"
#include "sluice/session.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"

int main() {
  const absl::StatusOr<sluice::Mesh> mesh = sluice::Mesh::Create({4}, {0, 1, 2, 3});
  if (!mesh.ok()) return 1;
  const absl::StatusOr<std::vector<int64_t>> shape =
      sluice::LocalShape({*mesh, {sluice::Placement::Shard(0)}}, {10}, 3);
  if (!shape.ok() || *shape != std::vector<int64_t>{1}) return 1;
  // Sessions link too.
  const auto session = sluice::Session::Create(std::unique_ptr<sluice::Fabric>(), {});
  std::printf("rank 3 of 4 owns %d of 10 rows\n", static_cast<int>(shape->front()));
  return absl::IsInvalidArgument(session.status()) ? 0 : 1;
}
