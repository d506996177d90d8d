// One rank's transport over TCP links for tests that start operations by hand.
#ifndef SLUICE_TESTS_TRANSPORT_TCP_END_H_
#define SLUICE_TESTS_TRANSPORT_TCP_END_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "sluice/transport.h"
#include "transport/tcp/tcp_links.h"
#include "transport/tcp_ranks.h"

namespace sluice {

// One rank's transport, with its events.
struct TcpEnd {
  explicit TcpEnd(const std::shared_ptr<TcpLinks>& links, int number = 0, int capacity = 64)
      : transport(*links->OpenTransport(number)) {
    EXPECT_TRUE(transport->Reserve(capacity).ok());
  }
  void Start(const std::vector<TransportOp>& ops) {
    const absl::Status status = transport->Start(ops);
    EXPECT_TRUE(status.ok()) << status;
  }
  void Poll() {
    TransportEvent room[8];
    const absl::StatusOr<int> count = transport->Poll(absl::MakeSpan(room));
    ASSERT_TRUE(count.ok()) << count.status();
    for (int i = 0; i < *count; ++i) events.push_back(room[i]);
  }
  // Of the operation with this cookie.
  absl::Status StatusOf(uint64_t cookie) const {
    for (const TransportEvent& event : events) {
      if (event.cookie == cookie) return event.status;
    }
    return absl::NotFoundError("no event");
  }

  std::unique_ptr<Transport> transport;
  std::vector<TransportEvent> events;
};

inline TransportOp SendTo(int dst, std::vector<std::byte>& memory, uint64_t cookie, int tag = 0) {
  return {TransportOp::Kind::kSend, dst, tag, memory.data(), memory.size(), cookie};
}
inline TransportOp ReceiveFrom(int src, std::vector<std::byte>& memory, uint64_t cookie,
                               int tag = 0) {
  return {TransportOp::Kind::kReceive, src, tag, memory.data(), memory.size(), cookie};
}

inline std::vector<std::byte> Pattern(size_t bytes, int seed) {
  std::vector<std::byte> pattern(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    pattern[i] = static_cast<std::byte>(i * 13 + i / 257 + static_cast<size_t>(seed));
  }
  return pattern;
}

inline bool PollUntil(const std::vector<TcpEnd*>& ends, const std::function<bool()>& done) {
  return PollAllUntil(
      [&] {
        for (TcpEnd* end : ends) end->Poll();
      },
      done);
}

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_TCP_END_H_
