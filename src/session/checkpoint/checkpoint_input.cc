// Names, layouts, dtypes, views.
#include "session/checkpoint/checkpoint_input.h"

#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/shard/checkpoint_cells.h"
#include "session/checkpoint/checkpoint_limits.h"
#include "session/checkpoint/describe_checkpoint.h"
#include "storage/element_type.h"
#include "tensor/error_text.h"
#include "tensor/stable_hash.h"

namespace sluice {
namespace {

// The tensors as a transfer from and to their layouts, so that the same rules hold for them.
TransferSpec SpecOf(absl::Span<const CheckpointTensor> tensors) {
  TransferSpec spec;
  for (const CheckpointTensor& tensor : tensors) {
    spec.tensors.push_back({.name = tensor.name,
                            .shape = LaidOutShape(tensor),
                            .src_dtype = tensor.dtype,
                            .dst_dtype = FileDTypeOf(tensor),
                            .src = tensor.layout,
                            .dst = tensor.layout});
  }
  return spec;
}

// `is_given`: the catalog is, and may have types that no file of safetensors has.
absl::Status CheckTensors(absl::Span<const CheckpointTensor> tensors, CheckpointFlow flow,
                          bool is_given) {
  if (tensors.empty()) return absl::InvalidArgumentError("no tensors");
  absl::flat_hash_set<absl::string_view> names;
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.name.empty()) return absl::InvalidArgumentError("a tensor has no name");
    if (!names.insert(tensor.name).second && flow == CheckpointFlow::kSave) {
      return MakeError(absl::StatusCode::kInvalidArgument, TensorInWords(tensor.name),
                       " is there twice");
    }
    if (!is_given && !ElementTypeOf(FileDTypeOf(tensor))) {
      return MakeError(absl::StatusCode::kInvalidArgument, TensorInWords(tensor.name),
                       ": no file of safetensors has elements of ", DTypeName(FileDTypeOf(tensor)));
    }
    for (const Placement& placement : tensor.layout.placements) {
      if (placement.kind != Placement::Kind::kPartial) continue;
      return MakeError(absl::StatusCode::kInvalidArgument, TensorInWords(tensor.name),
                       ": placement ", PlacementName(placement),
                       ": checkpoints are of whole elements, not "
                       "of Partial contributions");
    }
  }
  return absl::OkStatus();
}

absl::Status BindOne(const TensorView& given, const ViewNeed& need, const MemoryRules& rules,
                     bool writable, BoundView* view) {
  absl::Status status = BindView(given, need, rules, writable, view);
  if (status.ok() && view->base != nullptr) status = CheckMemory(rules, view->base, view->kind);
  return status;
}

absl::Status BindBoxes(const CheckpointTensor& tensor, const MemoryRules& rules, int rank,
                       bool writable, std::vector<BoundView>* views) {
  const absl::Span<const Box> boxes = tensor.layout.boxes.Of(rank);
  if (tensor.view.boxes.size() != boxes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("views of ", tensor.view.boxes.size(),
                                                   " boxes, but this rank has ", boxes.size()));
  }
  for (size_t b = 0; b < boxes.size(); ++b) {
    const absl::Status status = BindOne(tensor.view.boxes[b], {boxes[b].shape, tensor.dtype}, rules,
                                        writable, &views->emplace_back());
    if (status.ok()) continue;
    return MakeError(status.code(), "box ", b, ": ", status);
  }
  return absl::OkStatus();
}

absl::Status BindTensor(const CheckpointTensor& tensor, const MemoryRules& rules, int rank,
                        bool writable, CheckpointInput* input) {
  BoundView& view = input->views.emplace_back();
  std::vector<BoundView>& boxes = input->box_views.emplace_back();
  if (!tensor.layout.boxes.empty()) return BindBoxes(tensor, rules, rank, writable, &boxes);
  SLUICE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                          LocalShape(tensor.layout, LaidOutShape(tensor), rank));
  return BindOne(tensor.view, {shape, tensor.dtype}, rules, writable, &view);
}

absl::Status BindViews(absl::Span<const CheckpointTensor> tensors, const MemoryRules& rules,
                       int rank, bool writable, CheckpointInput* input) {
  // A view of a tensor, or one of each box, with the tensor's name and number.
  std::vector<BoundView> all;
  std::vector<absl::string_view> names;
  std::vector<int> numbers;
  for (const CheckpointTensor& tensor : tensors) {
    const absl::Status status = BindTensor(tensor, rules, rank, writable, input);
    if (!status.ok()) {
      return MakeError(status.code(), TensorInWords(tensor.name), ": ", status);
    }
    all.push_back(input->views.back());
    all.insert(all.end(), input->box_views.back().begin(), input->box_views.back().end());
    names.resize(all.size(), tensor.name);
    numbers.resize(all.size(), static_cast<int>(input->views.size()) - 1);
  }
  if (!writable) return absl::OkStatus();
  return CheckAliasing({}, all, names, numbers);
}

// Whether boxes can be cut into cells, and in a save, whether each element is somebody's. The
// tensors are valid.
absl::Status CheckBoxes(absl::Span<const CheckpointTensor> tensors, CheckpointFlow flow) {
  std::set<std::pair<const void*, std::vector<int64_t>>> known;
  for (const CheckpointTensor& tensor : tensors) {
    const BoxList& boxes = tensor.layout.boxes;
    if (boxes.empty() || !known.insert({boxes.identity(), LaidOutShape(tensor)}).second) continue;
    const absl::StatusOr<std::vector<CheckpointCell>> cells =
        CutIntoCheckpointCells(boxes, LaidOutShape(tensor));
    if (!cells.ok()) {
      return MakeError(cells.status().code(), TensorInWords(tensor.name), ": ", cells.status());
    }
    if (flow == CheckpointFlow::kLoad) continue;
    for (const CheckpointCell& cell : *cells) {
      if (!cell.ranks.empty()) continue;
      return MakeError(absl::StatusCode::kInvalidArgument, TensorInWords(tensor.name),
                       ": no box of any rank has element [", absl::StrJoin(cell.box.offset, ","),
                       "]");
    }
  }
  return absl::OkStatus();
}

// The names of those that a save writes without dimensions.
uint64_t HashOfScalars(absl::Span<const CheckpointTensor> tensors) {
  StableHash hash;
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.shape.empty()) hash.AddText(tensor.name);
  }
  return hash.value();
}

uint64_t HashOf(const std::string& place, const CheckpointOptions& options) {
  HashEqual hash;
  hash.Field("place", place, {.equal = true});
  Describe(hash, options);
  for (const auto& [key, text] : options.metadata) {
    hash.Field("key", key, {.equal = true});
    hash.Field("text", text, {.equal = true});
  }
  for (const CheckpointEntry& entry : options.catalog) {
    hash.Field("tensor", entry.tensor, {.equal = true});
    hash.Field("file", entry.file, {.equal = true});
    for (const int64_t number : {entry.begin, entry.bytes, static_cast<int64_t>(entry.dtype)}) {
      hash.Field("number", number, {.equal = true});
    }
    for (const std::vector<int64_t>* numbers : {&entry.shape, &entry.strides, &entry.offset}) {
      hash.Field("dimensions", static_cast<int64_t>(numbers->size()), {.equal = true});
      for (const int64_t number : *numbers) hash.Field("number", number, {.equal = true});
    }
  }
  return hash.value();
}

}  // namespace

CheckpointInput LookAtPlace(const std::string& place, const CheckpointOptions& options) {
  CheckpointInput input;
  input.status = CheckCheckpointOptions(options);
  input.call = HashOf(place, options);
  return input;
}

absl::Status BindArrays(absl::Span<const CheckpointTensor> arrays, const MemoryRules& rules,
                        int rank, CheckpointInput* input) {
  input->views.clear();
  input->box_views.clear();
  for (const CheckpointTensor& array : arrays) {
    const absl::Status status = BindTensor(array, rules, rank, /*writable=*/true, input);
    if (!status.ok()) return MakeError(status.code(), TensorInWords(array.name), ": ", status);
  }
  return CheckBoxes(arrays, CheckpointFlow::kLoad);
}

CheckpointInput LookAtInput(CheckpointFlow flow, absl::Span<const CheckpointTensor> tensors,
                            const std::string& place, const CheckpointOptions& options,
                            const MemoryRules& rules, int rank, int job_ranks) {
  const TransferSpec spec = SpecOf(tensors);
  CheckpointInput input = LookAtPlace(place, options);
  input.status.Update(CheckTensors(tensors, flow, !options.catalog.empty()));
  input.status.Update(ValidateSpec(spec, job_ranks));
  if (input.status.ok()) input.status = CheckBoxes(tensors, flow);
  if (input.status.ok()) {
    input.status = BindViews(tensors, rules, rank, flow == CheckpointFlow::kLoad, &input);
  }
  input.tensors = HashPlan(spec, PlanOptions());
  if (flow == CheckpointFlow::kSave) input.tensors.tensors ^= HashOfScalars(tensors);
  return input;
}

}  // namespace sluice
