// From flags to cases: reads the files that the flags name.
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "job/workload_flags.h"
#include "sluice/status.h"
#include "workload/case_file.h"
#include "workload/json_input.h"
#include "workload/model_mapping.h"
#include "workload/numbers.h"
#include "workload/presets.h"
#include "workload/shipped_file.h"
#include "workload/system_file.h"

namespace sluice::bench {
namespace {

bool AnyGiven(std::initializer_list<const std::string*> texts) {
  for (const std::string* text : texts) {
    if (!text->empty()) return true;
  }
  return false;
}

bool HasLayoutFlags(const InlineFlags& f) {
  return f.disjoint || f.ranks != 0 || f.has_sides() ||
         AnyGiven({&f.collective, &f.begin_bytes, &f.end_bytes, &f.factor, &f.step});
}

bool HasShapeFlags(const InlineFlags& f) { return AnyGiven({&f.shape, &f.dtype}); }

// A flag of one kind of workload beside another kind would be ignored silently: refuse it.
absl::Status CheckOneKind(const WorkloadOptions& o) {
  const bool cases = !o.cases_file.empty();
  const bool preset = !o.preset.empty();
  const bool model = AnyGiven({&o.model_file, &o.system_file});
  const bool inline_case = HasLayoutFlags(o.inline_flags);
  const int kinds = int{cases} + int{preset} + int{model} + int{inline_case};
  if (kinds > 1) {
    return absl::InvalidArgumentError(
        "--cases, --preset, --model, --collective and the --src/--dst flags exclude each other");
  }
  if (kinds == 0) {
    return absl::InvalidArgumentError(
        "nothing to move: give --cases, --preset, --model with --system, --collective with "
        "--ranks, or "
        "--shape with --src and --dst");
  }
  if ((cases || model) && HasShapeFlags(o.inline_flags)) {
    return absl::InvalidArgumentError("--shape and --dtype do not go with --cases or --model");
  }
  if ((cases || model) && o.tensors) {
    return absl::InvalidArgumentError("--tensors does not go with --cases or --model");
  }
  if (model && (o.model_file.empty() || o.system_file.empty())) {
    return absl::InvalidArgumentError("--model and --system need each other");
  }
  if (!model && !o.replicas.empty()) {
    return absl::InvalidArgumentError("--replicas goes with --model and --system only");
  }
  return absl::OkStatus();
}

absl::StatusOr<Workload> ReadCases(const std::string& path) {
  SLUICE_ASSIGN_OR_RETURN(const auto text, ReadShippedFile(path, "cases"));
  return Prefixed(path, ParseCaseFile(text));
}

absl::StatusOr<Workload> ReadPreset(const WorkloadOptions& options) {
  PresetOptions preset;
  preset.tensors = options.tensors.value_or(preset.tensors);
  if (!options.inline_flags.shape.empty()) {
    SLUICE_ASSIGN_OR_RETURN(preset.shape,
                            Prefixed("--shape", ParseIntegers(options.inline_flags.shape)));
  }
  if (!options.inline_flags.dtype.empty()) {
    SLUICE_ASSIGN_OR_RETURN(preset.dtype,
                            Prefixed("--dtype", ParseDTypeName(options.inline_flags.dtype)));
  }
  SLUICE_ASSIGN_OR_RETURN(auto made, MakePreset(options.preset, preset));
  Workload workload;
  workload.cases.push_back(std::move(made));
  return workload;
}

std::string Stem(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.substr(0, name.find_last_of('.'));
}

absl::StatusOr<Workload> ReadModel(const WorkloadOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(const auto model_text, ReadShippedFile(options.model_file, "models"));
  SLUICE_ASSIGN_OR_RETURN(const auto model,
                          Prefixed(options.model_file, ParseModelFile(model_text, options.cut)));
  SLUICE_ASSIGN_OR_RETURN(const auto system_text, ReadShippedFile(options.system_file, "systems"));
  SLUICE_ASSIGN_OR_RETURN(const auto system,
                          Prefixed(options.system_file, ParseSystemFile(system_text)));
  std::vector<int64_t> replicas = {1};
  if (!options.replicas.empty()) {
    SLUICE_ASSIGN_OR_RETURN(replicas, Prefixed("--replicas", ParseIntegers(options.replicas)));
  }
  Workload workload;
  workload.notes = model.notes;
  workload.notes.insert(workload.notes.end(), system.notes.begin(), system.notes.end());
  for (const int64_t count : replicas) {
    System repeated = system;
    SLUICE_RETURN_IF_ERROR(Prefixed("--replicas", Replicate(count, &repeated)));
    Case made;
    SLUICE_ASSIGN_OR_RETURN(made.spec, Prefixed(options.model_file, MapModel(model, repeated)));
    made.id = absl::StrCat(Stem(options.model_file), "/", Stem(options.system_file));
    if (!options.replicas.empty()) absl::StrAppend(&made.id, "/x", count);
    workload.cases.push_back(std::move(made));
  }
  return workload;
}

}  // namespace

absl::StatusOr<Workload> MakeWorkload(const WorkloadOptions& options) {
  SLUICE_RETURN_IF_ERROR(CheckOneKind(options));
  if (!options.cases_file.empty()) return ReadCases(options.cases_file);
  if (!options.preset.empty()) return ReadPreset(options);
  if (!options.model_file.empty()) return ReadModel(options);
  InlineFlags flags = options.inline_flags;
  flags.tensors = options.tensors.value_or(1);
  auto workload = MakeInlineCases(flags);
  // A single case that the flags describe wrongly is a wrong flag.
  if (workload.ok() && workload->cases.size() == 1 && !workload->cases[0].status.ok()) {
    return workload->cases[0].status;
  }
  return workload;
}

}  // namespace sluice::bench
