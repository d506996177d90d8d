// From flags to cases.
#include "workload/inline_case.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "sluice/layout.h"
#include "sluice/status.h"
#include "workload/collectives.h"
#include "workload/json_input.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

// More rows than anybody reads: a factor of 1.000001 is a slip.
constexpr size_t kMaxSweep = 1000;

absl::Status RequireFlag(const std::string& value, absl::string_view flag) {
  if (!value.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, " is missing"));
}

// `flag`: "--src" or "--dst". `first_rank`: of a text that names no ranks.
absl::StatusOr<Layout> ReadSide(const std::string& flag, const std::string& text,
                                const SideParts& parts, int first_rank) {
  const std::string mesh_flag = flag + "-mesh";
  const std::string ranks_flag = flag + "-ranks";
  const std::string placements_flag = flag + "-placements";
  if (!text.empty() && parts.any()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " takes the place of ", mesh_flag, ", ",
                                                   ranks_flag, " and ", placements_flag));
  }
  if (!text.empty()) {
    auto layout = ParseLayout(text, first_rank);
    return layout.ok() ? layout : Prefixed(flag, layout.status());
  }
  if (!parts.any()) return RequireFlag("", flag);
  SLUICE_RETURN_IF_ERROR(RequireFlag(parts.mesh, mesh_flag));
  SLUICE_RETURN_IF_ERROR(RequireFlag(parts.ranks, ranks_flag));
  SLUICE_RETURN_IF_ERROR(RequireFlag(parts.placements, placements_flag));
  SLUICE_ASSIGN_OR_RETURN(auto sizes, Prefixed(mesh_flag, ParseIntegers(parts.mesh)));
  SLUICE_ASSIGN_OR_RETURN(auto ranks, Prefixed(ranks_flag, ParseRanks(parts.ranks)));
  SLUICE_ASSIGN_OR_RETURN(auto placements,
                          Prefixed(placements_flag, ParsePlacements(parts.placements)));
  SLUICE_ASSIGN_OR_RETURN(auto mesh, Prefixed(absl::StrCat(mesh_flag, " and ", ranks_flag),
                                              Mesh::Create(std::move(sizes), std::move(ranks))));
  return Layout{std::move(mesh), std::move(placements)};
}

absl::StatusOr<CollectiveLayouts> ReadCollective(const InlineFlags& flags) {
  SLUICE_ASSIGN_OR_RETURN(const auto collective,
                          Prefixed("--collective", ParseCollective(flags.collective)));
  if (flags.has_sides()) {
    return absl::InvalidArgumentError("--collective takes the place of the --src and --dst flags");
  }
  if (flags.ranks == 0) {
    return absl::InvalidArgumentError("--collective needs --ranks, where no job says how many");
  }
  auto layouts = LayoutsOf(collective, flags.ranks);
  return layouts.ok() ? layouts : Prefixed("--ranks", layouts.status());
}

// What an even cut of every collective takes.
int64_t EvenRows(const InlineFlags& flags) { return int64_t{flags.ranks} * flags.ranks; }

absl::StatusOr<TensorTransfer> ReadTensor(const InlineFlags& flags) {
  constexpr int64_t kDefaultElements = 4 << 20;  // of a collective
  TensorTransfer tensor;
  tensor.name = "tensor";
  std::optional<CollectiveLayouts> collective;
  if (!flags.collective.empty()) {
    SLUICE_ASSIGN_OR_RETURN(collective, ReadCollective(flags));
  } else if (flags.ranks != 0) {
    return absl::InvalidArgumentError("--ranks is of --collective");
  }
  if (collective && flags.shape.empty()) {
    const int64_t even = EvenRows(flags);
    tensor.shape = {std::max<int64_t>(1, kDefaultElements / even) * even};
  } else {
    SLUICE_RETURN_IF_ERROR(RequireFlag(flags.shape, "--shape"));
    SLUICE_ASSIGN_OR_RETURN(tensor.shape, Prefixed("--shape", ParseIntegers(flags.shape)));
  }
  SLUICE_ASSIGN_OR_RETURN(
      const auto dtype,
      Prefixed("--dtype", ParseDTypeName(flags.dtype.empty() ? "f32" : flags.dtype)));
  tensor.src_dtype = tensor.dst_dtype = dtype;
  if (collective) {
    tensor.src = std::move(collective->src);
    tensor.dst = std::move(collective->dst);
    return tensor;
  }
  SLUICE_ASSIGN_OR_RETURN(tensor.src, ReadSide("--src", flags.src, flags.src_parts, 0));
  if (flags.disjoint && (flags.dst.empty() || NamesRanks(flags.dst))) {
    return absl::InvalidArgumentError("--disjoint is of a --dst that names no ranks");
  }
  const int first_rank = flags.disjoint ? tensor.src.mesh.max_rank() + 1 : 0;
  SLUICE_ASSIGN_OR_RETURN(tensor.dst, ReadSide("--dst", flags.dst, flags.dst_parts, first_rank));
  return tensor;
}

// From a size of a sweep to the next one: one of the two stands still.
struct SweepStep {
  double factor = 1;
  double bytes = 0;
};

absl::StatusOr<SweepStep> ReadStep(const InlineFlags& flags) {
  SweepStep step;
  if (flags.step.empty()) {
    step.factor = 2;
    if (!flags.factor.empty() && !absl::SimpleAtod(flags.factor, &step.factor)) {
      return absl::InvalidArgumentError(absl::StrCat("-f: \"", flags.factor, "\" is not a number"));
    }
    if (step.factor > 1) return step;
    return absl::InvalidArgumentError("a sweep needs -f > 1");
  }
  if (!flags.factor.empty()) return absl::InvalidArgumentError("-i takes the place of -f");
  SLUICE_ASSIGN_OR_RETURN(const auto bytes, Prefixed("-i", ParseBytes(flags.step)));
  if (bytes < 1) return absl::InvalidArgumentError("a sweep needs -i > 0");
  step.bytes = static_cast<double>(bytes);
  return step;
}

absl::StatusOr<std::vector<int64_t>> SweepSizes(const InlineFlags& flags) {
  SLUICE_ASSIGN_OR_RETURN(const auto begin, Prefixed("-b", ParseBytes(flags.begin_bytes)));
  SLUICE_ASSIGN_OR_RETURN(
      const auto end,
      Prefixed("-e", ParseBytes(flags.end_bytes.empty() ? flags.begin_bytes : flags.end_bytes)));
  SLUICE_ASSIGN_OR_RETURN(SweepStep next, ReadStep(flags));
  if (begin < 1 || end < begin) return absl::InvalidArgumentError("a sweep needs 0 < -b <= -e");
  std::vector<int64_t> sizes;
  double size = static_cast<double>(begin);
  while (size <= static_cast<double>(end)) {
    const auto bytes = static_cast<int64_t>(std::min(size, 9.2e18));
    if (sizes.empty() || sizes.back() != bytes) sizes.push_back(bytes);
    if (sizes.size() > kMaxSweep) {
      return absl::InvalidArgumentError(absl::StrCat("a sweep of more than ", kMaxSweep, " sizes"));
    }
    size = size * next.factor + next.bytes;
  }
  return sizes;
}

// Bytes of one index of the first dimension; InvalidArgument if there are none or they overflow.
absl::StatusOr<int64_t> RowBytes(const TensorTransfer& tensor) {
  int64_t bytes = DTypeBytes(tensor.dst_dtype);
  for (size_t d = 1; d < tensor.shape.size(); ++d) {
    const int64_t size = tensor.shape[d];
    if (size < 1 || bytes > std::numeric_limits<int64_t>::max() / size) {
      return absl::InvalidArgumentError("-b: --shape cannot be swept over its first dimension");
    }
    bytes *= size;
  }
  return bytes;
}

Case MakeCase(std::string id, int tensors, TensorTransfer tensor) {
  Case result;
  result.id = std::move(id);
  result.status = ValidateLayout(tensor.src, tensor.shape);
  result.status.Update(ValidateLayout(tensor.dst, tensor.shape));
  if (!result.status.ok()) return result;
  for (int i = 0; i < tensors; ++i) {
    if (tensors > 1) tensor.name = absl::StrCat("tensor", i);
    result.spec.tensors.push_back(tensor);
  }
  return result;
}

}  // namespace

absl::StatusOr<Workload> MakeInlineCases(const InlineFlags& flags) {
  SLUICE_ASSIGN_OR_RETURN(auto tensor, ReadTensor(flags));
  if (flags.tensors < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tensors must be at least 1, not ", flags.tensors));
  }
  std::string name = "inline";
  if (!flags.collective.empty()) {
    name = CollectiveNames()[static_cast<size_t>(*ParseCollective(flags.collective))];
  }
  // Of a shape that nobody has given: sizes that are cut evenly.
  const int64_t multiple = flags.collective.empty() || !flags.shape.empty() ? 1 : EvenRows(flags);
  Workload workload;
  if (flags.begin_bytes.empty()) {
    if (!flags.end_bytes.empty() || !flags.factor.empty() || !flags.step.empty()) {
      return absl::InvalidArgumentError("-e, -f and -i need -b");
    }
    workload.cases.push_back(MakeCase(name, flags.tensors, std::move(tensor)));
    return workload;
  }
  SLUICE_ASSIGN_OR_RETURN(const auto sizes, SweepSizes(flags));
  SLUICE_ASSIGN_OR_RETURN(const auto row_bytes, RowBytes(tensor));
  int64_t rows = 0;  // of the case before
  for (const int64_t bytes : sizes) {
    TensorTransfer sized = tensor;
    sized.shape[0] = std::max<int64_t>(1, bytes / row_bytes / multiple) * multiple;
    if (!workload.cases.empty() && sized.shape[0] == rows) continue;
    rows = sized.shape[0];
    const int64_t at_least = std::max(bytes, rows * row_bytes);
    workload.cases.push_back(
        MakeCase(absl::StrCat(name, "/", at_least), flags.tensors, std::move(sized)));
  }
  return workload;
}

}  // namespace sluice::bench
