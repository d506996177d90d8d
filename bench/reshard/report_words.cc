// The closing words of a model run: what it has shown, without columns.
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reshard/report_table.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

std::string Verdict(absl::Span<const CaseResult> results) {
  int64_t wrong = 0;
  bool checked = true;
  for (const CaseResult& result : results) {
    wrong += result.wrong;
    checked = checked && result.checked;
  }
  if (!checked) return "Elements were not verified (--check none).";
  if (wrong == 0 && results[0].sampled) {
    return "A sample of the elements was verified on every target rank after every run: all right.";
  }
  if (wrong == 0)
    return "Every element was verified on every target rank after every run: all right.";
  return absl::StrCat("VERIFICATION FAILED: ", wrong, " elements are wrong.");
}

std::string Holds(const CaseResult& r) {
  return absl::StrCat(r.peak_buckets, " buckets and ", BytesName(r.peak_bytes), " of staging");
}

std::string BudgetWords(const CaseResult& r) {
  const std::string rate = absl::StrFormat("%.2f GB/s", r.alg_bw);
  if (r.limit_buckets == 0) {
    return absl::StrCat("Without a budget, the busiest rank held ", Holds(r), " at once, at ", rate,
                        ".");
  }
  return absl::StrCat("With a budget of ", r.limit_buckets, " buckets, no rank held more than ",
                      Holds(r), " at once, at ", rate, ".");
}

}  // namespace

std::string InWords(absl::Span<const CaseResult> results) {
  if (results.empty()) return "";
  const CaseResult& first = results[0];
  std::string text =
      absl::StrCat("\n", first.tensors, " tensors, ", BytesName(first.payload_bytes),
                   " delivered to other ranks per run, in ", first.buckets, " buckets over ",
                   first.channels, " channels.\n", Verdict(results), "\n");
  for (const CaseResult& result : results) absl::StrAppend(&text, BudgetWords(result), "\n");
  absl::StrAppend(&text, "Channel limits alone would let a rank hold ", first.free_peak_buckets,
                  " buckets and ", BytesName(first.free_peak_bytes),
                  " of staging; that grows with the number of ranks, the budget does not.\n");
  return text;
}

}  // namespace sluice::bench
