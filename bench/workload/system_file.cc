// From a system file's JSON to degrees of parallelism.
#include "workload/system_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/status.h"
#include "workload/json_input.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

absl::Status ReadSize(const Json& side, const char* key, int64_t* size) {
  SLUICE_RETURN_IF_ERROR(Read(side, key, size));
  if (*size >= 1 && *size <= kMaxListedRanks) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("key \"", key, "\" must be 1 to ", kMaxListedRanks, ", not ", *size));
}

absl::Status CheckDivides(const Parallelism& side) {
  const int64_t n = side.stage_ranks();
  if (side.num_gpus % side.pp_size != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("pp_size ", side.pp_size, " does not divide num_gpus ", side.num_gpus));
  }
  const int64_t dense = side.fsdp_size * side.tp_size;
  if (n % dense != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "fsdp_size * tp_size = ", dense, " does not divide the ", n, " ranks of a pipeline stage"));
  }
  if (n % side.ep_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ep_size ", side.ep_size, " does not divide the ", n, " ranks of a pipeline stage"));
  }
  return absl::OkStatus();
}

absl::Status ReadSide(const Json& root, const char* key, Parallelism* side,
                      std::vector<std::string>* notes) {
  const Json* object = nullptr;
  SLUICE_RETURN_IF_ERROR(Read(root, key, &object));
  const std::pair<const char*, int64_t*> sizes[] = {
      {"num_gpus", &side->num_gpus}, {"tp_size", &side->tp_size}, {"cp_size", &side->cp_size},
      {"ep_size", &side->ep_size},   {"pp_size", &side->pp_size}, {"fsdp_size", &side->fsdp_size},
      {"dp_size", &side->dp_size}};
  NoteUnknownKeys(*object,
                  {"num_gpus", "tp_size", "cp_size", "ep_size", "pp_size", "fsdp_size", "dp_size"},
                  key, notes);
  absl::Status status;
  for (const auto& [name, size] : sizes) {
    const bool required = size == &side->num_gpus;
    if (required || object->contains(name)) status.Update(ReadSize(*object, name, size));
  }
  if (status.ok()) status = CheckDivides(*side);
  return Prefixed(absl::StrCat("\"", key, "\""), status);
}

absl::StatusOr<System> ReadSystem(absl::string_view text) {
  SLUICE_ASSIGN_OR_RETURN(const auto root, ParseJson(text));
  if (!root.is_object()) return absl::InvalidArgumentError("a system file must be an object");
  System system;
  NoteUnknownKeys(root, {"train", "generation"}, "system", &system.notes);
  SLUICE_RETURN_IF_ERROR(ReadSide(root, "train", &system.train, &system.notes));
  SLUICE_RETURN_IF_ERROR(ReadSide(root, "generation", &system.generation, &system.notes));
  return system;
}

}  // namespace

absl::StatusOr<System> ParseSystemFile(absl::string_view text) {
  absl::StatusOr<System> system = ReadSystem(text);
  if (!system.ok()) return Readable(system.status());
  for (std::string& note : system->notes) note = Readable(note);
  return system;
}

absl::Status Replicate(int64_t replicas, System* system) {
  if (replicas < 1 || replicas > kMaxListedRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat(replicas, " is not 1 to ", kMaxListedRanks, " replicas"));
  }
  for (Parallelism* side : {&system->train, &system->generation}) {
    side->num_gpus *= replicas;
    side->dp_size *= replicas;
    if (side->num_gpus > kMaxListedRanks) {
      return absl::InvalidArgumentError(absl::StrCat(replicas, " replicas of a side are ",
                                                     side->num_gpus, " ranks; at most ",
                                                     kMaxListedRanks));
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice::bench
