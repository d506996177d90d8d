// How a connection to a store begins: versions, byte orders, and proofs of the token. No I/O.
//
// The client says hello, the server answers, the client proves that it knows the token, and the
// server proves it in its welcome. Only then does the client send anything else. A stranger gets no
// proof to try tokens against, unless it is where clients look for their store.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_GREETING_H_
#define SLUICE_SRC_WORLD_STORE_STORE_GREETING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

inline constexpr uint8_t kStoreVersion = 1;
// A server's name for itself: another one after each start.
inline constexpr size_t kStoreInstanceBytes = 16;

// A side's words on itself. Values other than the real ones are for tests.
struct StoreSide {
  std::string token;  // empty: none
  uint8_t version = kStoreVersion;
  uint8_t byte_order = 0;  // 0: this host's; 1: the lowest byte first; 2: the highest
};

// HMAC-SHA256 of all that was said before, by who `who` names. So neither side can hand back the
// other's proof, nor use one of another connection. The token itself is never sent.
absl::StatusOr<std::string> MakeStoreProof(absl::string_view token, absl::string_view who,
                                           absl::string_view said);

// One connection, as the server sees it.
class ServerGreeting {
 public:
  // `side` stays as long as this does.
  ServerGreeting(const StoreSide* side, absl::string_view instance)
      : side_(side), instance_(instance) {}

  // Takes the client's next frame, and appends frames to send. True once the client may go on.
  // An error ends the connection: the client is to be told.
  absl::StatusOr<bool> Take(absl::string_view frame, std::string* out);

 private:
  absl::Status TakeHello(absl::string_view fields, std::string* out);
  absl::Status TakeProof(absl::string_view fields, std::string* out);

  const StoreSide* side_;
  std::string instance_;
  std::string said_;  // by both; empty: no hello yet
  bool welcome_ = false;
};

// The client's side of one.
class ClientGreeting {
 public:
  explicit ClientGreeting(const StoreSide* side) : side_(side) {}

  // The first frame. Unavailable: no random numbers.
  absl::StatusOr<std::string> Hello();
  // As ServerGreeting::Take.
  absl::StatusOr<bool> Take(absl::string_view frame, std::string* out);
  // The server's, once it has answered.
  const std::string& instance() const { return instance_; }

 private:
  absl::Status TakeAnswer(absl::string_view fields, std::string* out);
  absl::Status TakeWelcome(absl::string_view fields);

  const StoreSide* side_;
  std::string instance_;
  std::string said_;
  bool answered_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_GREETING_H_
