// Reaching or serving the store, coming to it, and leaving nothing there.
#include "world/seat.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "net/socket.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"
#include "transport/say_once.h"
#include "world/look.h"
#include "world/member.h"
#include "world/store/store_address.h"
#include "world/store/store_check.h"
#include "world/store/store_greeting.h"
#include "world/store/token_store.h"
#include "world/world_options.h"

namespace sluice {
namespace {

constexpr size_t kSecretBytes = 32;

// A value below this key: all members of the world have come once.
std::string MetKey(absl::string_view world) { return absl::StrCat(world, "/met"); }

// Whether the name is one of this host's: of its loopback interface, or by what it resolves to.
bool IsLoopbackHost(absl::string_view host) {
  return host == "localhost" || host == "::1" || absl::StartsWith(host, "127.");
}

bool IsOwnHost(const std::string& host) {
  const absl::StatusOr<std::vector<SocketAddress>> addresses = ResolveStoreHost(host, 0);
  return addresses.ok() && std::any_of(addresses->begin(), addresses->end(), CanBind);
}

// How long one attempt may take, and later each call, whatever is left of the time for joining. The
// first attempts are shorter, because lines for whoever waits come between them.
constexpr absl::Duration kAttempt = absl::Seconds(30);
constexpr absl::Duration kFirstAttempt = absl::Milliseconds(5500);
constexpr absl::Duration kTryAgain = absl::Milliseconds(50);

bool IsFirstMember(const WorldOptions& options) {
  return options.rank == 0 && DeclaredRoles(options)[0].role == options.role;
}

// The address of this host, whose store it is, that its name stands for; "": a loopback one, or not
// known. The member itself may reach its store by another address.
std::string OwnHostTowards(const StoreAddress& store) {
  const absl::StatusOr<std::vector<SocketAddress>> found = ResolveStoreHost(store.host, store.port);
  if (!found.ok()) return "";
  for (const SocketAddress& to : *found) {
    // Sends nothing: the system chooses a way.
    const Fd way(socket(to.get()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!way.is_open() || connect(way.get(), to.get(), to.length) != 0) continue;
    const SocketAddress own = AddressOfSocket(way.get());
    if (own.length != 0 && !own.IsLoopback()) return own.Host();
  }
  return "";
}

absl::StatusOr<std::unique_ptr<StoreServer>> Serve(const StoreAddress& at, const std::string& token,
                                                   const WorldOptions& options) {
  StoreServerOptions server;
  // The name of a host may stand for its loopback interface in its own tables, so others could not
  // reach what listens at the name. Nor does every host have the address by which it is reached.
  const bool is_fixed = IsLoopbackHost(at.host) || (IsIpAddress(at.host) && IsOwnHost(at.host));
  server.bind = is_fixed ? at.host : options.bind;
  server.port = at.port;
  server.token = token;
  int members = 0;
  for (const RoleSize& role : DeclaredRoles(options)) members += role.size;
  server.limits.connections = std::max(server.limits.connections, members + members / 8);
  return StoreServer::Listen(server);
}

// Waits where somebody listens already: a member of an earlier world may be about to end there.
absl::StatusOr<std::unique_ptr<StoreServer>> ServeInTime(const StoreAddress& at,
                                                         const std::string& token,
                                                         const WorldOptions& options,
                                                         const Deadline& limit) {
  LongWait long_wait;
  while (true) {
    absl::StatusOr<std::unique_ptr<StoreServer>> server = Serve(at, token, options);
    if (!absl::IsAlreadyExists(server.status())) return server;
    if (limit.Passed()) {
      return absl::UnavailableError(absl::StrCat(
          server.status().message(), ", for ", DurationText(limit.timeout()),
          ": end the process that listens there, or let this member not serve the store"));
    }
    long_wait.Look(
        [&] { return absl::StrCat("the port of the store: ", server.status().message()); });
    absl::SleepFor(std::min(limit.Left(), kTryAgain));
  }
}

absl::StatusOr<std::shared_ptr<Store>> Connect(const std::string& address, const std::string& token,
                                               const Deadline& limit) {
  StoreOptions options;
  options.token = token;
  options.timeout = kAttempt;
  LongWait long_wait;
  for (absl::Duration attempt = kFirstAttempt;; attempt = std::min(2 * attempt, kAttempt)) {
    options.connect_timeout = std::clamp(limit.Left(), absl::Milliseconds(10), attempt);
    const bool is_last = limit.Left() <= attempt;
    absl::StatusOr<std::unique_ptr<Store>> store = ConnectStore(address, options);
    if (store.ok()) return std::shared_ptr<Store>(*std::move(store));
    const bool may_come =
        absl::IsUnavailable(store.status()) || absl::IsDeadlineExceeded(store.status());
    if (!may_come) return store.status();
    if (is_last || limit.Passed()) {
      return MakeError(absl::StatusCode::kUnavailable, "there is no store at ", address, " within ",
                       DurationText(limit.timeout()), ": ", store.status());
    }
    long_wait.Look([&] { return absl::StrCat("the store: ", store.status().message()); });
    absl::SleepFor(kTryAgain);
  }
}

// As the options say. Waits for a store that does not listen yet, up to their limit.
absl::StatusOr<StoreDoor> OpenStoreDoor(const WorldOptions& options) {
  StoreDoor door;
  SLUICE_ASSIGN_OR_RETURN(door.token, TokenOf(options));
  if (options.own_store != nullptr) {
    if (options.store.empty() && !options.serve.value_or(false)) {
      door.store = options.own_store;
      const auto* const known = dynamic_cast<const TokenStore*>(door.store.get());
      if (door.token.empty() && known != nullptr) door.token = known->token();
      return door;
    }
    return absl::InvalidArgumentError(
        "there are a store of the caller's and an address of a store; one of them is enough");
  }
  const Deadline limit(options.store_timeout);
  SLUICE_ASSIGN_OR_RETURN(const StoreAddress at, ParseStoreAddress(options.store));
  const bool may_serve = options.serve.value_or(IsFirstMember(options) && IsOwnHost(at.host));
  if (may_serve) {
    absl::StatusOr<std::unique_ptr<StoreServer>> server =
        options.serve.has_value() ? ServeInTime(at, door.token, options, limit)
                                  : Serve(at, door.token, options);
    const bool may_be_elsewhere =
        !options.serve.has_value() &&
        (absl::IsUnavailable(server.status()) || absl::IsAlreadyExists(server.status()));
    if (server.ok()) {
      door.server = *std::move(server);
    } else if (!may_be_elsewhere) {
      return Annotate(server.status(), "cannot serve the store at ", options.store);
    }
  }
  door.address = options.store;
  // Not every network lets a host reach itself by the address that others use.
  const std::string reached = door.server != nullptr ? door.server->address() : options.store;
  SLUICE_ASSIGN_OR_RETURN(door.store, Connect(reached, door.token, limit));
  const auto* const connected = dynamic_cast<const TokenStore*>(door.store.get());
  door.own_host = door.server != nullptr ? OwnHostTowards(at) : connected->own_host();
  return door;
}

}  // namespace

void Tries::Keep(const Meeting& meeting) {
  const std::vector<std::string> own = meeting.OwnKeys();
  keys.insert(keys.end(), own.begin(), own.end());
}

void Tries::Clear(Store& store) {
  for (const std::string& key : keys) static_cast<void>(store.Set(key, ""));
  keys.clear();
}

bool IsStoreGone(Store& store) {
  const absl::Status status = store.Get("any", absl::ZeroDuration()).status();
  return !status.ok() && !absl::IsDeadlineExceeded(status);
}

Seat::Seat(const std::string& name, StoreDoor opened, std::string key,
           std::unique_ptr<Registration> registration, bool is_later, int64_t passed)
    : door(std::move(opened)),
      secret(std::move(key)),
      roster(door.store, name, std::move(registration), door.address),
      epochs(door.store, name, &roster, passed),
      follows(is_later),
      name_(name) {}

absl::StatusOr<std::unique_ptr<Seat>> Seat::Take(WorldOptions options, int64_t passed,
                                                 const FormerRanks& former) {
  const Deadline limit(options.store_timeout);
  while (true) {
    SLUICE_ASSIGN_OR_RETURN(StoreDoor door, OpenStoreDoor(options));
    const std::shared_ptr<Store> store = door.store;
    absl::StatusOr<std::unique_ptr<Seat>> seat = TakeAt(options, std::move(door), passed, former);
    const bool may_try = options.own_store == nullptr && !limit.Passed();
    if (seat.ok() || !may_try || !IsStoreGone(*store)) return seat;
    options.store_timeout = std::max(limit.Left(), absl::Milliseconds(1));
  }
}

absl::StatusOr<std::unique_ptr<Seat>> Seat::TakeAt(const WorldOptions& options, StoreDoor door,
                                                   int64_t passed, const FormerRanks& former) {
  // Before the others can see this member: they may all have come then.
  const absl::Status met = door.store->Get(MetKey(options.name), absl::ZeroDuration()).status();
  if (!met.ok() && !absl::IsDeadlineExceeded(met)) return met;
  // Likewise: an epoch that has this member in its list has a number that this one has not passed.
  if (passed > 0) RaiseBegun(*door.store, options.name, passed + 1);
  SLUICE_ASSIGN_OR_RETURN(StoredMember own, OwnMember(options));
  SLUICE_ASSIGN_OR_RETURN(
      std::unique_ptr<Registration> registration,
      Registration::Make(door.store, options.name, std::move(own), options.lease, former));
  SLUICE_ASSIGN_OR_RETURN(const std::string random, RandomHex(kSecretBytes));
  SLUICE_ASSIGN_OR_RETURN(
      const std::string secret,
      door.store->CompareSet(absl::StrCat(options.name, "/secret"), "", random));
  // The store tells the secret in the clear: alone it is not enough to be a rank.
  SLUICE_ASSIGN_OR_RETURN(const std::string key, MakeStoreProof(door.token, "links", secret));
  auto seat = std::make_unique<Seat>(options.name, std::move(door), key, std::move(registration),
                                     met.ok(), passed);
  // Roles or sizes in conflict: an error, which gives the place back.
  SLUICE_RETURN_IF_ERROR(seat->roster.Look(absl::ZeroDuration()));
  return seat;
}

absl::Status Seat::NoteMet() { return door.store->Set(MetKey(name_), "1"); }

void Seat::PostSaid(absl::string_view value) {
  auto* const store = dynamic_cast<TokenStore*>(door.store.get());
  if (store == nullptr) return;
  store->Post(SaysKey(name_, roster.own().role, roster.own().rank), value);
}

void Seat::Say(absl::string_view text) {
  constexpr double kMost = 8;
  const int64_t now_ns = MonotonicNs();
  may_say_ = std::min(kMost, may_say_ + static_cast<double>(now_ns - said_ns_) / 1e9);
  said_ns_ = now_ns;
  if (may_say_ < 1) return;
  may_say_ -= 1;
  PostSaid(absl::StrCat(roster.own().id, "\n", text));
}

void Seat::Clear() {
  if (said_ns_ != 0) PostSaid("");
  for (auto& [list, each] : tries) each.Clear(*door.store);
  epoch_tries.Clear(*door.store);
}

}  // namespace sluice
