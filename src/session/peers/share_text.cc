// Messages of a text, one after the other.
#include "session/peers/share_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/time/time.h"
#include "session/base/backoff.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"

namespace sluice {
namespace {

// Messages of a text that is passed on.
constexpr size_t kTextMessageBytes = size_t{1} << 20;

absl::Status RunMessages(Peers* peers, Transport* transport, absl::Span<const TransportOp> ops,
                         const char* call) {
  if (absl::Status status = transport->Start(ops); !status.ok()) return peers->Poison(status);
  std::vector<int> late;
  for (const TransportOp& op : ops) late.push_back(op.peer);
  const Deadline deadline(peers->timeout());
  Backoff backoff;
  std::array<TransportEvent, 16> events;
  while (transport->outstanding() > 0) {
    const absl::StatusOr<int> count = transport->Poll(absl::MakeSpan(events));
    if (!count.ok()) return peers->Poison(count.status());
    for (int i = 0; i < *count; ++i) {
      const TransportEvent& event = events[static_cast<size_t>(i)];
      if (!event.status.ok()) return peers->Poison(event.status);
      std::erase(late, static_cast<int>(event.cookie));
    }
    if (absl::Status status = peers->CheckAlarm(); !status.ok()) return status;
    if (deadline.Passed()) {
      return peers->Poison(MakeError(absl::StatusCode::kDeadlineExceeded, call, ": ",
                                     NamedRanks(late),
                                     peers->rank() == 0 ? " did not take" : " did not pass on",
                                     " the index within ", absl::FormatDuration(peers->timeout())));
    }
    if (*count == 0) peers->PauseFor(&backoff);
  }
  return absl::OkStatus();
}

// Passes a text of a length that all know. On other ranks than 0 the text grows as it comes.
absl::Status PassBytes(Peers* peers, Transport* transport, size_t bytes, std::string* text,
                       const char* call) {
  for (size_t begin = 0; begin < bytes; begin += kTextMessageBytes) {
    TransportOp op;
    op.bytes = std::min(kTextMessageBytes, bytes - begin);
    if (peers->rank() != 0) text->resize(begin + op.bytes);
    op.data = reinterpret_cast<std::byte*>(text->data()) + begin;
    std::vector<TransportOp> ops;
    if (peers->rank() != 0) {
      op.peer = 0;
      op.kind = TransportOp::Kind::kReceive;
      ops.push_back(op);
    }
    for (int dst = 1; peers->rank() == 0 && dst < peers->size(); ++dst) {
      op.peer = dst;
      op.cookie = static_cast<uint64_t>(dst);
      ops.push_back(op);
    }
    if (absl::Status status = RunMessages(peers, transport, ops, call); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ShareText(Peers* peers, Transport* transport, std::string* text, const char* call) {
  if (peers->size() == 1) return absl::OkStatus();
  uint64_t bytes = text->size();
  std::string length(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  SLUICE_RETURN_IF_ERROR(PassBytes(peers, transport, length.size(), &length, call));
  std::memcpy(&bytes, length.data(), sizeof(bytes));
  if (peers->rank() != 0) text->clear();
  return PassBytes(peers, transport, static_cast<size_t>(bytes), text, call);
}

}  // namespace sluice
