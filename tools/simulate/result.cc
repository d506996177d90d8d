// Sums and orders of what ranks saw, as a table and as CSV.
#include "simulate/result.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice::bench {
namespace {

using sim::HeldCause;
using sim::TimePs;
using sim::WaitCause;

constexpr double kPsPerUs = 1e6;

template <typename Value>
int64_t MaxOf(const std::vector<sim::RankOutcome>& ranks, Value sim::RankOutcome::*value) {
  int64_t most = 0;
  for (const sim::RankOutcome& rank : ranks) most = std::max<int64_t>(most, rank.*value);
  return most;
}

double Median(std::vector<int32_t> values) {
  if (values.empty()) return 0;
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(half), values.end());
  const double upper = values[half];
  if (values.size() % 2 == 1) return upper;
  return (upper +
          *std::max_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(half))) /
         2;
}

std::string Ratio(const std::optional<double>& ratio) {
  return ratio ? absl::StrFormat("%.3f", *ratio) : "-";
}

}  // namespace

SimResult Summarize(const sim::SimulationOutcome& outcome) {
  SimResult result;
  std::vector<int32_t> peaks;
  double rank_time = 0;
  for (const sim::RankOutcome& rank : outcome.ranks) {
    peaks.push_back(rank.peak_buckets);
    rank_time += static_cast<double>(rank.end);
  }
  const double ranks = static_cast<double>(std::max<size_t>(1, peaks.size()));
  result.ranks = static_cast<int>(outcome.ranks.size());
  result.peak_max = MaxOf(outcome.ranks, &sim::RankOutcome::peak_buckets);
  result.peak_mean = std::accumulate(peaks.begin(), peaks.end(), 0.0) / ranks;
  result.peak_median = Median(std::move(peaks));
  result.peak_bytes_max = MaxOf(outcome.ranks, &sim::RankOutcome::peak_bytes);
  result.peak_operations_max = MaxOf(outcome.ranks, &sim::RankOutcome::peak_operations);
  result.channels_max = MaxOf(outcome.ranks, &sim::RankOutcome::channels);
  result.makespan_us = static_cast<double>(outcome.makespan) / kPsPerUs;
  if (outcome.link_bound > 0) {
    result.ratio_to_link_bound =
        static_cast<double>(outcome.makespan) / static_cast<double>(outcome.link_bound);
  }
  const auto waited = [&](WaitCause cause) {
    const double time = static_cast<double>(outcome.waits[static_cast<size_t>(cause)]);
    return rank_time > 0 ? time / rank_time : 0;
  };
  result.waits_for_budget = waited(WaitCause::kBudget);
  result.waits_for_channel = waited(WaitCause::kChannel);
  const double held = std::accumulate(outcome.held.begin(), outcome.held.end(), 0.0);
  const auto spent = [&](HeldCause cause) {
    const double time = static_cast<double>(outcome.held[static_cast<size_t>(cause)]);
    return held > 0 ? time / held : 0;
  };
  result.held_by_copies = spent(HeldCause::kCopyQueue) + spent(HeldCause::kCopy);
  result.held_by_partner = spent(HeldCause::kPartner);
  result.held_by_wire = spent(HeldCause::kWire);
  result.stalled = outcome.stalled();
  result.stopped = outcome.stopped;
  return result;
}

void CompareWithNoBudget(std::vector<SimResult>* results) {
  for (SimResult& result : *results) {
    const auto free = std::find_if(results->begin(), results->end(), [&](const SimResult& other) {
      return other.budget == 0 && other.family == result.family && other.ranks == result.ranks &&
             !other.stopped && !other.stalled;
    });
    if (free == results->end() || result.stopped || result.stalled) continue;
    if (free->makespan_us > 0) result.ratio_to_no_budget = result.makespan_us / free->makespan_us;
  }
}

std::string SimTableHeader(const SimOptions& options) {
  return absl::StrCat(
      "# simulated; network model ", options.network.Describe(), "\n# bucket_bytes ",
      options.bucket_bytes, ", max_in_flight ", options.max_in_flight, " (0: automatic), plan ",
      options.plan, options.no_coalesce ? ", each chunk a bucket" : "", ", look_ahead at most ",
      options.look_ahead, ", start_skew_us ", options.start_skew_us, ", seed ", options.seed,
      "\n# peak: buckets held at once by a rank; bytes: of staging; waits: of ranks' time; held: "
      "of "
      "buckets' time\n",
      absl::StrFormat(
          "# %6s %7s %7s %9s %8s %12s %7s %9s %10s %12s %8s %8s %7s %7s %7s %7s %7s  %s\n", "ranks",
          "budget", "peak", "median", "mean", "bytes", "ops", "channels", "buckets", "makespan",
          "/link", "/free", "wait%", "wait%", "held%", "held%", "held%", "case"),
      absl::StrFormat("# %6s %7s %7s %9s %8s %12s %7s %9s %10s %12s %8s %8s %7s %7s %7s %7s %7s\n",
                      "", "", "(max)", "", "", "(max)", "(max)", "(max)", "", "(us)", "", "",
                      "budget", "channel", "copies", "partner", "wire"));
}

std::string SimTableRow(const SimResult& r) {
  const char* end = r.stopped ? "  STOPPED: what had happened until then" : "";
  return absl::StrFormat(
      "%8d %7s %7d %9.1f %8.1f %12d %7d %9d %10d %12.1f %8.3f %8s %7.1f %7.1f %7.1f %7.1f %7.1f  "
      "%s%s%s\n",
      r.ranks, r.budget == 0 ? "none" : absl::StrCat(r.budget), r.peak_max, r.peak_median,
      r.peak_mean, r.peak_bytes_max, r.peak_operations_max, r.channels_max, r.buckets,
      r.makespan_us, r.ratio_to_link_bound, Ratio(r.ratio_to_no_budget), 100 * r.waits_for_budget,
      100 * r.waits_for_channel, 100 * r.held_by_copies, 100 * r.held_by_partner,
      100 * r.held_by_wire, r.family, r.stalled ? "  STALLED" : "", end);
}

std::string SimCsv(const SimOptions& options, absl::Span<const SimResult> results) {
  std::string text =
      "model,family,ranks,budget,max_in_flight,peak_max,peak_median,peak_mean,peak_bytes_max,"
      "peak_operations_max,channels_max,buckets,makespan_us,ratio_to_link_bound,"
      "ratio_to_no_budget,waits_for_budget,waits_for_channel,held_by_copies,held_by_partner,"
      "held_by_wire,stalled\n";
  for (const SimResult& r : results) {
    absl::StrAppendFormat(
        &text,
        "\"%s\",\"%s\",%d,%d,%d,%d,%.1f,%.3f,%d,%d,%d,%d,%.6f,%.6f,%s,%.6f,%.6f,%.6f,%.6f,%.6f,"
        "%d\n",
        options.network.name, r.family, r.ranks, r.budget, r.max_in_flight, r.peak_max,
        r.peak_median, r.peak_mean, r.peak_bytes_max, r.peak_operations_max, r.channels_max,
        r.buckets, r.makespan_us, r.ratio_to_link_bound,
        r.ratio_to_no_budget ? absl::StrFormat("%.6f", *r.ratio_to_no_budget) : "",
        r.waits_for_budget, r.waits_for_channel, r.held_by_copies, r.held_by_partner,
        r.held_by_wire, r.stalled ? 1 : 0);
  }
  return text;
}

}  // namespace sluice::bench
