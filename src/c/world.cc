// Worlds: joining, members, epochs.
#include "sluice/world.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "c/call.h"
#include "c/handles.h"
#include "c/store_handle.h"
#include "c/structs.h"
#include "sluice/session.h"
#include "tensor/error_text.h"

namespace sluice::c {
namespace {

absl::StatusOr<std::vector<RoleSize>> ToRoles(absl::string_view name, const sluice_role* roles,
                                              int64_t count) {
  SLUICE_ASSIGN_OR_RETURN(const absl::Span<const sluice_role> given, ReadFixed(name, roles, count));
  std::vector<RoleSize> result;
  for (const sluice_role& each : given) {
    if (each.role == nullptr) return IsNull(absl::StrCat(name, "[", result.size(), "].role"));
    result.push_back({each.role, each.count});
  }
  return result;
}

void SetText(const char* given, std::string* text) {
  if (given != nullptr) *text = given;
}

// Settings of `read` that decide what else the environment has to say, as its variables.
std::map<std::string, std::string> VariablesOf(const sluice_world_options& read,
                                               const std::vector<RoleSize>& roles) {
  std::map<std::string, std::string> set;
  if (read.store != nullptr) set["SLUICE_WORLD"] = read.store;
  if (read.own_store != nullptr) set["SLUICE_WORLD"] = "tcp://own-store:1";  // not used
  if (read.role != nullptr) set["SLUICE_ROLE"] = read.role;
  if (!roles.empty()) {
    set["SLUICE_ROLES"] = absl::StrJoin(roles, ",", [](std::string* text, const RoleSize& one) {
      absl::StrAppend(text, one.role);
      if (one.size != 0) absl::StrAppend(text, ":", one.size);
    });
  }
  if (read.count != 0) {
    set["SLUICE_RANK"] = read.rank == kAnyRank ? "any" : absl::StrCat(read.rank);
    set["SLUICE_SIZE"] = absl::StrCat(read.count);
  }
  if (read.token != nullptr || read.token_file != nullptr) {
    set["SLUICE_TOKEN"] = set["SLUICE_TOKEN_FILE"] = "";
  }
  return set;
}

absl::StatusOr<WorldOptions> ToWorldOptions(const sluice_world_options* given) {
  if (given == nullptr) return WorldOptionsFromEnvironment();
  sluice_world_options read;
  SLUICE_RETURN_IF_ERROR(ReadStruct("sluice_world_options", given, &read));
  WorldOptions options;
  SLUICE_ASSIGN_OR_RETURN(std::vector<RoleSize> roles,
                          ToRoles("roles", read.roles, read.num_roles));
  if (read.from_environment != 0) {
    SLUICE_ASSIGN_OR_RETURN(options, WorldOptionsFromEnvironment(VariablesOf(read, roles)));
  }
  if (read.store != nullptr && read.own_store != nullptr) {
    return absl::InvalidArgumentError("both `store` and `own_store` are set");
  }
  SetText(read.store, &options.store);
  if (read.own_store != nullptr) {
    options.own_store = read.own_store->store;
    options.store.clear();
  }
  SetText(read.token, &options.token);
  if (read.token != nullptr) options.token_file.clear();
  SetText(read.token_file, &options.token_file);
  SetText(read.name, &options.name);
  SetText(read.role, &options.role);
  SetText(read.wires, &options.wires);
  SetText(read.bind, &options.bind);
  if (!roles.empty()) options.roles = std::move(roles);
  if (read.count != 0 || read.from_environment == 0) {
    options.rank = read.rank;
    options.size = read.count;
  }
  if (read.serve != 0) options.serve = read.serve > 0;
  SLUICE_RETURN_IF_ERROR(ReadTime("timeout_s", read.timeout_s, &options.timeout));
  SLUICE_RETURN_IF_ERROR(ReadTime("store_timeout_s", read.store_timeout_s, &options.store_timeout));
  SLUICE_RETURN_IF_ERROR(ReadTime("lease_s", read.lease_s, &options.lease));
  return options;
}

// A call of a world, which takes one at a time.
class WorldCall {
 public:
  explicit WorldCall(sluice_world* world)
      : world_(world), is_in_(world != nullptr && !world->in_call.exchange(true)) {}
  ~WorldCall() {
    if (is_in_) world_->in_call.store(false);
  }
  WorldCall(const WorldCall&) = delete;
  WorldCall& operator=(const WorldCall&) = delete;

  // InvalidArgument: of no world. FailedPrecondition: another thread is in one.
  absl::Status Check() const {
    if (world_ == nullptr) return IsNull("world");
    return is_in_ ? absl::OkStatus()
                  : absl::FailedPreconditionError("another thread is in a call of the world");
  }

 private:
  sluice_world* const world_;
  const bool is_in_;
};

absl::StatusOr<std::vector<WorldMember>> ListMembers(World* world, int32_t which) {
  switch (which) {
    case SLUICE_MEMBERS_NOW:
      return world->members();
    case SLUICE_MEMBERS_EPOCH:
      return world->epoch_members();
    case SLUICE_MEMBERS_JOINERS:
      return world->Joiners();
    default:
      return absl::InvalidArgumentError(absl::StrCat("`which` is ", which, ", not 0 .. 2"));
  }
}

absl::StatusOr<EpochOptions> ToEpochOptions(const sluice_epoch_options* given) {
  sluice_epoch_options read;
  SLUICE_RETURN_IF_ERROR(ReadOptions("sluice_epoch_options", given, &read));
  EpochOptions options;
  SLUICE_ASSIGN_OR_RETURN(options.at_least, ToRoles("at_least", read.at_least, read.num_at_least));
  if (read.timeout_s != 0) {
    options.timeout = absl::InfiniteDuration();
    SLUICE_RETURN_IF_ERROR(ReadTime("timeout_s", read.timeout_s, &*options.timeout));
  }
  return options;
}

// A session of a fabric that has been made, or not.
absl::Status SessionOver(absl::StatusOr<std::unique_ptr<Fabric>> fabric, const OwnOptions& own,
                         std::unique_ptr<World> world, sluice_session** session) {
  if (!fabric.ok()) return own.status.ok() ? fabric.status() : own.status;
  return GiveSession(Session::Create(*std::move(fabric), own.options), own, std::move(world),
                     session);
}

absl::Status CreateInGroup(const sluice_store& store, const char* group, int32_t rank,
                           int32_t count, const sluice_session_options* given,
                           sluice_session** session) {
  const OwnOptions own(given);
  WorldOptions options;
  options.own_store = store.store;
  options.name = group;
  options.rank = rank;
  options.size = count;
  options.timeout = own.options.patience;
  absl::StatusOr<std::unique_ptr<World>> world = World::Join(options);
  if (!world.ok()) return own.status.ok() ? world.status() : own.status;
  absl::StatusOr<std::unique_ptr<Fabric>> fabric = (*world)->MakeFabric();
  return SessionOver(std::move(fabric), own, *std::move(world), session);
}

}  // namespace
}  // namespace sluice::c

using sluice::c::Guard;
using sluice::c::IsNull;

int32_t sluice_environment_has_world(void) {
  try {
    return sluice::EnvironmentHasWorld() ? 1 : 0;
  } catch (...) {
    return 0;
  }
}

sluice_status sluice_world_join(const sluice_world_options* options, sluice_world** world) {
  return Guard("sluice_world_join", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("world", world));
    SLUICE_ASSIGN_OR_RETURN(const sluice::WorldOptions own, sluice::c::ToWorldOptions(options));
    SLUICE_ASSIGN_OR_RETURN(auto joined, sluice::World::Join(own));
    auto handle = std::make_unique<sluice_world>();
    handle->store_address = joined->store_address();
    handle->world = std::move(joined);
    *world = handle.release();
    return absl::OkStatus();
  });
}

void sluice_world_destroy(sluice_world* world) { delete world; }

sluice_status sluice_world_wait(sluice_world* world, double timeout_s) {
  return Guard("sluice_world_wait", [&]() -> absl::Status {
    const sluice::c::WorldCall call(world);
    SLUICE_RETURN_IF_ERROR(call.Check());
    const auto timeout = sluice::c::ArgumentTime(timeout_s);
    return timeout.ok() ? world->world->WaitForAll(*timeout) : timeout.status();
  });
}

sluice_status sluice_world_missing(sluice_world* world, const char** text) {
  return Guard("sluice_world_missing", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("text", text));
    const sluice::c::WorldCall call(world);
    SLUICE_RETURN_IF_ERROR(call.Check());
    SLUICE_ASSIGN_OR_RETURN(const std::vector<std::string> missing, world->world->missing());
    world->missing = absl::StrJoin(missing, ", ");
    *text = world->missing.c_str();
    return absl::OkStatus();
  });
}

sluice_status sluice_world_members(sluice_world* world, int32_t which, int64_t* count) {
  return Guard("sluice_world_members", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("count", count));
    const sluice::c::WorldCall call(world);
    SLUICE_RETURN_IF_ERROR(call.Check());
    SLUICE_ASSIGN_OR_RETURN(world->members, sluice::c::ListMembers(world->world.get(), which));
    *count = static_cast<int64_t>(world->members.size());
    return absl::OkStatus();
  });
}

sluice_status sluice_world_member(sluice_world* world, int64_t i, sluice_member* member) {
  return Guard("sluice_world_member", [&]() -> absl::Status {
    const sluice::c::WorldCall call(world);
    SLUICE_RETURN_IF_ERROR(call.Check());
    const auto count = static_cast<int64_t>(world->members.size());
    if (i < 0 || i >= count) {
      return absl::OutOfRangeError(absl::StrCat("member ", i, " of ", count));
    }
    const sluice::WorldMember& of = world->members[static_cast<size_t>(i)];
    sluice_member value = SLUICE_MEMBER_INIT;
    value.role = of.role.c_str();
    value.host = of.host.c_str();
    value.rank = of.rank;
    value.pid = of.pid;
    value.alive = of.alive ? 1 : 0;
    return sluice::c::WriteStruct("sluice_member", value, member);
  });
}

int32_t sluice_world_rank(sluice_world* world, const char* role, int32_t rank) {
  int32_t found = -1;
  Guard("sluice_world_rank", [&]() -> absl::Status {
    const sluice::c::WorldCall call(world);
    SLUICE_RETURN_IF_ERROR(call.Check());
    if (role == nullptr) return IsNull("role");
    found = world->world->FabricRank(role, rank);
    return absl::OkStatus();
  });
  return found;
}

const char* sluice_world_store_address(const sluice_world* world) {
  return world == nullptr ? "" : world->store_address.c_str();
}

int64_t sluice_world_epoch(const sluice_world* world) {
  return world == nullptr ? 0 : world->world->epoch();
}

sluice_status sluice_world_end_epoch(sluice_world* world, int64_t after_version) {
  return Guard("sluice_world_end_epoch", [&]() -> absl::Status {
    const sluice::c::WorldCall call(world);
    SLUICE_RETURN_IF_ERROR(call.Check());
    return world->world->EndEpoch(after_version);
  });
}

sluice_status sluice_world_epoch_ends(sluice_world* world, int64_t* after_version) {
  return Guard("sluice_world_epoch_ends", [&]() -> absl::StatusOr<sluice_status> {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("after_version", after_version));
    const sluice::c::WorldCall call(world);
    SLUICE_RETURN_IF_ERROR(call.Check());
    SLUICE_ASSIGN_OR_RETURN(const absl::optional<int64_t> ends, world->world->EpochEndsAfter());
    if (!ends.has_value()) return SLUICE_PENDING;
    *after_version = *ends;
    return SLUICE_OK;
  });
}

sluice_status sluice_session_create(sluice_store* store, const char* group, int32_t rank,
                                    int32_t count, const sluice_session_options* options,
                                    sluice_session** session) {
  return Guard("sluice_session_create", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("session", session));
    if (store == nullptr) return IsNull("store");
    if (group == nullptr) return IsNull("group");
    return sluice::c::CreateInGroup(*store, group, rank, count, options, session);
  });
}

sluice_status sluice_world_session(sluice_world* world, const sluice_session_options* options,
                                   sluice_session** session) {
  return Guard("sluice_world_session", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("session", session));
    const sluice::c::WorldCall call(world);
    SLUICE_RETURN_IF_ERROR(call.Check());
    const sluice::c::OwnOptions own(options);
    return sluice::c::SessionOver(world->world->MakeFabric(), own, nullptr, session);
  });
}

sluice_status sluice_world_next_session(sluice_world* world, const sluice_session_options* options,
                                        const sluice_epoch_options* epoch,
                                        sluice_session** session) {
  return Guard("sluice_world_next_session", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("session", session));
    const sluice::c::WorldCall call(world);
    SLUICE_RETURN_IF_ERROR(call.Check());
    const sluice::c::OwnOptions own(options);
    SLUICE_ASSIGN_OR_RETURN(const sluice::EpochOptions of_epoch, sluice::c::ToEpochOptions(epoch));
    return sluice::c::GiveSession(sluice::NextSession(world->world.get(), own.options, of_epoch),
                                  own, nullptr, session);
  });
}
