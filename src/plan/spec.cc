// Validates transfer specs.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "plan/plan.h"
#include "tensor/cast.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// The most ranks that a BucketId can name.
constexpr int kRanksMax = 1 << kRankBits;

absl::Status ValidateSide(const Layout& layout, absl::Span<const int64_t> shape, int job_ranks) {
  SLUICE_RETURN_IF_ERROR(ValidateLayout(layout, shape));
  if (MaxRank(layout) >= job_ranks) {
    return MakeError(absl::StatusCode::kInvalidArgument, RankInWords(MaxRank(layout)),
                     " is outside the job's ranks 0..", job_ranks - 1);
  }
  return absl::OkStatus();
}

absl::Status ValidateTarget(const Layout& layout, absl::Span<const int64_t> shape, int job_ranks) {
  SLUICE_RETURN_IF_ERROR(ValidateSide(layout, shape, job_ranks));
  for (size_t m = 0; m < layout.placements.size(); ++m) {
    if (layout.placements[m].kind != Placement::Kind::kPartial) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("placement ", PlacementName(layout.placements[m]), " of mesh dimension ", m,
                     ": only a source may be Partial, as many contributions make one sum"));
  }
  return absl::OkStatus();
}

// Contributions of bool are a question of "and" or "or", which no reduction names. Opaque elements
// have no meaning here.
absl::Status ValidateSource(const TensorTransfer& tensor, int job_ranks) {
  SLUICE_RETURN_IF_ERROR(ValidateSide(tensor.src, tensor.shape, job_ranks));
  if (ReductionExists(tensor.src_dtype)) return absl::OkStatus();
  for (size_t m = 0; m < tensor.src.placements.size(); ++m) {
    if (tensor.src.placements[m].kind != Placement::Kind::kPartial) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("placement ", PlacementName(tensor.src.placements[m]), " of mesh dimension ",
                     m, ": there is no reduction of ", DTypeName(tensor.src_dtype)));
  }
  return absl::OkStatus();
}

absl::Status ValidateTensor(const TensorTransfer& tensor, int job_ranks) {
  if (!CastExists(tensor.src_dtype, tensor.dst_dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("no cast from ", DTypeName(tensor.src_dtype),
                                                   " to ", DTypeName(tensor.dst_dtype),
                                                   ": casts are between floating dtypes"));
  }
  if (tensor.window < 0 || tensor.window > kMaxWindow) {
    return absl::InvalidArgumentError(
        absl::StrCat("window is ", tensor.window, "; it must be 0 to ", kMaxWindow));
  }
  SLUICE_RETURN_IF_ERROR(Annotate(ValidateSource(tensor, job_ranks), "source"));
  return Annotate(ValidateTarget(tensor.dst, tensor.shape, job_ranks), "target");
}

}  // namespace

DType WireDType(const TensorTransfer& tensor) {
  return DTypeBytes(tensor.dst_dtype) < DTypeBytes(tensor.src_dtype) ? tensor.dst_dtype
                                                                     : tensor.src_dtype;
}

bool IsReduced(const TensorTransfer& tensor) {
  for (size_t m = 0; m < tensor.src.placements.size(); ++m) {
    if (tensor.src.placements[m].kind == Placement::Kind::kPartial &&
        tensor.src.mesh.sizes()[m] > 1) {
      return true;
    }
  }
  return false;
}

absl::Status ValidateSpec(const TransferSpec& spec, int job_ranks) {
  if (job_ranks > kRanksMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a job of ", job_ranks, " ranks; at most ", kRanksMax, " are possible"));
  }
  if (spec.priority_class < 0 || spec.priority_class >= kPriorityClasses) {
    return absl::InvalidArgumentError(absl::StrCat("priority_class is ", spec.priority_class,
                                                   "; it must be 0 to ", kPriorityClasses - 1));
  }
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const absl::Status status = ValidateTensor(spec.tensors[i], job_ranks);
    if (status.ok()) continue;
    return Annotate(status, TensorInWords(i, spec.tensors[i].name));
  }
  return absl::OkStatus();
}

}  // namespace sluice
