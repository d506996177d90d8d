// Answers a server's requests: some at once, others once they need not wait. No I/O and no clock.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_DESK_H_
#define SLUICE_SRC_WORLD_STORE_STORE_DESK_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "sluice/store.h"
#include "world/store/store_table.h"
#include "world/store/store_wire.h"

namespace sluice {

// Clients are numbers. Thread: one at a time.
class StoreDesk {
 public:
  explicit StoreDesk(const StoreLimits& limits);

  // The reply, or nothing if it comes later.
  std::optional<StoreReply> Take(uint64_t client, const StoreRequest& request, int64_t now_ns);

  // Answers what waited and is due, for clients that can take a reply. Others stay due.
  void AnswerDue(int64_t now_ns, const std::function<bool(uint64_t client)>& can_take,
                 const std::function<void(uint64_t client, const StoreReply& reply)>& answer);
  // When AnswerDue is to be called at the latest, if nothing happens before.
  int64_t next_ns() const { return some_due_ ? 0 : next_ns_; }

  // The client has gone: removes the keys that it holds, and its waits.
  void Forget(uint64_t client);

  // The shortest lease of the keys that a client holds; 0: it holds none.
  int64_t ShortestLeaseMs(uint64_t client) const;

 private:
  struct Held {
    std::string key;
    int64_t lease_ms = 0;
  };
  struct Client {
    std::map<uint64_t, Held> holds;
    int waits = 0;
  };
  struct Wait {
    uint64_t client = 0;
    uint32_t id = 0;
    StoreCall call = StoreCall::kGet;
    std::string key;  // or the prefix
    uint64_t version = 0;
    int64_t end_ns = 0;
    bool due = false;
  };

  void Change(uint64_t client, const StoreRequest& request, StoreReply* reply);
  void Hold(uint64_t client, const StoreRequest& request, StoreReply* reply);
  // False: it has too many.
  bool AddWait(uint64_t client, const StoreRequest& request, int64_t end_ns);
  // Nothing: the key has been removed again.
  std::optional<StoreReply> AnswerWait(const Wait& wait, int64_t now_ns) const;
  void NoteChange(absl::string_view key);

  StoreTable table_;
  std::map<uint64_t, Client> clients_;  // those that hold or wait
  std::list<Wait> waits_;
  bool some_due_ = false;   // since AnswerDue was called
  bool some_left_ = false;  // by AnswerDue, for clients that could not take a reply
  int64_t next_ns_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_DESK_H_
