// The store where members of a world meet: a small table of keys and values that all of them reach.
//
//   auto server = StoreServer::Listen({});                       // in one process, on any port
//   auto store = ConnectStore((*server)->address(), {});         // in each process
//   auto lease = (*store)->Hold("member/3", "10.0.0.7:4711");    // goes away with this process
//   auto members = (*store)->Watch("member/", 0, absl::Seconds(10));
//
// A store carries a few kilobytes for each member, and no payload. Users may bring their own: a
// store needs no more than the five calls of `Store`, and tests/world/store/store_contract.h checks
// them.
#ifndef SLUICE_STORE_H_
#define SLUICE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace sluice {

class StoreBeats;  // src/world/store/store_beats.h

// Keys have 1 .. kMaxStoreKeyBytes bytes and values up to kMaxStoreValueBytes, each of any content.
inline constexpr size_t kMaxStoreKeyBytes = 512;
inline constexpr size_t kMaxStoreValueBytes = size_t{64} << 10;
// Keys that begin like this belong to leases that are kept by heartbeats.
inline constexpr absl::string_view kStoreBeatPrefix = "sluice.beat/";
inline constexpr absl::Duration kDefaultStoreLease = absl::Seconds(5);

using StoreEntries = std::vector<std::pair<std::string, std::string>>;  // key, value

// The entries below a prefix at one time.
struct StoreView {
  uint64_t version = 0;  // for the next Watch of the same prefix through the same Store
  StoreEntries entries;  // sorted by key
};

// A key that is held. Thread: any. Ends before its store does.
class StoreLease {
 public:
  StoreLease() = default;
  StoreLease(const StoreLease&) = delete;
  StoreLease& operator=(const StoreLease&) = delete;
  // Removes the key, without an answer to wait for where the store is reached over TCP. Leaves the
  // key alone in a forked child.
  virtual ~StoreLease() = default;

  // Whether the key is held still. Unavailable: the store cannot be reached. Aborted: others were
  // told that this holder is gone. Once not OK, it stays so: hold again. Does not wait.
  virtual absl::Status status() const = 0;

  // Removes the key now, and says whether that worked. OK too if the key is gone already.
  virtual absl::Status Release() = 0;
};

// Contract, checked by tests/world/store/store_contract.h:
// * All calls see one table. Each call happens at one moment between its start and its end.
// * Bad keys and values are InvalidArgument. A table that is full is ResourceExhausted, and stays
//   as it was. A store that cannot be reached is Unavailable. The call may then have been carried
//   out, or not.
// * No call waits longer than what it is given, and than a limit of the store's own. No call works
//   in a forked child: FailedPrecondition.
// Thread: any, several at once. No call waits for the end of another.
class Store {
 public:
  Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store();

  // An empty value removes the key.
  virtual absl::Status Set(absl::string_view key, absl::string_view value) = 0;

  // Waits until the key has a value. DeadlineExceeded after `timeout`; 0: does not wait.
  virtual absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) = 0;

  // Adds to the decimal number that the value is; a key without a value counts as 0. Returns the
  // sum. InvalidArgument: the value is no such number. OutOfRange: the sum does not fit.
  virtual absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta) = 0;

  // Sets the key to `desired` if its value is `expected`; an empty text stands for no value, in
  // both. Returns the value afterwards. It is `desired` if the key was set.
  virtual absl::StatusOr<std::string> CompareSet(absl::string_view key, absl::string_view expected,
                                                 absl::string_view desired) = 0;

  // Lists the entries below a prefix, sorted by key. ResourceExhausted: more than 16 MiB.
  virtual absl::StatusOr<StoreEntries> List(absl::string_view prefix) = 0;

  // Sets a key that goes away when this process does, or falls silent for longer than `lease`
  // (100 ms to 1 h). AlreadyExists: the key has a value, and its holder lives. `value` is not
  // empty.
  //
  // Others that change the key leave it held. Others that remove the key end the hold.
  //
  // This one works by heartbeats through the five calls, from a thread of its own. Watchers see
  // them stop, and remove the key. Until one has looked on for the time of the lease, Get and List
  // still show the key of a dead holder. Another Hold of that key waits as long. The store of this
  // library does better: it removes the key itself, at once when the holder's process has ended.
  virtual absl::StatusOr<std::unique_ptr<StoreLease>> Hold(
      absl::string_view key, absl::string_view value, absl::Duration lease = kDefaultStoreLease);

  // Waits until something below the prefix is other than in the view with this version, but at most
  // `timeout`. Returns what is there then, the same or not. Version 0: does not wait. Keys whose
  // holder is gone are not among them. It may return early without news.
  //
  // This one asks again and again, ten times a second. The store of this library answers at once.
  virtual absl::StatusOr<StoreView> Watch(absl::string_view prefix, uint64_t version,
                                          absl::Duration timeout);

 private:
  const std::unique_ptr<StoreBeats> beats_;
};

// A store for the threads of this process, for tests and for jobs of one process.
std::unique_ptr<Store> MakeMemoryStore();

struct StoreOptions {
  // The secret of those who may use the store: long, and random. Required unless the store is on
  // this host's loopback interface, and of this process's user or root. It is never sent: both
  // sides prove that they know it. Later messages are not encrypted.
  std::string token;
  // The limit of connecting, and of the answer to each call.
  absl::Duration timeout = absl::Seconds(30);
  // The limit of the first connecting alone, in place of `timeout`.
  absl::optional<absl::Duration> connect_timeout = absl::nullopt;
};

// A connection to a StoreServer. `address` is tcp://HOST:PORT; an IPv6 address has brackets. Waits,
// within the time for connecting, for a store that does not listen yet. A thread of the store's own
// keeps the connection and its leases alive.
//
// InvalidArgument: no such address. PermissionDenied: another token, at either end, or none;
// without a token, another user. FailedPrecondition: no token for a store beyond the loopback
// interface, or for one whose owner the system does not tell. FailedPrecondition, too: a server of
// another version or byte order. Unavailable: nobody answers.
//
// A connection that breaks fails the calls under way with Unavailable, and ends all leases. Later
// calls connect anew. If another store answers than before, for example one that was restarted, all
// calls fail with FailedPrecondition from then on: the keys are lost.
absl::StatusOr<std::unique_ptr<Store>> ConnectStore(absl::string_view address,
                                                    const StoreOptions& options);

// How much a server takes. A client that passes a limit gets ResourceExhausted.
struct StoreLimits {
  int64_t keys = int64_t{1} << 16;
  int64_t bytes = int64_t{64} << 20;  // of all keys and values
  // At once. When there are more, the oldest of those that have not proved themselves goes.
  int connections = 1100;
  // How long a connection may take to say who it is, and how long one that holds no key may be
  // silent. One that holds keys may be silent for the shortest of their leases.
  absl::Duration hello = absl::Seconds(5);
  absl::Duration silence = absl::Seconds(30);
};

struct StoreServerOptions {
  std::string bind = "127.0.0.1";  // an address or name of this host; empty: all its interfaces
  int port = 0;                    // 0: any free one
  std::string token;               // required unless `bind` is a loopback address
  StoreLimits limits;
};

// The store itself, on a thread of its own. Nothing that clients send is evaluated. A client that
// sends what is no request gets an error and is parted from; others do not notice. Ends with its
// destructor; clients then get Unavailable. Thread: any. A forked child has no part in it.
class StoreServer {
 public:
  // InvalidArgument: an option. FailedPrecondition: no token for what others can reach.
  // AlreadyExists: something listens there. Unavailable: the address cannot be bound otherwise.
  static absl::StatusOr<std::unique_ptr<StoreServer>> Listen(const StoreServerOptions& options);

  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  int port() const;
  // tcp://HOST:PORT, with `bind` as it was given; for all interfaces 0.0.0.0, or [::] on a host
  // without IPv4.
  std::string address() const;

 private:
  class Impl;
  explicit StoreServer(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace sluice

#endif  // SLUICE_STORE_H_
