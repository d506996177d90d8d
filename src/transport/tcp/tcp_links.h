// One rank's TCP connections to the other ranks of its world, made on demand and proved by a
// secret. They carry small control records and the payload of TcpTransport.
#ifndef SLUICE_SRC_TRANSPORT_TCP_TCP_LINKS_H_
#define SLUICE_SRC_TRANSPORT_TCP_TCP_LINKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "sluice/transport.h"

namespace sluice {

struct TcpLinksOptions {
  int rank = 0;
  int size = 1;
  // An address of this host, as digits. Empty: all that are up, and loopback.
  std::string bind;
  int port = 0;  // 0: any free one
  // The address of this host that others try first. Empty: as the system has them.
  std::string first_host;
  // Known to all ranks of the world and nobody else. Empty: nothing but mistakes is kept out.
  std::string secret;
  // Equal on all ranks of a world, and different in each world: a random number.
  uint64_t world = 0;
  // How long this rank tries to reach another one that does not answer.
  absl::Duration connect_timeout = absl::Seconds(30);
  // How long a stranger at this rank's port may be silent.
  absl::Duration handshake_timeout = absl::Seconds(10);
  // After so long without any sign of another rank's host the connection counts as broken, also one
  // that is still being made. The host gives signs while its process sleeps or computes.
  absl::Duration silence = absl::Seconds(30);
};

// Thread: any, one lock inside. Progress happens inside calls only, of any of them and of the
// transports; nothing but Listen and the end waits.
//
// Payload is neither encrypted nor signed: the secret keeps strangers from joining. A child process
// that is forked closes its copies of the connections, and cannot use the links.
class TcpLinks {
 public:
  // The most bytes of one control record. Records of one kind that the other rank has not taken yet
  // have as much room; or there is one.
  static constexpr size_t kMaxControlBytes = size_t{1} << 20;
  static constexpr int kKinds = 64;

  // Listens at a port. InvalidArgument: `bind` is no address, or there is no such rank.
  // Unavailable: the system refuses.
  static absl::StatusOr<std::shared_ptr<TcpLinks>> Listen(const TcpLinksOptions& options);

  // Says farewell to the ranks that it is connected to, so that its end is no failure there. Waits
  // for what has been sent to leave this host, a second at most; as a rule not at all. The
  // transports keep the links: they end with the last one.
  virtual ~TcpLinks() = default;
  TcpLinks(const TcpLinks&) = delete;
  TcpLinks& operator=(const TcpLinks&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // The addresses at which others reach this rank:
  // "10.0.0.1:4711,[2001:db8::1]:4711,127.0.0.1:4711".
  virtual const std::string& address() const = 0;

  // Sets the others' addresses: what address() gave there, by rank; that of this rank is not looked
  // at. Once. Others may reach this rank before. InvalidArgument names a rank with no address.
  virtual absl::Status SetPeers(const std::vector<std::string>& addresses) = 0;

  // Begins to connect, where that has not been done. A send to a rank connects, too, but goes out
  // only when later calls have made the connection.
  virtual void Connect(int dst) = 0;
  virtual bool IsConnected(int dst) const = 0;

  // Sends a record to another rank, which takes it by PollControl with the same kind, in order of
  // the records of this kind. Copies `record`.
  // ResourceExhausted: records of this kind that `dst` has not taken leave no room.
  // Unavailable: `dst` has ended, or its connection broke. Neither sends anything.
  virtual absl::Status SendControl(int dst, uint8_t kind, absl::Span<const std::byte> record) = 0;

  // The next record of `kind` that has come here: true, with its sender. Records of a rank that has
  // ended since still come.
  virtual bool PollControl(uint8_t kind, int* src, std::vector<std::byte>* record) = 0;

  // How many records of `kind` that were sent to `dst` it has not taken yet, as far as is known.
  virtual int UntakenRecords(int dst, uint8_t kind) const = 0;

  // Whether what was sent to `dst` before Mark gave `mark` has left this process, so that it comes
  // although this rank calls nothing any more. True of a rank to which nothing goes.
  virtual uint64_t Mark(int dst) const = 0;
  virtual bool IsSent(int dst, uint64_t mark) const = 0;

  // OK, or Unavailable, which names the ranks whose connection broke without a farewell, and those
  // that could not be reached. Their earlier control records come first, if asked for soon.
  virtual absl::Status CheckRanks() = 0;

  // Whether `rank` has said farewell.
  virtual bool HasLeft(int rank) const = 0;
  // Whether it has, or its connection broke.
  virtual bool HasEnded(int rank) const = 0;

  // The transport of this number, the same on all ranks that use it. Each number is used once:
  // FailedPrecondition. Needs no other rank. Transport and links may be destroyed in any order.
  virtual absl::StatusOr<std::unique_ptr<Transport>> OpenTransport(int number) = 0;

  // Lets bytes move, and looks at the connections. The other calls do so too.
  virtual void Progress() = 0;

  // Readable when somebody comes to this rank's port, or says something there and has proved
  // nothing yet. Open as long as the links are.
  virtual int door_fd() const = 0;
  // Answers callers if no call has made progress for `idle`, and closes connections that have
  // proved nothing in `handshake_timeout`. Whether some are left that have yet to prove something.
  virtual bool ServeDoor(absl::Duration idle) = 0;

 protected:
  TcpLinks() = default;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TCP_TCP_LINKS_H_
