// Reading launchers' variables.
#include "job/launch.h"

#include <cstdlib>
#include <initializer_list>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace sluice::bench {
namespace {

// A launcher, by the variables that it sets.
struct Launcher {
  const char* name;
  FabricKind fabric;
  const char* rank;
  const char* size;       // "": none
  const char* also = "";  // a variable without which it is another one's
};

constexpr Launcher kMpiLaunchers[] = {
    {"mpirun", FabricKind::kMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mpiexec", FabricKind::kMpi, "PMI_RANK", "PMI_SIZE"},
    {"a launcher with PMIx", FabricKind::kMpi, "PMIX_RANK", ""}};

constexpr Launcher kWorldLaunchers[] = {
    {"SLUICE_RANK", FabricKind::kWorld, "SLUICE_RANK", "SLUICE_SIZE"},
    {"torchrun", FabricKind::kWorld, "RANK", "WORLD_SIZE", "MASTER_ADDR"},
    {"srun", FabricKind::kWorld, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID"}};

// Where SLUICE_WORLD says where ranks meet, the numbers are enough. The order is that of
// WorldOptionsFromEnvironment.
constexpr Launcher kRanksOfAWorld[] = {
    {"PMIx and SLUICE_SIZE", FabricKind::kWorld, "PMIX_RANK", "SLUICE_SIZE", "SLUICE_SIZE"},
    {"torchrun", FabricKind::kWorld, "RANK", "WORLD_SIZE", "MASTER_ADDR"},
    {"RANK", FabricKind::kWorld, "RANK", "WORLD_SIZE"}};

bool IsSet(Environment environment, const char* name) {
  const char* const text = *name == '\0' ? nullptr : environment(name);
  return text != nullptr && *text != '\0';
}

// `otherwise` if it is not set, or no number.
int NumberOf(Environment environment, const char* name, int otherwise) {
  int number = 0;
  if (!IsSet(environment, name) || !absl::SimpleAtoi(environment(name), &number)) return otherwise;
  return number;
}

// Whether `launcher` has started this process.
bool Find(Environment environment, const Launcher& launcher, Launch* launch) {
  if (!IsSet(environment, launcher.rank)) return false;
  if (*launcher.also != '\0' && !IsSet(environment, launcher.also)) return false;
  launch->fabric = launcher.fabric;
  launch->rank = NumberOf(environment, launcher.rank, 0);
  launch->size = NumberOf(environment, launcher.size, 0);
  launch->by = launcher.name;
  return true;
}

bool FindAny(Environment environment, absl::Span<const Launcher> launchers, Launch* launch) {
  for (const Launcher& launcher : launchers) {
    if (Find(environment, launcher, launch)) return true;
  }
  return false;
}

}  // namespace

Launch ReadLaunch(Environment environment) {
  Launch launch;
  if (IsSet(environment, "SLUICE_WORLD")) {
    // The world's own order of variables.
    if (!Find(environment, kWorldLaunchers[0], &launch) &&
        !FindAny(environment, kRanksOfAWorld, &launch) &&
        !FindAny(environment, kMpiLaunchers, &launch)) {
      Find(environment, kWorldLaunchers[2], &launch);
    }
    launch.fabric = FabricKind::kWorld;
    return launch;
  }
  if (FindAny(environment, kMpiLaunchers, &launch)) return launch;
  if (!FindAny(environment, kWorldLaunchers, &launch)) return launch;
  if (launch.by == "srun" && launch.size <= 1) return Launch();
  return launch;
}

Launch OwnLaunch() {
  return ReadLaunch(
      [](const char* name) -> const char* { return std::getenv(name); });  // NOLINT: one thread
}

absl::StatusOr<FabricKind> ChooseFabric(const std::string& flag, const Launch& launch,
                                        bool has_mpi) {
  if (flag == "world") return FabricKind::kWorld;
  if (flag == "mpi") {
    if (has_mpi) return FabricKind::kMpi;
    return absl::InvalidArgumentError("--fabric mpi: this program is built without MPI");
  }
  if (flag != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("--fabric: \"", flag, "\" is not one of auto, mpi, world"));
  }
  if (launch.fabric == FabricKind::kWorld) return FabricKind::kWorld;
  if (has_mpi) return FabricKind::kMpi;
  if (launch.fabric == FabricKind::kAlone || launch.size == 1) return FabricKind::kAlone;
  return absl::InvalidArgumentError(
      absl::StrCat("started by ", launch.by,
                   ", but this program is built without MPI. "
                   "SLUICE_WORLD=tcp://HOST:PORT makes the ranks a world"));
}

}  // namespace sluice::bench
