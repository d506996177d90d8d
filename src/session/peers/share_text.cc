// A text of one rank's, passed on to all others.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "session/backoff.h"
#include "session/session_impl.h"
#include "transport/deadline.h"

namespace sluice {
namespace {

// Messages of a text that is passed on.
constexpr size_t kTextMessageBytes = size_t{1} << 20;

}  // namespace

absl::Status SessionImpl::RunMessages(Transport* transport, absl::Span<const TransportOp> ops,
                                      const char* call) {
  if (absl::Status status = transport->Start(ops); !status.ok()) return Poison(status);
  const Deadline deadline(options_.timeout);
  Backoff backoff;
  std::array<TransportEvent, 16> events;
  while (transport->outstanding() > 0) {
    const absl::StatusOr<int> count = transport->Poll(absl::MakeSpan(events));
    if (!count.ok()) return Poison(count.status());
    for (int i = 0; i < *count; ++i) {
      const absl::Status& status = events[static_cast<size_t>(i)].status;
      if (!status.ok()) return Poison(status);
    }
    if (absl::Status status = CheckAlarm(); !status.ok()) return status;
    if (deadline.Passed()) {
      return Poison(absl::DeadlineExceededError(absl::StrCat(call, ": the index does not cross")));
    }
    if (*count == 0) PauseFor(&backoff);
  }
  return absl::OkStatus();
}

absl::Status SessionImpl::PassText(Transport* transport, int64_t bytes, std::string* text,
                                   const char* call) {
  text->resize(static_cast<size_t>(bytes));
  for (size_t begin = 0; begin < text->size(); begin += kTextMessageBytes) {
    TransportOp op;
    op.data = reinterpret_cast<std::byte*>(text->data()) + begin;
    op.bytes = std::min(kTextMessageBytes, text->size() - begin);
    std::vector<TransportOp> ops;
    if (rank() != 0) {
      op.kind = TransportOp::Kind::kReceive;
      op.peer = 0;
      ops.push_back(op);
    }
    for (int dst = 1; rank() == 0 && dst < size(); ++dst) {
      op.peer = dst;
      ops.push_back(op);
    }
    if (absl::Status status = RunMessages(transport, ops, call); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SessionImpl::PassNewText(Transport* transport, std::string* text, const char* call) {
  std::string length(sizeof(int64_t), '\0');
  const int64_t own = static_cast<int64_t>(text->size());
  if (rank() == 0) std::memcpy(length.data(), &own, sizeof(own));
  absl::Status status = PassText(transport, static_cast<int64_t>(length.size()), &length, call);
  if (!status.ok()) return status;
  int64_t bytes = 0;
  std::memcpy(&bytes, length.data(), sizeof(bytes));
  return PassText(transport, bytes, text, call);
}

absl::Status SessionImpl::ShareText(const absl::Status& own, Transport* transport,
                                    std::string* text, const char* call) {
  Proposal proposal;
  proposal.call = call;
  proposal.status = own;
  proposal.payload = absl::StrCat(text->size());
  if (absl::Status status = Agree(std::move(proposal)); !status.ok()) return status;
  if (transport == nullptr) return absl::OkStatus();
  int64_t bytes = 0;
  if (!absl::SimpleAtoi(agreement_.payload(0), &bytes)) {
    return Poison(absl::InternalError(absl::StrCat(call, ": rank 0 sent no length")));
  }
  return PassText(transport, bytes, text, call);
}

}  // namespace sluice
