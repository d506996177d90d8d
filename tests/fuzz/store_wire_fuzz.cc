// Fuzz target: whatever a store and a client send to each other, it is taken or refused with a
// short text. The table keeps its limits.
#include <optional>
#include <string>

#include "fuzz/fuzz_bytes.h"
#include "sluice/store.h"
#include "world/store/store_desk.h"
#include "world/store/store_greeting.h"
#include "world/store/store_wire.h"

namespace sluice {
namespace {

constexpr uint64_t kClient = 7;
constexpr int kLeastKeys = 8;
constexpr int64_t kLeastBytes = 4096;

// What one connection to a server comes to, without the connection.
class Served {
 public:
  Served() : desk_(Limits()), greeting_(&side_, std::string(kStoreInstanceBytes, 'i')) {}

  void Take(absl::string_view bytes) {
    inbox_.Append(bytes);
    while (true) {
      const auto frame = inbox_.Next();
      if (!frame.ok()) return CheckError(frame.status());
      if (frame->empty()) break;
      const absl::Status status = TakeFrame(*frame);
      if (!status.ok()) return CheckError(status);
    }
    desk_.Forget(kClient);
    CheckReply(desk_.Take(kClient + 1, ListAll(), 0));
    desk_.AnswerDue(
        1, [](uint64_t) { return true; },
        [](uint64_t, const StoreReply& reply) {
          SLUICE_CHECK(reply.entries.size() <= kLeastKeys, "more keys than the limit");
          CheckReply(reply);
        });
  }

 private:
  static StoreLimits Limits() { return {.keys = kLeastKeys, .bytes = kLeastBytes}; }

  static StoreRequest ListAll() {
    StoreRequest request;
    request.call = StoreCall::kList;
    return request;
  }

  absl::Status TakeFrame(absl::string_view frame) {
    if (!welcome_) {
      std::string out;
      const auto done = greeting_.Take(frame, &out);
      if (!done.ok()) return done.status();
      welcome_ = *done;
      if (welcome_) inbox_.set_max_frame_bytes(kMaxRequestBytes);
      return absl::OkStatus();
    }
    const auto request = ParseRequest(frame);
    if (!request.ok()) return request.status();
    SLUICE_CHECK(EncodeRequest(*request).substr(4) == frame, "another request than was sent");
    CheckReply(desk_.Take(kClient, *request, ++now_ns_));
    desk_.AnswerDue(
        now_ns_, [](uint64_t) { return true; },
        [](uint64_t, const StoreReply& reply) { CheckReply(reply); });
    return absl::OkStatus();
  }

  static void CheckReply(const std::optional<StoreReply>& reply) {
    if (!reply.has_value()) return;
    if (!reply->status.ok()) CheckError(reply->status);
    SLUICE_CHECK(ParseReply(EncodeReply(*reply).substr(4)).ok(), "a reply that cannot be read");
  }

  const StoreSide side_;
  StoreDesk desk_;
  ServerGreeting greeting_;
  StoreInbox inbox_{kMaxGreetingBytes};
  bool welcome_ = false;
  int64_t now_ns_ = 0;
};

void TakeAsClient(absl::string_view bytes) {
  const StoreSide side;
  ClientGreeting greeting(&side);
  if (!greeting.Hello().ok()) return;
  StoreInbox inbox(kMaxReplyBytes);
  inbox.Append(bytes);
  while (true) {
    const auto frame = inbox.Next();
    if (!frame.ok()) return CheckError(frame.status());
    if (frame->empty()) return;
    std::string out;
    const auto done = greeting.Take(*frame, &out);
    if (!done.ok()) CheckError(done.status());
    CheckError(ParseError(*frame));
    const auto reply = ParseReply(*frame);
    if (!reply.ok()) {
      CheckError(reply.status());
    } else if (!reply->status.ok()) {
      CheckError(reply->status);
    }
  }
}

}  // namespace
}  // namespace sluice

SLUICE_FUZZ_TARGET(store_wire) {
  const absl::string_view bytes = sluice::TextOf(data, size);
  sluice::Served().Take(bytes);
  sluice::TakeAsClient(bytes);
  return 0;
}
