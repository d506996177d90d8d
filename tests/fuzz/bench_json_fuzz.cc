// Fuzz target: whatever the bytes are, a file that the benchmarks read is an error or a
// description.
#include "fuzz/fuzz_bytes.h"
#include "sluice/layout.h"
#include "workload/case_file.h"
#include "workload/model_file.h"
#include "workload/owned_indices.h"
#include "workload/system_file.h"

namespace sluice::bench {
namespace {

void CheckNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) CheckError(absl::InvalidArgumentError(note));
}

// The benchmark's reading of a layout is inside the tensor, and as long as the library's.
void CheckSide(const Layout& layout, const std::vector<int64_t>& shape) {
  const int rank = layout.mesh.ranks().front();
  const auto local = LocalShape(layout, shape, rank);
  SLUICE_CHECK(local.ok(), "a case that was read is not valid");
  for (size_t d = 0; d < shape.size(); ++d) {
    const OwnedIndices owned(layout, static_cast<int>(d), shape[d], rank);
    SLUICE_CHECK(owned.count() == (*local)[d], "another number of indices");
    if (shape[d] == 0) continue;
    for (const int64_t index : {int64_t{0}, shape[d] / 2, shape[d] - 1}) {
      const OwnedIndices::Answer answer = owned.At(index);
      SLUICE_CHECK(answer.count >= 1 && answer.count <= shape[d] - index, "indices beyond the end");
      SLUICE_CHECK(!answer.owned || (answer.position >= 0 && answer.position < owned.count()),
                   "a position outside the local tensor");
    }
  }
}

void TryCases(absl::string_view text) {
  const absl::StatusOr<Workload> workload = ParseCaseFile(text);
  if (!workload.ok()) return CheckError(workload.status());
  CheckNotes(workload->notes);
  for (const Case& entry : workload->cases) {
    if (!entry.status.ok()) CheckError(entry.status);
    SLUICE_CHECK(entry.status.ok() || entry.spec.tensors.empty(), "a wrong case with tensors");
    for (const TensorTransfer& tensor : entry.spec.tensors) {
      CheckSide(tensor.src, tensor.shape);
      CheckSide(tensor.dst, tensor.shape);
    }
  }
}

void TryModel(absl::string_view text) {
  for (const ModelCut cut : {ModelCut{}, ModelCut{2, 3}}) {
    const absl::StatusOr<Model> model = ParseModelFile(text, cut);
    if (!model.ok()) {
      CheckError(model.status());
      continue;
    }
    CheckNotes(model->notes);
    SLUICE_CHECK(!model->tensors.empty() && model->layers >= 0, "a model of nothing");
    for (const ModelTensor& tensor : model->tensors) {
      for (const int64_t size : tensor.shape) SLUICE_CHECK(size >= 0, "a negative size");
    }
  }
}

void TrySystem(absl::string_view text) {
  const absl::StatusOr<System> system = ParseSystemFile(text);
  if (!system.ok()) return CheckError(system.status());
  CheckNotes(system->notes);
  for (const Parallelism& side : {system->train, system->generation}) {
    SLUICE_CHECK(side.stage_ranks() >= 1, "a pipeline stage without ranks");
  }
}

}  // namespace
}  // namespace sluice::bench

SLUICE_FUZZ_TARGET(bench_json) {
  const absl::string_view text = sluice::TextOf(data, size);
  sluice::bench::TryCases(text);
  sluice::bench::TryModel(text);
  sluice::bench::TrySystem(text);
  return 0;
}
