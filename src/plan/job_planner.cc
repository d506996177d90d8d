// The tables of a job, and the plans that are made from them.
#include "plan/job_planner.h"

#include "absl/strings/str_cat.h"
#include "plan/auto_knobs.h"
#include "plan/job_tables.h"
#include "plan/tensor_classes.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// The most pairs of layouts. A party's number counts pairs and shapes, and has to fit a BucketId.
constexpr int kLayoutPairMax = ((1 << kCountBits) - 1 - kFanoutShapes) / kFanoutShapes;

// By the spec alone, so that all ranks say the same of the same tensor. Cells have no names.
absl::Status CheckReduction(const TensorTransfer& tensor, const ClassTables& tables,
                            int64_t bucket_bytes) {
  if (!tables.reduces()) return absl::OkStatus();
  const auto levels = static_cast<int64_t>(tables.partition(Side::kSrc).levels().size());
  if (ReductionAreaBytes(bucket_bytes, levels) > 0) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      tensor.name.empty() ? ErrorText("a tensor with boxes") : TensorInWords(tensor.name),
      ": a reduction over ", levels, " mesh dimensions needs buckets of at least ",
      (levels + 1) * 8, " bytes, not ", bucket_bytes);
}

}  // namespace

JobTables::JobTables(const TransferSpec& of, const PlanOptions& how)
    : spec(of), options(WithKnobs(of, how)) {
  TensorClasses numbers;
  std::vector<int64_t> seen;  // tensors of each class
  tensors.reserve(spec.tensors.size());
  for (const TensorTransfer& tensor : spec.tensors) {
    sources.Add(tensor.src.mesh);
    targets.Add(tensor.dst.mesh);
    const TensorClasses::Numbers known = numbers.Of(tensor);
    const size_t number = static_cast<size_t>(known.tensor_class);
    if (number == classes.size()) {
      classes.push_back(std::make_unique<ClassTables>(tensor, options, known.layout_pair));
      seen.push_back(0);
      status = CheckReduction(tensor, *classes.back(), options.bucket_bytes);
      if (!status.ok()) return;
    }
    if (known.layout_pair > kLayoutPairMax) {
      status = absl::ResourceExhaustedError(
          absl::StrCat("more than ", kLayoutPairMax + 1,
                       " different pairs of layouts with reductions or replicated targets"));
      return;
    }
    tensors.push_back({number, static_cast<int64_t>(number) + seen[number]++,
                       DTypeBytes(WireDType(tensor)), DTypeBytes(tensor.src_dtype)});
  }
  sources.Number();
  targets.Number();
}

JobPlanner::JobPlanner(const TransferSpec& spec, const PlanOptions& options,
                       int64_t shared_bytes_max)
    : tables_(std::make_unique<JobTables>(spec, options)), shared_bytes_max_(shared_bytes_max) {}

JobPlanner::~JobPlanner() = default;

absl::StatusOr<Plan> JobPlanner::PlanOf(int rank) {
  if (!tables_->status.ok()) return tables_->status;
  int64_t bytes = 0;
  for (const auto& tables : tables_->classes) bytes += tables->bytes();
  if (bytes > shared_bytes_max_) {
    for (const auto& tables : tables_->classes) tables->Clear();
  }
  return PlanOneRank(tables_.get(), rank);
}

absl::StatusOr<Plan> MakePlan(const TransferSpec& spec, const PlanOptions& options, int rank) {
  return JobPlanner(spec, options).PlanOf(rank);
}

}  // namespace sluice
