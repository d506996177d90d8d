// A mailbox under the lock of the links.
#include "transport/tcp/tcp_transport.h"

#include <mutex>
#include <utility>

#include "transport/op_check.h"
#include "transport/tcp/tcp_core.h"

namespace sluice {

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

}  // namespace sluice
