// One connection to a server, as the server sees it.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_CLIENT_H_
#define SLUICE_SRC_WORLD_STORE_STORE_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "net/fd.h"
#include "world/store/store_greeting.h"
#include "world/store/store_outbox.h"
#include "world/store/store_wire.h"

namespace sluice {

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

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_CLIENT_H_
