// A rank's own tensors, checked before any other rank hears of them.
#include "session/connect/own_half.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "plan/connect/check_half.h"
#include "plan/connect/half_builder.h"
#include "plan/connect/texts.h"
#include "session/connect/fit_view.h"

namespace sluice {
namespace {

std::vector<HalfTensor> Describe(const std::vector<ConnectTensor>& tensors, HalfBuilder* builder) {
  std::vector<HalfTensor> described;
  described.reserve(tensors.size());
  for (const ConnectTensor& tensor : tensors) {
    described.push_back(
        {tensor.name, builder->KindOf(tensor.shape, tensor.dtype, tensor.layout), tensor.window});
  }
  return described;
}

absl::Status CheckPlace(const Layout& layout, int rank) {
  if (layout.mesh.PositionOf(rank)) return absl::OkStatus();
  std::vector<int> ranks(layout.mesh.ranks().begin(), layout.mesh.ranks().end());
  absl::c_sort(ranks);
  return absl::InvalidArgumentError(
      absl::StrCat("rank ", rank, " gives it, but its mesh is of ", RanksInWords(ranks)));
}

absl::Status CheckOwn(const std::vector<ConnectTensor>& tensors,
                      const std::vector<HalfTensor>& described, const Half& half, int rank,
                      const MemoryRules& rules, bool are_targets, bool may_lack_data) {
  // By kind: local shapes take longer than the rest.
  std::vector<absl::StatusOr<std::vector<int64_t>>> shapes(half.kinds.size());
  std::vector<bool> known(half.kinds.size(), false);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ConnectTensor& tensor = tensors[i];
    const TensorKind& kind = half.KindOf(described[i]);
    const Layout& layout = half.LayoutOf(kind);
    const auto k = static_cast<size_t>(described[i].kind);
    if (!known[k]) shapes[k] = LocalShape(layout, kind.shape, rank);
    known[k] = true;
    absl::Status status = CheckPlace(layout, rank);
    if (status.ok()) status = shapes[k].status();
    if (status.ok() && !(may_lack_data && tensor.view.data == nullptr)) {
      BoundView bound;
      status = FitView(tensor.view, {*shapes[k], tensor.dtype}, rules, are_targets, &bound);
    }
    if (status.ok()) continue;
    return absl::Status(status.code(),
                        absl::StrCat(are_targets ? "target " : "source ", QuotedName(tensor.name),
                                     ": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Half> MakeOwnHalf(const ConnectSpec& own, int rank, int ranks,
                                 const MemoryRules& rules) {
  HalfBuilder builder;
  std::vector<HalfTensor> sources = Describe(own.sources, &builder);
  std::vector<HalfTensor> targets = Describe(own.targets, &builder);
  Half half = std::move(*builder.half());
  half.sources = std::move(sources);
  half.targets = std::move(targets);
  half.renames.assign(own.renames.begin(), own.renames.end());
  half.ignore_unused_sources = own.ignore_unused_sources;
  half.priority_class = own.priority_class;
  if (absl::Status status = CheckHalf(half, ranks); !status.ok()) return status;
  absl::Status status = CheckOwn(own.sources, half.sources, half, rank, rules, false, false);
  if (!status.ok()) return status;
  status = CheckOwn(own.targets, half.targets, half, rank, rules, true, own.late_targets);
  if (!status.ok()) return status;
  return half;
}

}  // namespace sluice
