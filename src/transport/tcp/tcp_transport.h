// Messages between ranks over their TCP links. It only moves bytes.
#ifndef SLUICE_SRC_TRANSPORT_TCP_TCP_TRANSPORT_H_
#define SLUICE_SRC_TRANSPORT_TCP_TCP_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sluice/transport.h"

namespace sluice {

class TcpCore;
class TcpMailbox;

// The system reads and writes bytes where the operations have them. Copied are only the first few
// of a frame, short rows, and short messages that come before their receives. At its end it copies
// what the system still has to be given of a frame that has begun, 256 KiB for each rank at most.
// So from then on nothing reads or writes memory of operations, and KeepUntilOver keeps until then.
// A receive whose sender ends its transport in the middle of the message fails with Unavailable, as
// do operations with a rank whose connection broke. Thread: one at a time; other transports of the
// same links may be used by others.
class TcpTransport final : public Transport {
 public:
  // For TcpLinks::OpenTransport. `mailbox` is the core's.
  TcpTransport(std::shared_ptr<TcpCore> core, TcpMailbox* mailbox, uint32_t number);
  ~TcpTransport() override;

  absl::Status Reserve(int capacity) override;
  absl::Status UseStaging(absl::Span<std::byte> /*staging*/) override { return absl::OkStatus(); }
  absl::Status Start(absl::Span<const TransportOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override;
  void Withdraw() override;
  bool Part() override;
  int outstanding() const override;

 private:
  const std::shared_ptr<TcpCore> core_;
  TcpMailbox* const mailbox_;
  const uint32_t number_;
  std::vector<uint64_t> parting_;  // by rank: frames up to the one that says that this one parts
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TCP_TCP_TRANSPORT_H_
