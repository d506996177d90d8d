// Declaring and reading the flags.
#include "reshard/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

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

namespace sluice::bench {
namespace {

void AddKnobFlags(CLI::App* app, Options* o) {
  constexpr int kMax = std::numeric_limits<int>::max();
  const char* knobs = "Knobs";
  app->add_option("--bucket-bytes", o->bucket_bytes_text,
                  "most bytes of a bucket [auto: what suits the case]")
      ->group(knobs);
  app->add_option("--max-in-flight", o->max_in_flight_text,
                  "most buckets of a channel at once [auto]")
      ->group(knobs);
  app->add_option("--budget-buckets", o->budget_buckets,
                  "most buckets of a rank at once [16]; 0: no limit")
      ->group(knobs);
  app->add_option("--budget-bytes", o->budget_bytes_text,
                  "most staging bytes of a rank at once [16 of the largest buckets]; 0: no limit")
      ->group(knobs);
  app->add_option("--compare-budgets", o->compare_budgets_text,
                  "run every case with each of these budgets of buckets, interleaved, e.g. 0,8")
      ->group(knobs);
  app->add_option("--compare-transports", o->compare_transports_text,
                  "the same with each of these transports, e.g. direct,mpi")
      ->group(knobs);
  app->add_option("--plan", o->plan,
                  "relay: bytes that several ranks of a node need cross once and are handed on; "
                  "naive: each rank gets them from one that holds them [relay]")
      ->group(knobs);
  app->add_option("--compare-plans", o->compare_plans_text,
                  "run every case with each of these plans, interleaved, e.g. relay,naive")
      ->group(knobs);
  app->add_option("--compare-bucket-bytes", o->compare_bucket_bytes_text,
                  "the same with each of these sizes of buckets, e.g. auto,1M,8M")
      ->group(knobs);
  app->add_option("--compare-max-in-flight", o->compare_max_in_flight_text,
                  "the same with each of these numbers of buckets, e.g. auto,1,2")
      ->group(knobs);
  app->add_option(
         "--baseline", o->baselines_text,
         "run these as well, in turns, and compare: serial (one chunk at a time), isend (a "
         "message per chunk, all at once), alltoallw, gather-broadcast; memcpy: the bound, each "
         "rank "
         "writes its targets from memory of its own")
      ->group(knobs);
  app->add_option("--windowed", o->windowed,
                  "give targets their memory N tensors at a time, check it and take it back when "
                  "they are done [0: all from the start]")
      ->check(CLI::Range(0, kMaxWindow))
      ->group(knobs);
  app->add_flag("--progress-thread", o->progress_thread,
                "a thread of each session's own drives its transfers (MPI_THREAD_MULTIPLE)")
      ->group(knobs);
  app->add_option("--memory", o->memory,
                  "tensors in host memory: shared (mapped by the node's ranks) or private [shared]")
      ->group(knobs);
  app->add_option("--ranks-per-node", o->ranks_per_node,
                  "plan as if every N ranks were a node [by host name]")
      ->check(CLI::Range(0, kMax))
      ->group(knobs);
  app->add_option("--timeout-s", o->timeout_s, "seconds without progress that end the run [30]")
      ->check(CLI::Range(1, kMax))
      ->group(knobs);
}

void AddRunFlags(CLI::App* app, Options* o) {
  constexpr int kMaxIterations = 1000000;
  const char* run = "Run";
  app->add_option("-n,--iters", o->iterations, "timed iterations [10]")
      ->check(CLI::Range(1, kMaxIterations))
      ->group(run);
  app->add_option("-w,--warmup", o->warmup, "iterations before them [1]")
      ->check(CLI::Range(0, kMaxIterations))
      ->group(run);
  app->add_option("--check", o->check, "verify every element after every iteration [1]")
      ->check(CLI::Range(0, 1))
      ->group(run);
  app->add_option("--seed", o->seed, "added to the element's index in the fill [0]")->group(run);
  app->add_option("--fill", o->fill,
                  "hash: values depend on the tensor's name and all of an element's index; plain: "
                  "on the index's low 32 bits, as checksums of --fingerprint need it [hash]")
      ->group(run);
  app->add_flag("--fingerprint", o->fingerprint, "report checksums of every target rank")
      ->group(run);
  app->add_option("--corrupt", o->corrupt_bytes,
                  "negative control: flip N bytes after the run, which must then fail")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()))
      ->group(run);
  app->add_option("--grow", o->grow_text,
                  "negative control: have each rank take this much memory in the last run, which "
                  "must then fail if no budget allows it")
      ->group(run);
  app->add_option("--format", o->format, "table, or osu: size, MB/s and messages/s [table]")
      ->group(run);
  app->add_option("--trace", o->trace_file,
                  "write the timed iterations here, for ui.perfetto.dev or chrome://tracing; with "
                  "--compare-budgets those of the first budget")
      ->group(run);
  app->add_option("--trace-events", o->trace_events, "most events of a rank in it [16384]")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 26))
      ->group(run);
  app->add_flag("--plan-only", o->plan_only,
                "move nothing: print what the plans of all ranks come to between nodes (no mpirun "
                "needed)")
      ->group(run);
  app->add_option("-J,--json", o->json_file, "write the results here, also on failure")->group(run);
}

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
std::vector<std::string> Plans() { return {"relay", "naive"}; }

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
  if (absl::StripAsciiWhitespace(text) == "auto") return 0;
  absl::StatusOr<int64_t> bytes = ParseBytes(text);
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
  if (options->budget_bytes_text.empty()) return absl::OkStatus();
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

void AddFlags(CLI::App* app, Options* options) {
  AddWorkloadFlags(app, options);
  AddKnobFlags(app, options);
  AddRunFlags(app, options);
  AddGpuFlags(app, &options->gpu);
  app->footer(
      "Many small chunks: 1250 tensors of 8 x 256 B, against one message per chunk (16 ranks):\n"
      "  --shape 512 --tensors 1250 --src-mesh 8 --src-ranks 0-7 --src-placements 'S(0)'\n"
      "  --dst-mesh 8 --dst-ranks 8-15 --dst-placements 'S(0)' --baseline isend,serial");
}

absl::Status ParseTexts(Options* options) {
  absl::Status status =
      ParseNames("--baseline", options->baselines_text, BaselineNames(), &options->baselines);
  if (status.ok()) {
    status = ParseNames("--compare-transports", options->compare_transports_text, HostTransports(),
                        &options->compare_transports);
  }
  if (status.ok()) {
    status = ParseNames("--compare-plans", options->compare_plans_text, Plans(),
                        &options->compare_plans);
  }
  if (status.ok()) status = CheckName("--plan", options->plan, Plans());
  if (status.ok()) status = CheckName("--memory", options->memory, Memories());
  if (status.ok()) status = CheckName("--format", options->format, {"table", "osu"});
  if (status.ok()) status = ChooseFill(options);
  if (status.ok()) status = CheckWindowed(*options);
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
  return status.ok() ? ParseComparedKnobs(options) : status;
}

std::vector<std::string> PlansOf(const Options& options) {
  if (!options.compare_plans.empty()) return options.compare_plans;
  return {options.plan};
}

bool Relays(const std::string& plan) { return plan == "relay"; }

std::vector<std::pair<std::string, int64_t>> Knobs(const Options& options) {
  return {{"bucket_bytes", options.bucket_bytes},
          {"max_in_flight", options.max_in_flight},
          {"budget_buckets", options.budget_buckets},
          {"budget_bytes", options.budget_bytes},
          {"ranks_per_node", options.ranks_per_node},
          {"timeout_s", options.timeout_s},
          {"iters", options.iterations},
          {"warmup", options.warmup},
          {"check", options.check},
          {"seed", options.seed},
          {"fingerprint", options.fingerprint ? 1 : 0},
          {"corrupt", options.corrupt_bytes},
          {"grow", options.grow_bytes},
          {"windowed", options.windowed},
          {"progress_thread", options.progress_thread ? 1 : 0}};
}

std::vector<std::pair<std::string, int64_t>> Choices(const Options& options) {
  return {{"baselines", NumberOf(options.baselines, BaselineNames())},
          {"transports", NumberOf(options.gpu.transport, {"mpi", "direct", "nccl", "cuda_ipc"})},
          {"compared transports", NumberOf(options.compare_transports, HostTransports())},
          {"plans", NumberOf(options.plan, Plans())},
          {"compared plans", NumberOf(options.compare_plans, Plans())},
          {"memories", NumberOf(options.memory, Memories())},
          {"fills", NumberOf(options.fill, Fills())},
          {"formats", options.format == "osu" ? 1 : 0},
          {"traces", options.trace_file.empty() ? 0 : 1}};
}

}  // namespace sluice::bench
