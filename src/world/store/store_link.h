// A client's connection to a store, with the thread that keeps it alive: calls out, replies in.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_LINK_H_
#define SLUICE_SRC_WORLD_STORE_STORE_LINK_H_

#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "net/fd.h"
#include "world/store/store_address.h"
#include "world/store/store_connect.h"
#include "world/store/store_wire.h"

namespace sluice {

// How one connection fares. Thread: any.
class StoreFate {
 public:
  // OK while the connection stands; then why it ended.
  absl::Status Get() const;
  void End(const absl::Status& why);

 private:
  mutable std::mutex mutex_;
  absl::Status status_;
};

// Thread: any, several at once. In a forked child it can do nothing, and must be leaked.
class StoreLink {
 public:
  // A reply, and the connection it came over.
  struct Answer {
    StoreReply reply;
    std::shared_ptr<StoreFate> fate;
  };

  // `timeout` is that of each call.
  static absl::StatusOr<std::shared_ptr<StoreLink>> Open(const StoreAddress& address,
                                                         const std::string& token,
                                                         absl::Duration timeout,
                                                         absl::Duration connect_timeout);
  ~StoreLink();
  StoreLink(const StoreLink&) = delete;
  StoreLink& operator=(const StoreLink&) = delete;

  // Sends a request, whose id it gives, and waits for the reply. The server may take `wait` beside
  // the limit of a call. An error in the reply is an error here.
  absl::StatusOr<Answer> Call(StoreRequest request, absl::Duration wait = absl::ZeroDuration());
  // Sends a request over this connection, if it still stands. Does not wait.
  void Post(const StoreRequest& request, const std::shared_ptr<StoreFate>& fate);
  // The same over the present connection.
  void Post(const StoreRequest& request);

  // A key is going to be held so: from now on the server hears of this client often enough.
  void AddLease(int64_t lease_ms);
  void RemoveLease(int64_t lease_ms);

  // Ends the connection and the thread. Calls under way fail.
  void Close();

  // As TokenStore says.
  const std::string& own_host() const { return own_host_; }

  bool InChild() const { return getpid() != process_; }

 private:
  struct Pending {
    bool done = false;
    absl::Status status;
    Answer answer;
  };

  StoreLink(const StoreAddress& address, const std::string& token, absl::Duration timeout);

  // The thread's.
  void Run();
  void Reconnect();
  void Attend();
  absl::Status ReadReplies();
  absl::Status TakeFrame(absl::string_view frame);
  void SendRequests(int64_t now_ns);
  void Break(const absl::Status& why);
  // How long the server may be silent, and since when that counts. A link that begins to hold a key
  // of a short lease gives the server that lease's time to speak.
  struct Silence {
    int64_t limit_ns = 0;
    int64_t since_ns = 0;
  };
  Silence AllowedSilence() const;

  void Wake() const;
  bool Stopped();

  const pid_t process_ = getpid();
  const StoreAddress address_;
  const StoreSide side_;
  const absl::Duration timeout_;
  std::string own_host_;
  Fd wake_;  // readable when the thread has something to do
  Fd stop_;  // readable when the link is closed
  std::thread thread_;

  // The thread's.
  StoreConnection connection_;
  StoreInbox inbox_{kMaxReplyBytes};
  std::string unsent_;
  size_t sent_ = 0;  // of unsent_
  int64_t heard_ns_ = 0;
  int64_t pinged_ns_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  uint32_t last_id_ = 0;
  absl::flat_hash_map<uint32_t, std::shared_ptr<Pending>> calls_;
  std::string requests_;  // that the thread has not taken yet
  std::multiset<int64_t> leases_ms_;
  int64_t tightened_ns_ = 0;  // when the shortest lease became shorter
  std::shared_ptr<StoreFate> fate_;
  absl::Status lost_;  // once another store answers
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_LINK_H_
