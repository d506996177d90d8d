// Worlds, stores, and sessions of one process.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "session.h"
#include "sluice/fabric.h"
#include "sluice/session.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "values.h"
#include "world/look.h"
#include "world/store/store_check.h"

namespace sluice::python {
namespace {

using Roles = std::vector<std::pair<std::string, int>>;

// A membership. Calls of several threads come one after the other.
struct WorldState {
  WorldState(std::unique_ptr<World> joined, const WorldOptions& options)
      : world(std::move(joined)), role(options.role), size(options.size) {
    for (const RoleSize& one : options.roles) roles.push_back(one.role);
    if (roles.empty()) roles.push_back(role);
  }
  ~WorldState() {
    if (Ended() || !made_here.Holds()) static_cast<void>(world.release());
  }

  std::unique_ptr<World> world;
  const std::string role;
  const int size;
  std::vector<std::string> roles;
  const MadeHere made_here;
  bool taken = false;  // a thread is in a call; guarded by the GIL
  Desk desk;
};
using PyWorld = Ref<WorldState>;

// A Python object's own object. After the end of Python, and in forked children, it is left alone.
template <typename T>
struct Owned {
  explicit Owned(std::unique_ptr<T> made) : object(std::move(made)) {}
  ~Owned() {
    if (Ended() || !made_here.Holds()) static_cast<void>(object.release());
  }

  std::unique_ptr<T> object;
  const MadeHere made_here;
};
using PyServer = Ref<Owned<StoreServer>>;
using PyClient = Ref<Owned<Store>>;
using PyFabric = Ref<Owned<Fabric>>;

StoreServer& Opened(const PyServer& self) {
  self->made_here.Require("store");
  if (self->object == nullptr) Raise(absl::FailedPreconditionError("the store is closed"));
  return *self->object;
}

// One thread's turn with a world.
class Turn {
 public:
  explicit Turn(const PyWorld& world) : state_(world.state()) {
    state_->made_here.Require("world");
    while (state_->taken) {
      {
        const ReleasedGil released;
        absl::SleepFor(absl::Milliseconds(5));
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    if (state_->world == nullptr) Raise(absl::FailedPreconditionError("the world is closed"));
    state_->taken = true;
  }
  ~Turn() { state_->taken = false; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // work(World*), without the GIL.
  template <typename Work>
  auto Do(Work work) {
    return state_->desk.Call(
        [state = state_, work = std::move(work)]() mutable { return work(state->world.get()); });
  }

 private:
  const std::shared_ptr<WorldState> state_;
};

std::vector<RoleSize> RolesOf(nb::handle roles) {
  Roles read;
  if (!nb::try_cast(roles, read)) throw nb::type_error("roles are a list of (role, size)");
  std::vector<RoleSize> made;
  for (auto& [role, size] : read) made.push_back({std::move(role), size});
  return made;
}

void ReadWorldOptions(nb::dict given, WorldOptions* options) {
  OptionReader reader(given);
  reader.Read("store", &options->store);
  reader.Read("token", &options->token);
  reader.Read("token_file", &options->token_file);
  reader.Read("name", &options->name);
  reader.Read("role", &options->role);
  reader.Read("rank", &options->rank);
  reader.Read("size", &options->size);
  const nb::object roles = reader.Take("roles");
  if (roles.is_valid()) options->roles = RolesOf(roles);
  reader.Read("serve", &options->serve);
  reader.Read("timeout", &options->timeout);
  reader.Read("store_timeout", &options->store_timeout);
  reader.Read("lease", &options->lease);
  reader.Read("wires", &options->wires);
  reader.Read("bind", &options->bind);
  reader.Finish();
}

std::unique_ptr<PyWorld> JoinWith(const WorldOptions& options) {
  BeginUse();
  Desk desk;
  std::unique_ptr<World> world =
      ValueOrRaise(desk.Call([options] { return World::Join(options); }));
  return std::make_unique<PyWorld>(std::make_shared<WorldState>(std::move(world), options));
}

nb::dict MemberOf(const WorldMember& member) {
  nb::dict one;
  one["role"] = member.role;
  one["rank"] = member.rank;
  one["host"] = member.host;
  one["pid"] = member.pid;
  one["alive"] = member.alive;
  return one;
}

nb::list MembersOf(const std::vector<WorldMember>& members) {
  nb::list all;
  for (const WorldMember& member : members) all.append(MemberOf(member));
  return all;
}

std::unique_ptr<PySession> Own(std::unique_ptr<Session> session) {
  return std::make_unique<PySession>(SessionState::Make(std::move(session), ThreadNumber()));
}

std::unique_ptr<PySession> SessionOf(const PyWorld& self, bool epoch, nb::handle at_least,
                                     nb::handle timeout, nb::dict options) {
  const SessionOptions made = SessionOptionsOf(options);
  EpochOptions wanted;
  wanted.at_least = RolesOf(at_least);
  if (!timeout.is_none()) {
    wanted.timeout = DurationOf(timeout, "timeout", absl::InfiniteDuration());
  }
  Turn turn(self);
  return Own(ValueOrRaise(
      turn.Do([made, wanted, epoch](World* world) -> absl::StatusOr<std::unique_ptr<Session>> {
        if (epoch) return NextSession(world, made, wanted);
        absl::StatusOr<std::unique_ptr<Fabric>> fabric =
            world->MakeFabric({.timeout = wanted.timeout});
        if (!fabric.ok()) return fabric.status();
        return Session::Create(*std::move(fabric), made);
      })));
}

void CloseWorld(const PyWorld& self) {
  self->made_here.Require("world");
  if (self->world == nullptr) return;
  Turn turn(self);
  turn.Do([state = self.state()](World*) {
    state->world.reset();
    return true;
  });
}

void BindWorld(nb::module_& module) {
  nb::class_<PyWorld>(module, "World", "One process's membership in a world.")
      .def_static(
          "join",
          [](nb::kwargs given) {
            WorldOptions options;
            ReadWorldOptions(given, &options);
            return JoinWith(options);
          },
          "Joins a world: store, token, token_file, name, role, rank, size, roles, serve, timeout, "
          "store_timeout, lease, wires, bind.")
      .def_static(
          "from_environment",
          [](const std::map<std::string, std::string>& variables, nb::kwargs overrides) {
            WorldOptions options = ValueOrRaise(WorldOptionsFromEnvironment(variables));
            ReadWorldOptions(overrides, &options);
            if (!overrides.contains("store_timeout")) {
              options.store_timeout = std::min(options.store_timeout, options.timeout);
            }
            return JoinWith(options);
          },
          nb::arg("variables"), nb::arg("overrides"),
          "The same by the environment, in which `variables` count before the process's own. "
          "`overrides` are options of `join`, and count before all of them.")
      .def_prop_ro("role", [](const PyWorld& self) { return self->role; })
      .def_prop_ro("rank",
                   [](const PyWorld& self) {
                     Turn turn(self);
                     return self->world->rank();
                   })
      .def_prop_ro("size", [](const PyWorld& self) { return self->size; })
      .def_prop_ro("roles", [](const PyWorld& self) { return self->roles; })
      .def("members",
           [](const PyWorld& self) {
             Turn turn(self);
             return MembersOf(ValueOrRaise(turn.Do([](World* world) { return world->members(); })));
           })
      .def("missing",
           [](const PyWorld& self) {
             Turn turn(self);
             return ValueOrRaise(turn.Do([](World* world) { return world->missing(); }));
           })
      .def(
          "wait_for_all",
          [](const PyWorld& self, nb::handle timeout) {
            const absl::Duration limit = DurationOf(timeout, "timeout", absl::InfiniteDuration());
            Turn turn(self);
            RaiseIfError(turn.Do([limit](World* world) { return world->WaitForAll(limit); }));
          },
          nb::arg("timeout") = nb::none())
      .def("session", &SessionOf, nb::arg("epoch") = false, nb::arg("at_least") = nb::list(),
           nb::arg("timeout") = nb::none(), nb::arg("options") = nb::dict())
      .def(
          "end_epoch",
          [](const PyWorld& self, int64_t after_version) {
            Turn turn(self);
            RaiseIfError(
                turn.Do([after_version](World* world) { return world->EndEpoch(after_version); }));
          },
          nb::arg("after_version"))
      .def("epoch_ends_after",
           [](const PyWorld& self) -> nb::object {
             Turn turn(self);
             const absl::optional<int64_t> version =
                 ValueOrRaise(turn.Do([](World* world) { return world->EpochEndsAfter(); }));
             if (!version.has_value()) return nb::none();
             return nb::cast(*version);
           })
      .def(
          "say",
          [](const PyWorld& self, const std::string& text) {
            self->made_here.Require("world");
            // It does not wait: not for another thread's call, either.
            if (self->taken || self->world == nullptr) return;
            RaiseIfError(self->world->Say(text));
          },
          nb::arg("text"))
      .def("joiners",
           [](const PyWorld& self) {
             Turn turn(self);
             return MembersOf(ValueOrRaise(turn.Do([](World* world) { return world->Joiners(); })));
           })
      .def_prop_ro("epoch",
                   [](const PyWorld& self) {
                     Turn turn(self);
                     return self->world->epoch();
                   })
      .def("epoch_members",
           [](const PyWorld& self) {
             Turn turn(self);
             return MembersOf(self->world->epoch_members());
           })
      .def(
          "fabric_rank",
          [](const PyWorld& self, const std::string& role, int rank) {
            Turn turn(self);
            return turn.Do([role, rank](World* world) { return world->FabricRank(role, rank); });
          },
          nb::arg("role"), nb::arg("rank"))
      .def_prop_ro("store_address",
                   [](const PyWorld& self) {
                     Turn turn(self);
                     return self->world->store_address();
                   })
      .def_prop_ro("closed", [](const PyWorld& self) { return self->world == nullptr; })
      .def("close", &CloseWorld);

  module.def("environment_has_world", &EnvironmentHasWorld,
             "Whether the environment says enough for World.from_environment.");
}

// Addresses of this host, those of bridges of containers last; loopback only if there is no other.
std::vector<std::string> HostAddresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {"127.0.0.1"};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(all, &freeifaddrs);
  std::vector<std::pair<int, std::string>> ranked;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET6_ADDRSTRLEN] = {};
    int rank = 0;
    if (one->ifa_addr->sa_family == AF_INET) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
      inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) continue;
      inet_ntop(AF_INET6, &address->sin6_addr, text, sizeof(text));
      rank = 1;
    } else {
      continue;
    }
    const std::string name = one->ifa_name;
    for (const char* const bridge : {"docker", "br-", "virbr", "veth", "cni", "lxc"}) {
      if (name.rfind(bridge, 0) == 0) rank += 2;
    }
    ranked.emplace_back(rank, text);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> addresses;
  for (auto& [rank, text] : ranked) addresses.push_back(std::move(text));
  if (addresses.empty()) addresses.emplace_back("127.0.0.1");
  return addresses;
}

std::unique_ptr<PyClient> Reach(std::string address, StoreOptions options) {
  BeginUse();
  Desk desk;
  return std::make_unique<PyClient>(std::make_shared<Owned<Store>>(
      ValueOrRaise(desk.Call([address, options] { return ConnectStore(address, options); }))));
}

nb::dict LookOf(const PyClient& self, const std::string& world) {
  self->made_here.Require("store");
  Desk desk;
  const WorldLook look = ValueOrRaise(
      desk.Call([state = self.state(), world] { return LookAtWorld(*state->object, world); }));
  nb::list members;
  for (const MemberLook& one : look.members) {
    nb::dict member = MemberOf(one.member);
    member["in_epoch"] = one.in_epoch;
    member["waits_in"] = one.waits_in;
    // Members may say any bytes.
    member["says"] = nb::steal(
        PyUnicode_DecodeUTF8(one.says.data(), static_cast<Py_ssize_t>(one.says.size()), "replace"));
    members.append(member);
  }
  nb::dict made;
  made["epoch"] = look.epoch;
  made["members"] = members;
  made["missing"] = look.missing;
  return made;
}

void BindStores(nb::module_& module) {
  nb::class_<PyClient>(module, "StoreClient", "Looks at a store, and changes nothing there.")
      .def_static(
          "connect",
          [](std::string address, std::string token, const std::string& token_file,
             nb::handle timeout) {
            StoreOptions options;
            options.token = std::move(token);
            if (!token_file.empty()) options.token = ValueOrRaise(ReadTokenFile(token_file));
            options.timeout = DurationOf(timeout, "timeout", absl::Seconds(30));
            return Reach(std::move(address), options);
          },
          nb::arg("address"), nb::arg("token") = "", nb::arg("token_file") = "",
          nb::arg("timeout") = nb::none())
      .def("look", &LookOf, nb::arg("world"),
           "Who is in the world of this name, its epoch, and who is missing.");
  nb::class_<PyServer>(module, "StoreServer", "A store, on a thread of its own.")
      .def(
          "__init__",
          [](PyServer* self, std::string bind, int port, std::string token,
             const std::string& token_file) {
            BeginUse();
            StoreServerOptions options;
            options.bind = std::move(bind);
            options.port = port;
            options.token = std::move(token);
            if (!token_file.empty()) options.token = ValueOrRaise(ReadTokenFile(token_file));
            absl::StatusOr<std::unique_ptr<StoreServer>> server;
            {
              const ReleasedGil released;
              server = StoreServer::Listen(options);
            }
            new (self)
                PyServer(std::make_shared<Owned<StoreServer>>(ValueOrRaise(std::move(server))));
          },
          nb::arg("bind") = "127.0.0.1", nb::arg("port") = 0, nb::arg("token") = "",
          nb::arg("token_file") = "")
      .def_prop_ro("address", [](const PyServer& self) { return Opened(self).address(); })
      .def_prop_ro("port", [](const PyServer& self) { return Opened(self).port(); })
      .def("close", [](const PyServer& self) {
        self->made_here.Require("store");
        const std::unique_ptr<StoreServer> server = std::move(self->object);
        const ReleasedGil released;
        const_cast<std::unique_ptr<StoreServer>&>(server).reset();
      });
  module.def("host_addresses", &HostAddresses,
             "Addresses of this host that others may reach, the likeliest first.");
}

void BindLocal(nb::module_& module) {
  nb::class_<PyFabric>(module, "LocalFabric", "One rank of a job that is a single process.")
      .def(
          "session",
          [](const PyFabric& self, nb::dict options) {
            self->made_here.Require("fabric");
            const SessionOptions made = SessionOptionsOf(options);
            if (self->object == nullptr) {
              Raise(absl::FailedPreconditionError("the rank has a session already"));
            }
            auto fabric = std::make_shared<std::unique_ptr<Fabric>>(std::move(self->object));
            Desk desk;
            return Own(ValueOrRaise(
                desk.Call([fabric, made] { return Session::Create(std::move(*fabric), made); })));
          },
          nb::arg("options") = nb::dict(),
          "The rank's session, which belongs to the calling thread. Waits for the other ranks.");
  module.def(
      "local_fabrics",
      [](int ranks) {
        BeginUse();
        nb::list all;
        for (std::unique_ptr<Fabric>& fabric : ValueOrRaise(MakeLocalFabric(ranks))) {
          all.append(nb::cast(
              std::make_unique<PyFabric>(std::make_shared<Owned<Fabric>>(std::move(fabric)))));
        }
        return all;
      },
      nb::arg("ranks"), "A fabric for each rank of this process. Each is for a thread of its own.");
}

}  // namespace

void BindWorlds(nb::module_& module) {
  BindWorld(module);
  BindStores(module);
  BindLocal(module);
}

}  // namespace sluice::python
