// The door at a rank's port: strangers are sent away, ranks of the world are let in.
#ifndef SLUICE_SRC_TRANSPORT_TCP_TCP_DOOR_H_
#define SLUICE_SRC_TRANSPORT_TCP_TCP_DOOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/socket.h"
#include "transport/tcp/tcp_handshake.h"

namespace sluice {

struct TcpListener {
  Fd fd;
  std::string address;  // as TcpLinks::address() has it
};

// Listens at `bind`, or at all addresses of this host if it is empty, of which `first` is told
// first. InvalidArgument: it has more than kMaxAddresses. Unavailable: the system refuses.
absl::StatusOr<TcpListener> ListenTcp(const std::string& bind, int port,
                                      const std::string& first = "");

// A rank whose proof is right, and who waits for a welcome.
struct TcpArrival {
  Fd fd;
  int rank = -1;
};

// At most kMaxHalfOpen connections are between their first byte and their proof; further ones wait
// in the system. Then who has not proved itself within kPatienceNs makes room for one of them, and
// first of all who has said nothing right.
// Thread: one.
class TcpDoor {
 public:
  static constexpr size_t kMaxHalfOpen = 128;
  static constexpr int64_t kPatienceNs = 200'000'000;

  // `identity` stays.
  TcpDoor(Fd listener, const TcpIdentity& identity, int64_t timeout_ns);

  // OK, or why the door does not work.
  absl::Status Open();
  // Readable when Progress has something to do.
  int fd() const { return epoll_.get(); }
  size_t half_open() const { return callers_.size(); }
  // Accepts, reads and answers what has come, and adds those that may enter.
  void Progress(int64_t now_ns, std::vector<TcpArrival>* arrivals);
  // Sends away who has been silent for too long.
  void DropSilent(int64_t now_ns);

 private:
  struct Caller {
    Fd fd;
    int64_t since_ns = 0;
    bool greeted = false;  // its hello was right, and it has the challenge
    TcpHello hello = {};
    TcpChallenge challenge = {};
    std::array<std::byte, sizeof(TcpHello)> read = {};
    size_t bytes = 0;  // of `read`
  };
  enum class Step : uint8_t { kWaits, kEnters, kGoes };

  void Accept(int64_t now_ns);
  bool MakeRoom(int64_t now_ns);
  void Serve(int fd, std::vector<TcpArrival>* arrivals);
  Step Hear(Caller& caller);
  Step TakeHello(Caller& caller);

  const TcpIdentity& identity_;
  const int64_t timeout_ns_;
  const Fd listener_;
  Fd epoll_;
  std::vector<Caller> callers_;  // the oldest first
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TCP_TCP_DOOR_H_
