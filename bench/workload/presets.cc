// The etha-N meshes.
#include "workload/presets.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sluice/layout.h"
#include "sluice/status.h"
#include "workload/json_input.h"

namespace sluice::bench {
namespace {

constexpr int kConfigurations = 8;
constexpr int kSideRanks = 8;
using Sizes = std::array<int64_t, 4>;
constexpr std::array<Sizes, kConfigurations> kSrcMeshes = {{{1, 1, 4, 2},
                                                            {8, 1, 1, 1},
                                                            {1, 2, 4, 1},
                                                            {2, 2, 2, 1},
                                                            {2, 4, 1, 1},
                                                            {4, 1, 1, 2},
                                                            {4, 1, 2, 1},
                                                            {4, 2, 1, 1}}};
constexpr std::array<Sizes, kConfigurations> kDstMeshes = {{{4, 2, 1, 1},
                                                            {1, 2, 2, 2},
                                                            {8, 1, 1, 1},
                                                            {1, 1, 4, 2},
                                                            {1, 2, 4, 1},
                                                            {2, 1, 1, 4},
                                                            {1, 1, 1, 8},
                                                            {1, 1, 2, 4}}};

// What the second mesh dimension of a source does.
struct Source {
  const char* name;
  Placement placement;
};
const Source kSources[] = {{"no_partial", Placement::Shard(0)},
                           {"replicate_dp", Placement::Replicate()},
                           {"partial_dp", Placement::Partial(ReduceOp::kSum)}};

absl::StatusOr<Mesh> MakeMesh(const Sizes& sizes, int first_rank) {
  std::vector<int> ranks(kSideRanks);
  std::iota(ranks.begin(), ranks.end(), first_rank);
  return Mesh::Create({sizes.begin(), sizes.end()}, std::move(ranks));
}

std::string PresetName(int configuration, const char* source) {
  return absl::StrCat("etha-", configuration + 1, "-", source);
}

absl::StatusOr<TensorTransfer> MakeTensor(int configuration, const Placement& second,
                                          const PresetOptions& options) {
  TensorTransfer tensor;
  tensor.shape = options.shape;
  tensor.src_dtype = tensor.dst_dtype = options.dtype;
  const Sizes& dst_sizes = kDstMeshes[static_cast<size_t>(configuration)];
  SLUICE_ASSIGN_OR_RETURN(auto src_mesh,
                          MakeMesh(kSrcMeshes[static_cast<size_t>(configuration)], 0));
  SLUICE_ASSIGN_OR_RETURN(auto dst_mesh, MakeMesh(dst_sizes, kSideRanks));
  tensor.src = {std::move(src_mesh),
                {Placement::Replicate(), second, Placement::Replicate(), Placement::Shard(1)}};
  tensor.dst = {std::move(dst_mesh),
                {Placement::Replicate(), Placement::Replicate(),
                 Placement::StridedShard(0, dst_sizes[3]), Placement::Shard(0)}};
  for (const Layout* layout : {&tensor.src, &tensor.dst}) {
    SLUICE_RETURN_IF_ERROR(
        Prefixed("--shape does not fit the preset", ValidateLayout(*layout, tensor.shape)));
  }
  return tensor;
}

}  // namespace

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const Source& source : kSources) {
    for (int i = 0; i < kConfigurations; ++i) names.push_back(PresetName(i, source.name));
  }
  return names;
}

std::string PresetListText() {
  std::string text;
  for (const std::string& name : PresetNames()) {
    const absl::StatusOr<Case> preset = MakePreset(name, {});
    if (!preset.ok()) continue;
    const TensorTransfer& tensor = preset->spec.tensors[0];
    const int ranks = std::max(tensor.src.mesh.max_rank(), tensor.dst.mesh.max_rank()) + 1;
    absl::StrAppendFormat(&text, "%-20s %d ranks  %s -> %s\n", name, ranks, LayoutName(tensor.src),
                          LayoutName(tensor.dst));
  }
  return text;
}

absl::StatusOr<Case> MakePreset(absl::string_view name, const PresetOptions& options) {
  const std::vector<std::string> names = PresetNames();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no preset \"", name, "\"; there are: ", absl::StrJoin(names, ", ")));
  }
  if (options.tensors < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tensors must be at least 1, not ", options.tensors));
  }
  const auto index = static_cast<int>(found - names.begin());
  SLUICE_ASSIGN_OR_RETURN(
      auto tensor,
      MakeTensor(index % kConfigurations, kSources[index / kConfigurations].placement, options));
  Case result;
  result.id = absl::StrCat(name);
  for (int i = 0; i < options.tensors; ++i) {
    tensor.name = absl::StrCat("tensor", i);
    result.spec.tensors.push_back(tensor);
  }
  return result;
}

}  // namespace sluice::bench
