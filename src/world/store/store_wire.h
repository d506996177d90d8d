// How a store and those who use it talk: frames of a length, a kind, and fields. No I/O.
//
// All numbers are little-endian, whatever the host. A frame is the length of what follows (4
// bytes), a kind (1 byte), and the kind's fields.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_WIRE_H_
#define SLUICE_SRC_WORLD_STORE_STORE_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/store.h"
#include "world/store/store_table.h"

namespace sluice {

enum class StoreFrame : uint8_t {
  kHello = 1,    // a client's first, see store_greeting.h
  kAnswer = 2,   // the server's
  kProof = 3,    // the client's
  kWelcome = 4,  // the server's
  kError = 5,    // the last one: why the connection ends
  kRequest = 6,
  kReply = 7,
};

enum class StoreCall : uint8_t {
  kPing = 1,
  kSet = 2,
  kGet = 3,
  kAdd = 4,
  kCompareSet = 5,
  kList = 6,
  kHold = 7,
  kRelease = 8,
  kWatch = 9,
};

// The longest frames, without their length: a server takes only the first two.
inline constexpr size_t kMaxGreetingBytes = 256;
inline constexpr size_t kMaxRequestBytes = kMaxStoreKeyBytes + 2 * kMaxStoreValueBytes + 64;
inline constexpr size_t kMaxReplyBytes = kMaxStoreListBytes + 256;

// The texts lie in what was parsed, or at whoever encodes.
struct StoreRequest {
  uint32_t id = 0;  // comes back in the reply; nobody waits for that of 0
  StoreCall call = StoreCall::kPing;
  // Add has the delta here. Get and Watch have how long to wait, and Hold has the lease, in
  // milliseconds. Release has the hold.
  int64_t number = 0;
  uint64_t version = 0;  // of Watch
  absl::string_view key;
  absl::string_view value;  // of CompareSet: the desired one
  absl::string_view expected;
};

struct StoreReply {
  uint32_t id = 0;
  absl::Status status;
  int64_t number = 0;    // of Add: the sum; of Hold: its number
  uint64_t version = 0;  // of Watch
  std::string value;     // of Get and CompareSet
  StoreEntries entries;  // of List and Watch
};

// Whole frames, with their lengths. Texts of errors are shortened.
std::string EncodeFrame(StoreFrame kind, absl::string_view fields);
std::string EncodeRequest(const StoreRequest& request);
std::string EncodeReply(const StoreReply& reply);
std::string EncodeError(const absl::Status& status);

// The begin and end of the one of consecutive frames that has the byte `at`. At the end of all
// frames both are that end.
struct FrameSpan {
  size_t begin = 0;
  size_t end = 0;
};
FrameSpan FrameAt(absl::string_view frames, size_t at);

// Reads the bytes that follow the length. InvalidArgument: they are not such a frame, to the last
// byte.
absl::StatusOr<StoreRequest> ParseRequest(absl::string_view frame);
absl::StatusOr<StoreReply> ParseReply(absl::string_view frame);
// The error of a kError frame. Whatever the bytes are, the error's text can be printed.
absl::Status ParseError(absl::string_view frame);

// Takes a stream of bytes apart into frames.
class StoreInbox {
 public:
  explicit StoreInbox(size_t max_frame_bytes) : max_frame_bytes_(max_frame_bytes) {}

  void set_max_frame_bytes(size_t bytes) { max_frame_bytes_ = bytes; }
  void Append(absl::string_view bytes) { bytes_.append(bytes.data(), bytes.size()); }

  // The next whole frame, without its length, valid until the next call; empty if there is none
  // yet. InvalidArgument: a frame that may not be. It is found before the frame has come.
  absl::StatusOr<absl::string_view> Next();

 private:
  size_t max_frame_bytes_;
  std::string bytes_;
  size_t taken_ = 0;  // of bytes_
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_WIRE_H_
