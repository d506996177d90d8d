// Messages between ranks over their TCP links: a mailbox under the lock of the links.
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sluice/transport.h"
#include "tensor/error_text.h"
#include "transport/op_check.h"
#include "transport/tcp/tcp_core.h"

namespace sluice {
namespace {

// The system reads and writes bytes where the operations have them. Only the first few bytes of a
// frame, short rows, and short messages that come before their receives are copied. At its end the
// transport copies the rest of frames that have begun, 256 KiB for each rank at most. So from then
// on nothing reads or writes memory of operations, and KeepUntilOver keeps until then. A receive
// whose sender ends its transport in the middle of the message fails with Unavailable, as do
// operations with a rank whose connection broke. Thread: one at a time; other transports of the
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

TcpTransport::TcpTransport(std::shared_ptr<TcpCore> core, TcpMailbox* mailbox, uint32_t number)
    : Transport({.name = "tcp"}), core_(std::move(core)), mailbox_(mailbox), number_(number) {}

TcpTransport::~TcpTransport() {
  {
    const std::lock_guard<std::mutex> lock(core_->mutex());
    core_->CloseMailbox(number_);
  }
  TakeKept();
}

absl::Status TcpTransport::Reserve(int capacity) {
  const std::lock_guard<std::mutex> lock(core_->mutex());
  mailbox_->Reserve(capacity);
  return absl::OkStatus();
}

absl::Status TcpTransport::Start(absl::Span<const TransportOp> ops) {
  CheckOps(ops, core_->rank(), core_->size(), traits());
  const std::lock_guard<std::mutex> lock(core_->mutex());
  absl::Status status = mailbox_->Start(ops);
  core_->Flush();
  return status;
}

absl::StatusOr<int> TcpTransport::Poll(absl::Span<TransportEvent> events) {
  const std::lock_guard<std::mutex> lock(core_->mutex());
  core_->ProgressLocked();
  return mailbox_->Poll(events);
}

void TcpTransport::Withdraw() {
  const std::lock_guard<std::mutex> lock(core_->mutex());
  mailbox_->Withdraw();
}

bool TcpTransport::Part() {
  const std::lock_guard<std::mutex> lock(core_->mutex());
  if (!mailbox_->parted()) {
    mailbox_->Part();
    core_->TakeMarks(&parting_);
  }
  core_->ProgressLocked();
  return mailbox_->outstanding() == 0 && core_->HasPassed(parting_);
}

int TcpTransport::outstanding() const {
  const std::lock_guard<std::mutex> lock(core_->mutex());
  return mailbox_->outstanding();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> TcpCore::OpenTransport(int number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto key = static_cast<uint32_t>(number);
  if (number < 0 || !opened_.insert(key).second) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "transport ", number, " of ",
                     RankInWords(rank()), " has been opened before");
  }
  std::unique_ptr<TcpMailbox>& mailbox = mailboxes_[key];
  if (mailbox == nullptr) {
    mailbox = std::make_unique<TcpMailbox>(rank(), size(), key, static_cast<TcpOutlet*>(this));
  }
  return std::make_unique<TcpTransport>(shared_from_this(), mailbox.get(), key);
}

}  // namespace sluice
