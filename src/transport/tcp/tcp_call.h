// A rank's call to another one: tries all of its addresses until the right rank answers at one.
#ifndef SLUICE_SRC_TRANSPORT_TCP_TCP_CALL_H_
#define SLUICE_SRC_TRANSPORT_TCP_TCP_CALL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "net/address.h"
#include "net/socket.h"
#include "transport/tcp/tcp_handshake.h"

namespace sluice {

// Hosts and containers may share addresses, so that somebody else listens at some of them. One
// address after the other is called, a little later each, and they go on side by side. Thread: one.
class TcpCall {
 public:
  enum class State : uint8_t { kCalls, kAnswered, kFailed };

  // `identity` and `addresses` stay.
  TcpCall(const TcpIdentity& identity, int dst, const std::vector<SocketAddress>& addresses,
          int64_t timeout_ns, absl::Duration silence);

  // kFailed: there is nobody for the timeout, or nobody listens in any of several rounds. A rank
  // that has taken the connection and does not answer is waited for: its process may compute. But a
  // host that gives no sign for `silence` counts as nobody.
  State Progress(int64_t now_ns);
  // This rank has given its proof. The other one may have taken the connection as theirs.
  bool has_proved() const { return proved_; }
  // The connection, of a call that has been answered.
  Fd Take() { return std::move(taken_); }
  // The failure at each address.
  std::string failures() const;

 private:
  struct Line {
    Fd fd;
    const SocketAddress* address = nullptr;
    bool connected = false;
    TcpHello hello = {};
    std::array<std::byte, sizeof(TcpChallenge)> read = {};
    size_t bytes = 0;  // of `read`
  };

  void Dial(int64_t now_ns);
  bool StartLine(const SocketAddress& address);
  // Both: false once it has failed.
  bool Advance(Line& line);
  bool Hear(Line& line);
  bool Answer(Line& line, const TcpChallenge& challenge);
  bool Fail(const Line& line, const std::string& why);
  void Note(const SocketAddress& address, const std::string& why);
  bool AnyConnected() const;
  void DropSilent();

  const TcpIdentity& identity_;
  const int dst_;
  const std::vector<SocketAddress>& addresses_;
  const int64_t timeout_ns_;
  const absl::Duration silence_;
  int64_t since_ns_ = 0;
  int64_t looked_for_silence_ns_ = 0;
  int64_t next_dial_ns_ = 0;
  size_t next_ = 0;  // of addresses_
  int round_ = 0;
  bool refused_ = false;   // somewhere in this round
  bool doubtful_ = false;  // somebody may be there: in this round
  bool proved_ = false;
  std::vector<Line> lines_;
  std::vector<std::string> failures_;  // by address: the last one
  Fd taken_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TCP_TCP_CALL_H_
