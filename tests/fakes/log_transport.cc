// Sends and receives in words.
#include "fakes/log_transport.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {

LogTransport::~LogTransport() {
  const size_t kept = TakeKept().size();
  if (kept > 0) log_->Write(absl::StrCat("transport ends and keeps ", kept, " memory"));
}

absl::Status LogTransport::Reserve(int capacity) {
  capacity_ = std::max(capacity_, capacity);
  log_->Write(absl::StrCat("reserve ", capacity));
  return absl::OkStatus();
}

absl::Status LogTransport::UseStaging(absl::Span<std::byte> staging) {
  log_->Write(absl::StrCat("use staging ", log_->Place(staging.data(), 0)));
  return absl::OkStatus();
}

std::string LogTransport::Describe(const TransportOp& op) const {
  const bool sends = op.kind == TransportOp::Kind::kSend;
  const std::string place = log_->Place(op.data, op.bytes, op.row_bytes, op.stride_bytes);
  if (op.fold == nullptr) {
    return absl::StrCat(sends ? " to " : " from ", op.peer, " tag ", op.tag, " hop ", op.hop, ": ",
                        place);
  }
  std::string sources;
  for (const FoldSource& source : op.fold->sources) {
    absl::StrAppend(&sources, sources.empty() ? "" : " + ");
    if (source.peer >= 0) {
      absl::StrAppend(&sources, "rank ", source.peer, " tag ", source.tag);
    } else {
      absl::StrAppend(&sources,
                      log_->Place(source.data, op.bytes, source.row_bytes, source.stride_bytes));
    }
  }
  if (op.fold->divisor > 1) absl::StrAppend(&sources, " / ", op.fold->divisor);
  return absl::StrCat(" hop ", op.hop, ": ", place, " = ", sources);
}

absl::Status LogTransport::Start(absl::Span<const TransportOp> ops) {
  if (!refusal_.ok()) return std::exchange(refusal_, absl::OkStatus());
  if (ops_.outstanding() + static_cast<int>(ops.size()) > capacity_) {
    return absl::ResourceExhaustedError("too many operations");
  }
  if (traits().in_groups) log_->Write(absl::StrCat("group of ", ops.size()));
  for (const TransportOp& op : ops) {
    const std::string name = log_->Number(op.kind == TransportOp::Kind::kSend ? "send" : "receive");
    log_->Write(absl::StrCat(name, Describe(op)));
    ops_.Begin({name, op.cookie, absl::OkStatus()});
  }
  return absl::OkStatus();
}

absl::StatusOr<int> LogTransport::Poll(absl::Span<TransportEvent> events) {
  if (!failure_.ok()) {
    ops_.Forget();
    return std::exchange(failure_, absl::OkStatus());
  }
  size_t count = 0;
  LoggedOperation ended;
  while (count < events.size() && ops_.Take(&ended)) {
    events[count++] = {ended.cookie, ended.status};
  }
  return static_cast<int>(count);
}

bool LogTransport::Part() {
  if (!std::exchange(parts_, true)) log_->Write("part");
  return !held_ && outstanding() == 0;
}

}  // namespace sluice
