// What flags come to, and what must be equal on all ranks.
#include "reshard/options.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "reshard/lanes.h"
#include "sluice/status.h"
#include "workload/json_input.h"
#include "workload/numbers.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

absl::Status Refuse(absl::string_view text) { return absl::InvalidArgumentError(text); }

// Says which memory each side is in, and what carries it.
absl::Status ResolveGpu(GpuOptions* options) {
  for (std::string* side : {&options->src_device, &options->dst_device}) {
    if (side->empty()) *side = options->device;
  }
  options->transport = options->uses_device() ? "mpi" : "direct";
  if (!options->transport_text.empty()) options->transport = options->transport_text;
  if (options->transport == "direct" && options->uses_device()) {
    return Refuse("--transport direct is for host memory");
  }
  const bool ctas = options->min_ctas > 0 || options->max_ctas > 0;
  const bool for_nccl = ctas || options->max_channels_per_peer > 0 || options->register_staging;
  if (options->transport != "nccl" && for_nccl) {
    return Refuse(
        "--max-channels-per-peer, --min-ctas, --max-ctas and --register-staging go with "
        "--transport nccl");
  }
  if (ctas && options->max_ctas > 0 && options->min_ctas > options->max_ctas) {
    return Refuse(
        absl::StrCat("--min-ctas ", options->min_ctas, " is above --max-ctas ", options->max_ctas));
  }
  return absl::OkStatus();
}

absl::Status CheckTogether(const Options& o) {
  if (o.budget_buckets < 0) {
    return Refuse(absl::StrCat("--budget-buckets is ", o.budget_buckets,
                               "; it must be 1 or more, or 0 for no limit"));
  }
  // Late targets are not there for others to fill, or to flip bytes in, at the end.
  if (o.windowed > 0 && !o.baselines.empty()) {
    return Refuse("--windowed does not go with --baseline");
  }
  if (o.windowed > 0 && o.corrupt_bytes > 0) return Refuse("--windowed does not go with --corrupt");
  // Fingerprints are for others to compute again, from the plain fill.
  if (o.fingerprint && o.fill != "plain")
    return Refuse("--fingerprint goes with --fill plain only");
  if (o.gpu.uses_device() && !o.baselines.empty()) {
    return Refuse("--baseline goes with tensors in host memory only");
  }
  if (o.gpu.uses_device() && !o.compare_transports.empty()) {
    return Refuse("--compare-transports goes with host memory only");
  }
  return CheckLanes(o);
}

}  // namespace

absl::Status ParseTexts(Options* options) {
  SLUICE_RETURN_IF_ERROR(KeepApart(&options->json_file, {{"--cases", options->cases_file},
                                                         {"--model", options->model_file},
                                                         {"--system", options->system_file},
                                                         {"--trace", options->trace_file}}));
  if (options->csv && options->format == "osu") {
    return Refuse("--csv does not go with --format osu");
  }
  if (options->csv) options->format = "csv";
  if (options->fill.empty()) options->fill = options->fingerprint ? "plain" : "hash";
  options->gpu.record_spans = !options->trace_file.empty();
  SLUICE_RETURN_IF_ERROR(ResolveGpu(&options->gpu));
  if (options->budget_bytes_text != "auto") {
    SLUICE_ASSIGN_OR_RETURN(options->budget_bytes,
                            Prefixed("--budget-bytes", ParseBytes(options->budget_bytes_text)));
  }
  return CheckTogether(*options);
}

std::vector<std::string> PlansOf(const Options& options) {
  if (!options.compare_plans.empty()) return options.compare_plans;
  return {options.plan};
}

std::vector<bool> CoalesceOf(const Options& options) {
  if (options.compare_coalesce.empty()) return {!options.no_coalesce};
  std::vector<bool> coalesce;
  for (const std::string& name : options.compare_coalesce) coalesce.push_back(name == "on");
  return coalesce;
}

bool Relays(const std::string& plan) { return plan == "relay"; }

std::vector<std::pair<std::string, int64_t>> Knobs(const Options& options) {
  return {{"bucket_bytes", options.bucket_bytes.value_or(0)},
          {"max_in_flight", options.max_in_flight.value_or(0)},
          {"budget_buckets", options.budget_buckets},
          {"budget_bytes", options.budget_bytes},
          {"ranks_per_node", options.ranks_per_node},
          {"iters", options.iterations},
          {"warmup", options.warmup},
          {"check", static_cast<int>(options.check)},
          {"fill_seed", options.seed},
          {"fingerprint", options.fingerprint ? 1 : 0},
          {"corrupt", options.corrupt_bytes},
          {"grow", options.grow_bytes},
          {"windowed", options.windowed},
          {"progress_thread", options.progress_thread ? 1 : 0},
          {"coalesce", options.no_coalesce ? 0 : 1}};
}

FlagConfig Choices(const Options& options) {
  return {{"timeout_s", options.timeout_s},
          {"compare_budgets", options.compare_budgets},
          {"compare_transports", options.compare_transports},
          {"plan", options.plan},
          {"compare_plans", options.compare_plans},
          {"compare_coalesce", options.compare_coalesce},
          {"compare_bucket_bytes", options.compare_bucket_bytes},
          {"compare_max_in_flight", options.compare_max_in_flight},
          {"memory", options.memory},
          {"fill", options.fill},
          {"baselines", options.baselines}};
}

}  // namespace sluice::bench
