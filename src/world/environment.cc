// Variables of launchers, in the order in which they count.
#include "world/environment.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "tensor/error_text.h"
#include "transport/environment_variable.h"
#include "world/store/store_address.h"
#include "world/world_options.h"

namespace sluice {
namespace {

// The variables in which a launcher says who a process is.
struct Launcher {
  const char* rank;
  const char* size;
};
// torchrun may run below mpirun or srun, and mpirun below sbatch, so the inner one comes first.
constexpr std::array<Launcher, 3> kLaunchers = {{{"RANK", "WORLD_SIZE"},
                                                 {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                 {"PMI_RANK", "PMI_SIZE"}}};
constexpr Launcher kOwn = {"SLUICE_RANK", "SLUICE_SIZE"};
constexpr Launcher kSlurm = {"SLURM_PROCID", "SLURM_NTASKS"};
// PMIx says the rank alone.
constexpr Launcher kPmix = {"PMIX_RANK", "SLUICE_SIZE"};

absl::Status Bad(absl::string_view text) { return absl::InvalidArgumentError(text); }

absl::StatusOr<int> Number(EnvironmentFunction environment, const char* name, int min, int max) {
  const std::string text = environment(name);
  int value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= min && value <= max) return value;
  if (text.empty()) return Bad(absl::StrCat(name, " is not set"));
  return Bad(absl::StrCat(name, " is \"", text, "\", but must be a number, ", min, " .. ", max));
}

struct Identity {
  int rank;
  int size;
};

absl::StatusOr<Identity> Identify(EnvironmentFunction environment, const Launcher& launcher) {
  const std::array<const char*, 2> both = {launcher.rank, launcher.size};
  for (size_t i = 0; i < both.size(); ++i) {
    if (!environment(both[i]).empty()) continue;
    return Bad(absl::StrCat(both[1 - i], " is set, and ", both[i], " is not"));
  }
  SLUICE_ASSIGN_OR_RETURN(const int size, Number(environment, launcher.size, 1, kWorldMembersMax));
  SLUICE_ASSIGN_OR_RETURN(const int rank,
                          Number(environment, launcher.rank, 0, kWorldMembersMax - 1));
  if (rank < size) return Identity{rank, size};
  return Bad(absl::StrCat(launcher.rank, " is ", rank, ", but ", launcher.size, " is ", size));
}

bool Says(EnvironmentFunction environment, const Launcher& launcher) {
  return !environment(launcher.rank).empty() || !environment(launcher.size).empty();
}

// In a batch script itself SLURM_PROCID is 0 and SLURM_NTASKS the job's: only a step has tasks.
bool IsSlurmTask(EnvironmentFunction environment) {
  return !environment("SLURM_STEP_ID").empty() && Says(environment, kSlurm);
}

absl::StatusOr<Identity> Identify(EnvironmentFunction environment) {
  if (environment(kOwn.rank) == "any") {
    if (environment(kOwn.size).empty()) return Identity{kAnyRank, 0};
    SLUICE_ASSIGN_OR_RETURN(const int size, Number(environment, kOwn.size, 1, kWorldMembersMax));
    return Identity{kAnyRank, size};
  }
  if (environment(kOwn.rank).empty() && !environment(kPmix.rank).empty() &&
      !environment(kPmix.size).empty()) {
    return Identify(environment, kPmix);
  }
  if (Says(environment, kOwn)) return Identify(environment, kOwn);
  absl::optional<Identity> first;
  const Launcher* named = nullptr;
  for (const Launcher& launcher : kLaunchers) {
    if (!Says(environment, launcher)) continue;
    SLUICE_ASSIGN_OR_RETURN(const Identity identity, Identify(environment, launcher));
    if (named == nullptr) {
      first = identity;
      named = &launcher;
    } else if (first->rank != identity.rank || first->size != identity.size) {
      return Bad(absl::StrCat(named->rank, " is ", first->rank, " of ", first->size, ", and ",
                              launcher.rank, " is ", identity.rank, " of ", identity.size,
                              ": say which with SLUICE_RANK and SLUICE_SIZE"));
    }
  }
  if (first) return *first;
  if (IsSlurmTask(environment)) return Identify(environment, kSlurm);
  return Bad(
      "nothing says which rank this process is: set SLUICE_RANK and SLUICE_SIZE, or start it with "
      "torchrun, mpirun or srun");
}

// Slurm gives a job no port. Jobs and steps have ports of their own, below those that systems hand
// out by themselves.
absl::StatusOr<std::string> SlurmAddress(EnvironmentFunction environment) {
  constexpr int64_t kFirstPort = 20000;
  constexpr int64_t kPorts = 10000;
  int64_t job = 0;
  int64_t step = 0;
  if (!absl::SimpleAtoi(environment("SLURM_JOB_ID"), &job) || job < 0) {
    return Bad(absl::StrCat("SLURM_JOB_ID is \"", environment("SLURM_JOB_ID"),
                            "\", but must be a number: set SLUICE_WORLD"));
  }
  static_cast<void>(absl::SimpleAtoi(environment("SLURM_STEP_ID"), &step));
  // Task 0 runs on the first node of the step. The node that called srun may be another one.
  std::string host;
  for (const char* list : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    if (host.empty()) host = FirstOfNodeList(environment(list));
  }
  if (host.empty()) host = environment("SLURM_LAUNCH_NODE_IPADDR");
  if (host.empty()) return Bad("SLURM_STEP_NODELIST is not set: set SLUICE_WORLD");
  const int64_t port = kFirstPort + (job % kPorts * 7 + step % kPorts) % kPorts;
  return StoreAddress{host, static_cast<int>(port)}.Text();
}

absl::StatusOr<std::string> MasterAddress(EnvironmentFunction environment) {
  const std::string host = environment("MASTER_ADDR");
  if (host.empty()) return Bad("MASTER_PORT is set, and MASTER_ADDR is not");
  SLUICE_ASSIGN_OR_RETURN(const int port, Number(environment, "MASTER_PORT", 1, 65534));
  return StoreAddress{std::string(WithoutBrackets(host)), port + 1}.Text();
}

// Finds the store's address and the member that serves the store.
absl::Status FindStore(EnvironmentFunction environment, WorldOptions* options) {
  options->store = environment("SLUICE_WORLD");
  const bool is_explicit = !options->store.empty();
  if (!is_explicit && options->roles.size() > 1) {
    return Bad(
        "there are several roles, and nothing says where they meet: set the store's address, or "
        "SLUICE_WORLD");
  }
  if (!is_explicit) {
    absl::StatusOr<std::string> address = Bad(
        "SLUICE_WORLD is not set, and neither are MASTER_ADDR and MASTER_PORT: nothing says where "
        "members meet");
    if (!environment("MASTER_ADDR").empty() || !environment("MASTER_PORT").empty()) {
      address = MasterAddress(environment);
    } else if (IsSlurmTask(environment)) {
      address = SlurmAddress(environment);
    }
    if (!address.ok()) return address.status();
    options->store = *std::move(address);
    options->serve = options->rank == 0;
  }
  const std::string serve = environment("SLUICE_SERVE");
  if (serve.empty()) return absl::OkStatus();
  if (serve != "0" && serve != "1") {
    return Bad(absl::StrCat("SLUICE_SERVE is \"", serve, "\", but must be 0 or 1"));
  }
  options->serve = serve == "1";
  return absl::OkStatus();
}

absl::Status FindRoles(EnvironmentFunction environment, WorldOptions* options) {
  if (const std::string roles = environment("SLUICE_ROLES"); !roles.empty()) {
    SLUICE_ASSIGN_OR_RETURN(options->roles, Annotate(ParseRoles(roles), "SLUICE_ROLES"));
  }
  const std::string role = environment("SLUICE_ROLE");
  if (!role.empty()) {
    options->role = role;
    return Annotate(CheckWorldName("the role", role), "SLUICE_ROLE");
  }
  if (options->roles.empty()) return absl::OkStatus();
  if (options->roles.size() > 1) {
    return Bad(
        "there are several roles, and nothing says which is this one: set the role, or "
        "SLUICE_ROLE");
  }
  options->role = options->roles[0].role;
  return absl::OkStatus();
}

absl::Status FindRest(EnvironmentFunction environment, WorldOptions* options) {
  options->token = environment("SLUICE_TOKEN");
  options->token_file = environment("SLUICE_TOKEN_FILE");
  if (!options->token.empty() && !options->token_file.empty()) {
    return Bad("SLUICE_TOKEN and SLUICE_TOKEN_FILE are both set; one of them is enough");
  }
  options->bind = environment("SLUICE_BIND");
  if (const std::string name = environment("SLUICE_WORLD_NAME"); !name.empty()) {
    options->name = name;
    SLUICE_RETURN_IF_ERROR(Annotate(CheckWorldName("the world", name), "SLUICE_WORLD_NAME"));
  }
  if (const std::string wires = environment("SLUICE_WIRES"); !wires.empty()) {
    options->wires = wires;
    if (wires != "auto" && wires != "ucx" && wires != "tcp") {
      return Bad(absl::StrCat("SLUICE_WIRES is \"", wires, "\", but must be auto, ucx or tcp"));
    }
  }
  const std::string timeout = environment("SLUICE_WORLD_TIMEOUT");
  if (timeout.empty()) return absl::OkStatus();
  if (!absl::ParseDuration(timeout, &options->timeout) ||
      options->timeout <= absl::ZeroDuration()) {
    return Bad(absl::StrCat("SLUICE_WORLD_TIMEOUT is \"", timeout,
                            "\", but must be a duration, as \"90s\" or \"inf\""));
  }
  // A limit for the wait for others bounds the wait for the store, too.
  options->store_timeout = std::min(options->store_timeout, options->timeout);
  return absl::OkStatus();
}

}  // namespace

std::string FirstOfNodeList(absl::string_view list) {
  std::string host;
  for (size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const absl::string_view inside = list.substr(i + 1, list.find(']', i) - i - 1);
    absl::StrAppend(&host, inside.substr(0, inside.find_first_of("-,")));
    i += inside.size() + 1;
  }
  return host;
}

absl::StatusOr<WorldOptions> WorldOptionsFrom(EnvironmentFunction environment) {
  WorldOptions options;
  SLUICE_ASSIGN_OR_RETURN(const Identity identity, Identify(environment));
  options.rank = identity.rank;
  options.size = identity.size;
  for (const auto find : {FindRoles, FindStore, FindRest}) {
    SLUICE_RETURN_IF_ERROR(find(environment, &options));
  }
  for (const RoleSize& each : options.roles) {
    if (options.size == 0 && each.role == options.role) options.size = each.size;
  }
  if (options.size == 0) {
    return Bad(
        absl::StrCat("SLUICE_RANK is any, and neither SLUICE_SIZE nor SLUICE_ROLES says how "
                     "many members role \"",
                     options.role, "\" has"));
  }
  SLUICE_RETURN_IF_ERROR(Annotate(CheckWorldOptions(options), "SLUICE_ROLES"));
  return options;
}

bool HasWorld(EnvironmentFunction environment) {
  const bool has_store = !environment("SLUICE_WORLD").empty() ||
                         !environment("MASTER_ADDR").empty() || IsSlurmTask(environment);
  bool has_rank = Says(environment, kOwn) || IsSlurmTask(environment);
  for (const Launcher& launcher : kLaunchers) has_rank = has_rank || Says(environment, launcher);
  return has_store && has_rank;
}

absl::StatusOr<WorldOptions> WorldOptionsFromEnvironment(
    const std::map<std::string, std::string>& set) {
  return WorldOptionsFrom([&set](const char* name) {
    const auto found = set.find(name);
    return found != set.end() ? found->second : EnvironmentVariable(name);
  });
}

bool EnvironmentHasWorld() { return HasWorld(EnvironmentVariable); }

}  // namespace sluice
