// Reading launchers' variables.
#include "world/launch.h"

#include <cstdlib>
#include <initializer_list>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace sluice {
namespace {

// A launcher, by the variables that it sets.
struct KnownLauncher {
  const char* name;
  JobKind kind;
  const char* rank;
  const char* size;       // "": none
  const char* also = "";  // a variable without which it is another one's
};

constexpr KnownLauncher kMpiLaunchers[] = {
    {"mpirun", JobKind::kMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mpiexec", JobKind::kMpi, "PMI_RANK", "PMI_SIZE"},
    {"a launcher with PMIx", JobKind::kMpi, "PMIX_RANK", ""}};

constexpr KnownLauncher kWorldLaunchers[] = {
    {"SLUICE_RANK", JobKind::kWorld, "SLUICE_RANK", "SLUICE_SIZE"},
    {"torchrun", JobKind::kWorld, "RANK", "WORLD_SIZE", "MASTER_ADDR"},
    {"srun", JobKind::kWorld, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID"}};

// The numbers are enough where SLUICE_WORLD says where ranks meet. The order is that of
// WorldOptionsFromEnvironment.
constexpr KnownLauncher kRanksOfAWorld[] = {
    {"PMIx and SLUICE_SIZE", JobKind::kWorld, "PMIX_RANK", "SLUICE_SIZE", "SLUICE_SIZE"},
    {"torchrun", JobKind::kWorld, "RANK", "WORLD_SIZE", "MASTER_ADDR"},
    {"RANK", JobKind::kWorld, "RANK", "WORLD_SIZE"}};

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
bool Find(Environment environment, const KnownLauncher& launcher, Launch* launch) {
  if (!IsSet(environment, launcher.rank)) return false;
  if (*launcher.also != '\0' && !IsSet(environment, launcher.also)) return false;
  launch->kind = launcher.kind;
  launch->rank = NumberOf(environment, launcher.rank, 0);
  launch->size = NumberOf(environment, launcher.size, 0);
  launch->by = launcher.name;
  return true;
}

bool FindAny(Environment environment, absl::Span<const KnownLauncher> launchers, Launch* launch) {
  for (const KnownLauncher& launcher : launchers) {
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
    launch.kind = JobKind::kWorld;
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

absl::StatusOr<JobKind> ChooseKind(absl::optional<JobKind> wanted, const Launch& launch,
                                   bool has_mpi) {
  const JobKind kind = wanted.value_or(launch.kind);
  if (kind != JobKind::kMpi || has_mpi) return kind;
  if (wanted) return absl::InvalidArgumentError("this program is built without MPI");
  if (launch.size == 1) return JobKind::kAlone;
  return absl::InvalidArgumentError(
      absl::StrCat("started by ", launch.by,
                   ", but this program is built without MPI (sluice::mpi). "
                   "SLUICE_WORLD=tcp://HOST:PORT makes the ranks a world"));
}

}  // namespace sluice
