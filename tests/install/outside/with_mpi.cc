// A program that links sluice::mpi: moves a tensor from one rank to two and checks it.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/mpi.h"
#include "sluice/session.h"

namespace {

constexpr int64_t kRows = 1000;
constexpr int64_t kColumns = 7;

absl::Status MoveAndCheck() {
  absl::StatusOr<std::unique_ptr<sluice::Fabric>> fabric = sluice::MakeMpiFabric(MPI_COMM_WORLD);
  if (!fabric.ok()) return fabric.status();
  absl::StatusOr<std::unique_ptr<sluice::Session>> session =
      sluice::Session::Create(*std::move(fabric), {});
  if (!session.ok()) return session.status();
  const int rank = (*session)->rank();

  const absl::StatusOr<sluice::Mesh> one = sluice::Mesh::Create({1}, {0});
  const absl::StatusOr<sluice::Mesh> both = sluice::Mesh::Create({2}, {0, 1});
  if (!one.ok() || !both.ok()) return absl::InternalError("no mesh");
  sluice::TensorTransfer tensor;
  tensor.name = "weight";
  tensor.shape = {kRows, kColumns};
  tensor.src = {*one, {sluice::Placement::Replicate()}};
  tensor.dst = {*both, {sluice::Placement::Shard(0)}};
  const absl::StatusOr<sluice::Transfer*> transfer = (*session)->Compile({{tensor}});
  if (!transfer.ok()) return transfer.status();

  auto src = sluice::LocalTensor::Create(tensor.src, tensor.shape, tensor.src_dtype, rank);
  auto dst = sluice::LocalTensor::Create(tensor.dst, tensor.shape, tensor.dst_dtype, rank);
  if (!src.ok() || !dst.ok()) return absl::InternalError("no memory");
  const std::vector<int64_t> from = src->GlobalIndices();
  std::copy(from.begin(), from.end(), src->elements<float>().begin());
  const absl::StatusOr<sluice::Run> run =
      (*session)->Start(*transfer, {src->view()}, {dst->view()});
  if (!run.ok()) return run.status();
  if (absl::Status status = run->Wait(); !status.ok()) return status;
  const std::vector<int64_t> to = dst->GlobalIndices();
  if (!std::equal(to.begin(), to.end(), dst->elements<float>().begin())) {
    return absl::DataLossError("a wrong element");
  }
  return (*session)->Close();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const absl::Status status = MoveAndCheck();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
