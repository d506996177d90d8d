// All ranks in one process, without MPI: a tensor that lies by rows over four ranks comes to lie by
// columns. Every element is checked.
//
//   one_process
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/fabric.h"
#include "sluice/layout.h"
#include "sluice/session.h"
#include "sluice/status.h"

namespace {

constexpr int kRanks = 4;
constexpr int64_t kRows = 512;
constexpr int64_t kColumns = 1024;

// One rank's part: its rows go, and its columns come.
absl::Status MoveAndCheck(std::unique_ptr<sluice::Fabric> fabric) {
  SLUICE_ASSIGN_OR_RETURN(const auto session, sluice::Session::Create(std::move(fabric), {}));
  const int rank = session->rank();

  sluice::TensorTransfer tensor;
  tensor.name = "weight";
  tensor.shape = {kRows, kColumns};
  SLUICE_ASSIGN_OR_RETURN(tensor.src, sluice::Layout::Parse("4:S(0)"));
  SLUICE_ASSIGN_OR_RETURN(tensor.dst, sluice::Layout::Parse("4:S(1)"));
  SLUICE_ASSIGN_OR_RETURN(sluice::Transfer* const transfer, session->Compile({{tensor}}));

  SLUICE_ASSIGN_OR_RETURN(
      auto src, sluice::LocalTensor::Create(tensor.src, tensor.shape, tensor.src_dtype, rank));
  SLUICE_ASSIGN_OR_RETURN(
      auto dst, sluice::LocalTensor::Create(tensor.dst, tensor.shape, tensor.dst_dtype, rank));
  // Each element is its index in the whole tensor.
  const std::vector<int64_t> from = src.GlobalIndices();
  std::copy(from.begin(), from.end(), src.elements<float>().begin());
  SLUICE_ASSIGN_OR_RETURN(const sluice::Run run,
                          session->Start(transfer, {src.view()}, {dst.view()}));
  SLUICE_RETURN_IF_ERROR(run.Wait());
  const std::vector<int64_t> to = dst.GlobalIndices();
  if (!std::equal(to.begin(), to.end(), dst.elements<float>().begin())) {
    return absl::DataLossError("a wrong element");
  }
  return session->Close();
}

}  // namespace

int main() {
  auto fabrics = sluice::OrDie(sluice::MakeLocalFabric(kRanks));
  std::atomic<int> failures = 0;
  std::vector<std::thread> ranks;
  for (std::unique_ptr<sluice::Fabric>& fabric : fabrics) {
    ranks.emplace_back([&fabric, &failures] {
      const absl::Status status = MoveAndCheck(std::move(fabric));
      if (status.ok()) return;
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      ++failures;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  if (failures == 0) std::printf("%d ranks have their columns, all of them right\n", kRanks);
  return failures == 0 ? 0 : 1;
}
