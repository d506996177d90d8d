// Reading the flags that are texts, and what must be equal on all ranks.
#include "reshard/options.h"

#include <algorithm>
#include <cmath>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "reshard/baselines/baseline.h"
#include "reshard/lanes.h"
#include "workload/json_input.h"
#include "workload/numbers.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

// Names that are known, each once.
absl::Status ParseNames(const std::string& flag, const std::string& text,
                        const std::vector<std::string>& known, std::vector<std::string>* chosen) {
  if (text.empty()) return absl::OkStatus();
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::string name(absl::StripAsciiWhitespace(part));
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          flag, ": there is no \"", name, "\"; there are: ", absl::StrJoin(known, ", ")));
    }
    if (std::find(chosen->begin(), chosen->end(), name) != chosen->end()) {
      return absl::InvalidArgumentError(absl::StrCat(flag, ": \"", name, "\" is there twice"));
    }
    chosen->push_back(name);
  }
  return absl::OkStatus();
}

// Its place among `known`; to compare across ranks. 0 if it is not there.
int64_t NumberOf(const std::string& name, const std::vector<std::string>& known) {
  const auto found = std::find(known.begin(), known.end(), name);
  return found == known.end() ? 0 : found - known.begin();
}

// The same of a list: a digit for each, from 1.
int64_t NumberOf(const std::vector<std::string>& names, const std::vector<std::string>& known) {
  int64_t number = 0;
  for (const std::string& name : names) number = 10 * number + 1 + NumberOf(name, known);
  return number;
}

std::vector<std::string> HostTransports() { return {"mpi", "direct"}; }
std::vector<std::string> Memories() { return {"private", "shared"}; }
std::vector<std::string> Fills() { return {"hash", "plain"}; }
std::vector<std::string> Formats() { return {"table", "osu", "csv"}; }
std::vector<std::string> Plans() { return {"relay", "naive"}; }
std::vector<std::string> OnOff() { return {"on", "off"}; }

absl::Status CheckName(const std::string& flag, const std::string& name,
                       const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": there is no \"", name, "\"; there are: ", absl::StrJoin(known, ", ")));
}

// Late targets are not there for others to fill, or to flip bytes in, at the end.
absl::Status CheckWindowed(const Options& options) {
  if (options.windowed == 0) return absl::OkStatus();
  if (!options.baselines.empty()) {
    return absl::InvalidArgumentError("--windowed does not go with --baseline");
  }
  if (options.corrupt_bytes > 0) {
    return absl::InvalidArgumentError("--windowed does not go with --corrupt");
  }
  return absl::OkStatus();
}

absl::Status ChooseFormat(Options* options) {
  absl::Status status = CheckName("--format", options->format, Formats());
  if (!status.ok() || !options->csv) return status;
  if (options->format == "osu") {
    return absl::InvalidArgumentError("--csv does not go with --format osu");
  }
  options->format = "csv";
  return status;
}

// Fingerprints are for others to compute again, from the plain fill.
absl::Status ChooseFill(Options* options) {
  if (options->fill.empty()) options->fill = options->fingerprint ? "plain" : "hash";
  absl::Status status = CheckName("--fill", options->fill, Fills());
  if (status.ok() && options->fingerprint && options->fill != "plain") {
    status = absl::InvalidArgumentError("--fingerprint goes with --fill plain only");
  }
  return status;
}

// A knob that may also be "auto", which reads as 0.
absl::StatusOr<int64_t> ParseSize(const std::string& flag, absl::string_view text) {
  absl::StatusOr<int64_t> bytes = ParseBytesOrAuto(text);
  return bytes.ok() ? bytes : Prefixed(flag, bytes.status());
}

absl::StatusOr<int> ParseCount(const std::string& flag, absl::string_view text) {
  if (absl::StripAsciiWhitespace(text) == "auto") return 0;
  int count = 0;
  if (absl::SimpleAtoi(text, &count)) return count;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": \"", text, "\" is neither a number nor auto"));
}

absl::Status ParseKnobs(Options* options) {
  const auto bucket_bytes = ParseSize("--bucket-bytes", options->bucket_bytes_text);
  if (!bucket_bytes.ok()) return bucket_bytes.status();
  options->bucket_bytes = *bucket_bytes;
  const auto max_in_flight = ParseCount("--max-in-flight", options->max_in_flight_text);
  if (!max_in_flight.ok()) return max_in_flight.status();
  options->max_in_flight = *max_in_flight;
  const auto grow_bytes = ParseBytes(options->grow_text);
  if (!grow_bytes.ok()) return Prefixed("--grow", grow_bytes.status());
  options->grow_bytes = *grow_bytes;
  const auto corrupt_bytes = ParseBytes(options->corrupt_text);
  if (!corrupt_bytes.ok()) return Prefixed("--corrupt", corrupt_bytes.status());
  options->corrupt_bytes = *corrupt_bytes;
  if (options->budget_bytes_text == "auto") return absl::OkStatus();
  const auto budget_bytes = ParseBytes(options->budget_bytes_text);
  if (!budget_bytes.ok()) return Prefixed("--budget-bytes", budget_bytes.status());
  options->budget_bytes = *budget_bytes;
  return absl::OkStatus();
}

// The entries of a list of knobs, each read by `parse`, each once.
template <typename Value>
absl::Status ParseList(const std::string& flag, const std::string& text,
                       absl::StatusOr<Value> (*parse)(const std::string&, absl::string_view),
                       std::vector<Value>* values) {
  if (text.empty()) return absl::OkStatus();
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const auto value = parse(flag, part);
    if (!value.ok()) return value.status();
    if (std::find(values->begin(), values->end(), *value) != values->end()) {
      return absl::InvalidArgumentError(absl::StrCat(flag, ": \"", part, "\" is there twice"));
    }
    values->push_back(*value);
  }
  return absl::OkStatus();
}

absl::Status ParseComparedKnobs(Options* options) {
  absl::Status status = ParseList("--compare-bucket-bytes", options->compare_bucket_bytes_text,
                                  &ParseSize, &options->compare_bucket_bytes);
  if (status.ok()) {
    status = ParseList("--compare-max-in-flight", options->compare_max_in_flight_text, &ParseCount,
                       &options->compare_max_in_flight);
  }
  if (!status.ok()) return status;
  if (!options->compare_budgets_text.empty()) {
    auto budgets = ParseIntegers(options->compare_budgets_text);
    if (!budgets.ok()) return Prefixed("--compare-budgets", budgets.status());
    options->compare_budgets = *std::move(budgets);
  }
  return CheckLanes(*options);
}

}  // namespace

absl::Status ParseTexts(Options* options) {
  absl::Status status = KeepApart(&options->json_file, {{"--cases", options->cases_file},
                                                        {"--model", options->model_file},
                                                        {"--system", options->system_file},
                                                        {"--trace", options->trace_file}});
  if (status.ok()) {
    status =
        ParseNames("--baseline", options->baselines_text, BaselineNames(), &options->baselines);
  }
  if (status.ok()) {
    status = ParseNames("--compare-transports", options->compare_transports_text, HostTransports(),
                        &options->compare_transports);
  }
  if (status.ok()) {
    status = ParseNames("--compare-plans", options->compare_plans_text, Plans(),
                        &options->compare_plans);
  }
  if (status.ok()) {
    status = ParseNames("--compare-coalesce", options->compare_coalesce_text, OnOff(),
                        &options->compare_coalesce);
  }
  if (status.ok()) status = CheckName("--plan", options->plan, Plans());
  if (status.ok()) status = CheckName("--memory", options->memory, Memories());
  if (status.ok()) status = ChooseFormat(options);
  if (status.ok()) status = ChooseFill(options);
  if (status.ok()) status = CheckGpuOptions(&options->gpu);
  options->gpu.record_spans = !options->trace_file.empty();
  if (status.ok() && options->gpu.uses_device() && !options->baselines.empty()) {
    status = absl::InvalidArgumentError("--baseline goes with tensors in host memory only");
  }
  if (status.ok() && options->gpu.uses_device() && !options->compare_transports.empty()) {
    status = absl::InvalidArgumentError("--compare-transports goes with host memory only");
  }
  if (!status.ok()) return status;
  status = ParseKnobs(options);
  if (status.ok()) status = CheckWindowed(*options);
  return status.ok() ? ParseComparedKnobs(options) : status;
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
  return {{"bucket_bytes", options.bucket_bytes},
          {"max_in_flight", options.max_in_flight},
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

std::vector<std::pair<std::string, int64_t>> Choices(const Options& options) {
  return {{"timeout_s (in 10^-6)", std::llround(options.timeout_s * 1e6)},
          {"baselines", NumberOf(options.baselines, BaselineNames())},
          {"transports", NumberOf(options.gpu.transport, {"mpi", "direct", "nccl", "cuda_ipc"})},
          {"compared transports", NumberOf(options.compare_transports, HostTransports())},
          {"plans", NumberOf(options.plan, Plans())},
          {"compared plans", NumberOf(options.compare_plans, Plans())},
          {"compared coalesce", NumberOf(options.compare_coalesce, OnOff())},
          {"memories", NumberOf(options.memory, Memories())},
          {"fills", NumberOf(options.fill, Fills())},
          {"formats", NumberOf(options.format, Formats())},
          {"traces", options.trace_file.empty() ? 0 : 1}};
}

}  // namespace sluice::bench
