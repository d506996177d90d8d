// Planning, running and dropping baselines.
#include "reshard/baseline_runs.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plan/box_cells.h"
#include "sluice/status.h"
#include "workload/json_input.h"
#include "workload/layout_ranks.h"
#include "workload/reduce.h"

namespace sluice::bench {
namespace {

constexpr double kMostBytes = 4e18;  // fits an int64_t, with room to add to it

double Elements(absl::Span<const int64_t> shape) {
  double elements = 1;
  for (const int64_t size : shape) elements *= static_cast<double>(size);
  return elements;
}

// Bytes that leave sources and arrive at targets of one tensor if each region travels by itself.
double MessageBytes(const TensorTransfer& tensor) {
  double elements = 0;
  for (const int dst : RanksOf(tensor.dst)) {
    const auto local = LocalShape(tensor.dst, tensor.shape, dst);
    if (local.ok()) elements += Elements(*local);
  }
  const auto contributions = static_cast<double>(SourceGroups(tensor.src).contributions());
  return elements * contributions *
         static_cast<double>(std::max(DTypeBytes(tensor.src_dtype), DTypeBytes(tensor.dst_dtype)));
}

double WholeBytes(const TensorTransfer& tensor) {
  const auto contributions = static_cast<double>(SourceGroups(tensor.src).contributions());
  const auto copies = static_cast<double>(tensor.dst.mesh.ranks().size()) + 1 + contributions;
  return Elements(tensor.shape) * copies *
         static_cast<double>(std::max(DTypeBytes(tensor.src_dtype), DTypeBytes(tensor.dst_dtype)));
}

}  // namespace

int64_t BaselineBytes(const std::vector<std::string>& names, const TransferSpec& spec) {
  double bytes = 0;
  for (const std::string& name : names) {
    double largest = 0;
    for (const TensorTransfer& tensor : spec.tensors) {
      if (name == "serial" || absl::StartsWith(name, "isend")) bytes += 2 * MessageBytes(tensor);
      if (absl::StartsWith(name, "memcpy") || name == "bound") bytes += 3 * MessageBytes(tensor);
      if (name == "gather-broadcast") largest = std::max(largest, WholeBytes(tensor));
    }
    bytes += largest;  // used again for one tensor after the other
  }
  return static_cast<int64_t>(std::min(bytes, kMostBytes));
}

absl::StatusOr<std::unique_ptr<BaselineRuns>> BaselineRuns::Create(
    const std::vector<std::string>& names, Ranks* ranks, absl::Duration timeout) {
  auto runs = std::unique_ptr<BaselineRuns>(new BaselineRuns(names, ranks));
  if (names.empty()) return runs;
  SLUICE_ASSIGN_OR_RETURN(runs->maker_, MakeBaselineMaker(timeout));
  return runs;
}

absl::Status BaselineRuns::Plan(const TransferSpec& spec, const CaseMemory& memory,
                                absl::Duration patience, const Progress& progress) {
  entries_.clear();
  for (const std::string& name : names_) {
    Entry& entry = entries_.emplace_back();
    entry.name = name;
    if (HasBoxes(spec)) {
      entry.reason = "it knows no boxes";
      continue;
    }
    entry.baseline = maker_->Make(name);
    maker_->Arm(patience, progress);
    absl::Status mine =
        entry.baseline->Plan({&spec, memory.src(), memory.dst(), ranks_->rank(), maker_->wire()});
    absl::Status all = ranks_->AllOk(mine, patience, progress);
    if (absl::IsUnimplemented(all)) {
      entry.reason = absl::StrCat(all.message());
      entry.baseline.reset();
    } else if (!all.ok()) {
      return all;
    }
  }
  return absl::OkStatus();
}

std::vector<BaselineRuns::Entry*> BaselineRuns::Runnable() {
  std::vector<Entry*> runnable;
  for (Entry& entry : entries_) {
    if (entry.baseline != nullptr) runnable.push_back(&entry);
  }
  return runnable;
}

absl::Status BaselineRuns::Run(Entry* entry, absl::Duration patience, const Progress& progress) {
  maker_->Arm(patience, progress);
  absl::Status status = entry->baseline->Run();
  if (status.ok()) return status;
  return Prefixed(absl::StrCat("baseline ", entry->name), status);
}

}  // namespace sluice::bench
