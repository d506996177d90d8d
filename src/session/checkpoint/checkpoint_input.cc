// Names, layouts, dtypes, views.
#include "session/checkpoint/checkpoint_input.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "session/checkpoint/checkpoint_limits.h"
#include "storage/element_type.h"
#include "tensor/stable_hash.h"

namespace sluice {
namespace {

// The tensors as a transfer from and to their layouts, so that the same rules hold for them.
TransferSpec SpecOf(absl::Span<const CheckpointTensor> tensors) {
  TransferSpec spec;
  for (const CheckpointTensor& tensor : tensors) {
    spec.tensors.push_back({.name = tensor.name,
                            .shape = tensor.shape,
                            .src_dtype = tensor.dtype,
                            .dst_dtype = FileDTypeOf(tensor),
                            .src = tensor.layout,
                            .dst = tensor.layout});
  }
  return spec;
}

absl::Status CheckTensors(absl::Span<const CheckpointTensor> tensors) {
  if (tensors.empty()) return absl::InvalidArgumentError("no tensors");
  absl::flat_hash_set<absl::string_view> names;
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.name.empty()) return absl::InvalidArgumentError("a tensor has no name");
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' is there twice"));
    }
    if (!ElementTypeOf(FileDTypeOf(tensor))) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name,
                                                     "': no file of safetensors has elements of ",
                                                     DTypeName(FileDTypeOf(tensor))));
    }
    for (const Placement& placement : tensor.layout.placements) {
      if (placement.kind != Placement::Kind::kPartial) continue;
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "': placement ",
                                                     PlacementName(placement),
                                                     ": checkpoints are of whole elements, not "
                                                     "of Partial contributions"));
    }
  }
  return absl::OkStatus();
}

absl::Status BindViews(absl::Span<const CheckpointTensor> tensors, const MemoryRules& rules,
                       int rank, bool writable, std::vector<BoundView>* views) {
  std::vector<absl::string_view> names;
  for (const CheckpointTensor& tensor : tensors) {
    names.push_back(tensor.name);
    const absl::StatusOr<std::vector<int64_t>> shape =
        LocalShape(tensor.layout, tensor.shape, rank);
    if (!shape.ok()) return shape.status();
    BoundView& view = views->emplace_back();
    absl::Status status = BindView(tensor.view, {*shape, tensor.dtype}, rules, writable, &view);
    if (status.ok() && view.base != nullptr) status = CheckMemory(rules, view.base, view.kind);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("tensor '", tensor.name, "': ", status.message()));
    }
  }
  if (!writable) return absl::OkStatus();
  return CheckAliasing({}, *views, names);
}

uint64_t HashOf(const std::string& place, const CheckpointOptions& options) {
  StableHash hash;
  hash.AddText(place);
  hash.AddSigned(options.piece_bytes);
  hash.AddSigned(options.shard_bytes_max);
  return hash.value();
}

}  // namespace

CheckpointInput LookAtInput(CheckpointFlow flow, absl::Span<const CheckpointTensor> tensors,
                            const std::string& place, const CheckpointOptions& options,
                            const MemoryRules& rules, int rank, int job_ranks) {
  const TransferSpec spec = SpecOf(tensors);
  CheckpointInput input;
  input.status.Update(CheckCheckpointOptions(options));
  input.status.Update(CheckTensors(tensors));
  input.status.Update(ValidateSpec(spec, job_ranks));
  if (input.status.ok()) {
    input.status = BindViews(tensors, rules, rank, flow == CheckpointFlow::kLoad, &input.views);
  }
  input.tensors = HashPlan(spec, PlanOptions());
  input.call = HashOf(place, options);
  return input;
}

}  // namespace sluice
