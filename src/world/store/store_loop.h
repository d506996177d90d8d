// The thread of a server: accepts, reads, answers, and parts from who is silent or talks nonsense.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_LOOP_H_
#define SLUICE_SRC_WORLD_STORE_STORE_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "net/fd.h"
#include "sluice/store.h"
#include "world/store/store_desk.h"
#include "world/store/store_greeting.h"
#include "world/store/store_outbox.h"
#include "world/store/store_wire.h"

namespace sluice {

// One connection, as the server sees it.
struct StoreClient {
  enum class Stage : uint8_t {
    kGreeting,
    kMember,   // has proved itself
    kLeaving,  // has been told why, and is not listened to any more
  };

  StoreClient(Fd connected, const StoreSide* side, absl::string_view instance)
      : socket(std::move(connected)), greeting(side, instance) {}

  // With more than this unsent, a client is not listened to.
  static constexpr size_t kRoomBytes = size_t{256} << 10;
  // So much is read at once of one that has not proved itself: a greeting is less.
  static constexpr size_t kStrangerBytes = 2 * kMaxGreetingBytes;

  size_t unsent() const { return outbox.unsent().size(); }

  Fd socket;
  ServerGreeting greeting;
  Stage stage = Stage::kGreeting;
  StoreInbox inbox{kMaxGreetingBytes};
  StoreOutbox outbox;
  int64_t end_ns = 0;    // of greeting, or of leaving
  int64_t heard_ns = 0;  // its last whole frame
  int64_t wrote_ns = 0;  // when it took bytes last, or had none to take
  uint32_t watched = 0;  // by epoll
  bool shut = false;     // nothing more is sent
};

class StoreLoop {
 public:
  static absl::StatusOr<std::unique_ptr<StoreLoop>> Make(Fd listener, const std::string& token,
                                                         const StoreLimits& limits);

  // Until Stop, which any thread may call.
  void Run();
  void Stop();

 private:
  using Clients = std::map<uint64_t, StoreClient>;

  StoreLoop(Fd listener, const std::string& token, const StoreLimits& limits, std::string instance);

  void Accept();
  void Attend(uint64_t id, uint32_t events);
  void Read(uint64_t id, StoreClient* client);
  // Takes the frames that have come, as long as there is room for the replies. False: it left.
  bool TakeFrames(uint64_t id, StoreClient* client);
  absl::Status TakeFrame(uint64_t id, StoreClient* client, absl::string_view frame);
  // Whether a client may be listened to, as far as its answers and those of all have room.
  bool HasRoom(const StoreClient& client) const;
  void Queue(StoreClient* client, absl::string_view frames);
  // Sends what it can. False: the connection has ended, and the client is no more.
  bool Flush(uint64_t id, StoreClient* client);
  void WatchFor(uint64_t id, StoreClient* client);
  // Tells it why in place of answers, and hears nothing of it any more. Its keys go.
  void PartFrom(uint64_t id, StoreClient* client, const absl::Status& why);
  void Remove(uint64_t id);
  // The one that has waited longest without proving itself. False: there is none.
  bool RemoveUnproven();
  void AnswerDue();
  // Parts from those whose time was over when the sockets were looked at.
  void Expire(int64_t looked_ns);
  int64_t EndOf(uint64_t id, const StoreClient& client) const;
  void ExpectAt(int64_t time_ns);

  const StoreLimits limits_;
  const StoreSide side_;
  const std::string instance_;
  Fd listener_;
  Fd wake_;
  Fd epoll_;
  StoreDesk desk_;
  Clients clients_;
  uint64_t last_id_ = 0;
  int members_ = 0;
  size_t queued_ = 0;        // bytes unsent, of all clients
  int64_t expire_ns_;        // no client's time is over before
  int64_t accept_again_ns_;  // when the listener is watched again
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_LOOP_H_
