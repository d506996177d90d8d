// Checks on one half, tensor by tensor.
#include "plan/connect/check_half.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plan/connect/texts.h"
#include "sluice/transfer.h"
#include "tensor/cast.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

bool HasPartial(const Layout& layout) {
  for (const Placement& placement : layout.placements) {
    if (placement.kind == Placement::Kind::kPartial) return true;
  }
  return false;
}

// Enumerators may come from anywhere. Nothing else looks at them before they name something.
absl::Status CheckEnumerators(const TensorKind& kind, const Layout& layout) {
  if (kind.dtype > kLastDType) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no dtype ", static_cast<int>(kind.dtype)));
  }
  for (const Placement& placement : layout.placements) {
    if (placement.kind > kLastPlacement) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no kind ", static_cast<int>(placement.kind), " of placement"));
    }
    if (placement.kind == Placement::Kind::kPartial && placement.op > kLastOp) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no reduction ", static_cast<int>(placement.op)));
    }
  }
  return absl::OkStatus();
}

// A half speaks for the boxes of its own rank alone.
absl::Status CheckBoxes(const BoxList& boxes) {
  if (boxes.ranks().size() == 1 && boxes.ranks()[0].rank == kHalfBoxesRank) return absl::OkStatus();
  return absl::InvalidArgumentError("a half has boxes of one rank alone");
}

absl::Status CheckLayout(const Layout& layout, const std::vector<int64_t>& shape, int ranks) {
  SLUICE_RETURN_IF_ERROR(ValidateLayout(layout, shape));
  if (!layout.whole.empty()) {
    return absl::UnimplementedError("it is a slice, but Connect takes whole tensors");
  }
  if (!layout.boxes.empty()) return CheckBoxes(layout.boxes);
  if (layout.mesh.sizes().size() > kMeshDimsMax) {
    return absl::InvalidArgumentError(absl::StrCat("a mesh of ", layout.mesh.sizes().size(),
                                                   " dimensions; at most ", kMeshDimsMax,
                                                   " are possible"));
  }
  if (layout.mesh.max_rank() >= ranks) {
    return MakeError(absl::StatusCode::kInvalidArgument, RankInWords(layout.mesh.max_rank()),
                     " is outside the job's ranks 0..", ranks - 1);
  }
  return absl::OkStatus();
}

absl::Status CheckUse(const TensorKind& kind, const Layout& layout, bool is_target) {
  if (!HasPartial(layout)) return absl::OkStatus();
  if (is_target) {
    return absl::InvalidArgumentError(
        "only a source may be Partial, as many contributions make one sum");
  }
  if (!ReductionExists(kind.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("it is Partial, and there is no reduction of ", DTypeName(kind.dtype)));
  }
  return absl::OkStatus();
}

absl::Status CheckName(absl::string_view name) {
  if (name.empty()) return absl::InvalidArgumentError("it has no name");
  if (name.size() <= kTensorNameBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("its name has ", name.size(), " bytes; at most ",
                                                 kTensorNameBytesMax, " are possible"));
}

absl::Status CheckTensors(const Half& half, const std::vector<HalfTensor>& tensors, bool is_target,
                          const std::vector<absl::Status>& kinds) {
  absl::flat_hash_set<absl::string_view> names;
  for (const HalfTensor& tensor : tensors) {
    const TensorKind& kind = half.KindOf(tensor);
    absl::Status status = CheckName(tensor.name);
    if (status.ok()) status = kinds[static_cast<size_t>(tensor.kind)];
    if (status.ok()) status = CheckUse(kind, half.LayoutOf(kind), is_target);
    if (status.ok() && tensor.window && (*tensor.window < 0 || *tensor.window > kMaxWindow)) {
      status = absl::InvalidArgumentError(
          absl::StrCat("window is ", *tensor.window, "; it must be 0 to ", kMaxWindow));
    }
    if (status.ok() && !names.insert(tensor.name).second) {
      status = absl::InvalidArgumentError("it is given twice");
    }
    if (status.ok()) continue;
    return Annotate(status, is_target ? "target " : "source ", QuotedName(tensor.name));
  }
  return absl::OkStatus();
}

absl::Status CheckRenames(const Half& half) {
  absl::flat_hash_set<absl::string_view> targets;
  for (const auto& [target, source] : half.renames) {
    absl::Status status = CheckName(target);
    if (status.ok()) status = CheckName(source);
    if (status.ok() && !targets.insert(target).second) {
      status = absl::InvalidArgumentError("it is given twice");
    }
    if (status.ok()) continue;
    return Annotate(status, "the rename of ", QuotedName(target), " to ", QuotedName(source));
  }
  return absl::OkStatus();
}

absl::Status CheckLimits(const Half& half) {
  const auto tensors =
      static_cast<int64_t>(half.sources.size() + half.targets.size() + half.renames.size());
  if (tensors > kHalfTensorsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensors, " tensors and renames; at most ", kHalfTensorsMax, " are possible"));
  }
  int64_t mesh_ranks = 0;
  int64_t boxes = 0;
  for (const Layout& layout : half.layouts) {
    mesh_ranks += static_cast<int64_t>(layout.mesh.ranks().size());
    for (const RankBoxes& of : layout.boxes.ranks()) {
      boxes += static_cast<int64_t>(of.boxes.size());
    }
  }
  if (boxes > kHalfBoxesMax) {
    return absl::ResourceExhaustedError(absl::StrCat("the distinct layouts have ", boxes,
                                                     " boxes, summed up; at most ", kHalfBoxesMax,
                                                     " are possible"));
  }
  if (mesh_ranks <= kHalfMeshRanksMax) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the distinct layouts have ", mesh_ranks,
                                                 " ranks, summed up; at most ", kHalfMeshRanksMax,
                                                 " are possible"));
}

}  // namespace

absl::Status CheckHalf(const Half& half, int ranks) {
  SLUICE_RETURN_IF_ERROR(CheckLimits(half));
  if (half.priority_class &&
      (*half.priority_class < 0 || *half.priority_class >= kPriorityClasses)) {
    return absl::InvalidArgumentError(absl::StrCat("priority_class is ", *half.priority_class,
                                                   "; it must be 0 to ", kPriorityClasses - 1));
  }
  std::vector<absl::Status> kinds;
  kinds.reserve(half.kinds.size());
  for (const TensorKind& kind : half.kinds) {
    const Layout& layout = half.LayoutOf(kind);
    absl::Status status = CheckEnumerators(kind, layout);
    if (status.ok()) status = CheckLayout(layout, kind.shape, ranks);
    kinds.push_back(std::move(status));
  }
  SLUICE_RETURN_IF_ERROR(CheckTensors(half, half.sources, false, kinds));
  SLUICE_RETURN_IF_ERROR(CheckTensors(half, half.targets, true, kinds));
  return CheckRenames(half);
}

}  // namespace sluice
