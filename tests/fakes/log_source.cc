// Reads in words.
#include "fakes/log_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {

bool LogSource::End(absl::string_view name, const absl::Status& status, int64_t skew) {
  const auto op = ops_.find(name);
  if (op == ops_.end() || !reads_.End(name, status)) return false;
  skews_[op->second.cookie] = skew;
  ops_.erase(op);
  return true;
}

bool LogSource::BeginLongAgo(absl::string_view name) {
  const auto op = ops_.find(name);
  if (op == ops_.end()) return false;
  op->second.TellBegun(1);
  return true;
}

absl::Status LogSource::Start(absl::Span<const ReadOp> ops) {
  if (!refusal_.ok()) return std::exchange(refusal_, absl::OkStatus());
  for (const ReadOp& op : ops) {
    const std::string name = log_->Number("read");
    const int64_t room = ReadRoom(op.offset, op.bytes, alignment_);
    log_->Write(absl::StrCat(name, " ", objects_[static_cast<size_t>(op.object)], "[", op.offset,
                             ",", op.offset + op.bytes, ") to ",
                             log_->Place(op.data, static_cast<size_t>(room)), ", try ",
                             op.attempt));
    reads_.Begin({name, op.cookie, absl::OkStatus()});
    ops_[name] = op;
    op.TellWaits();
  }
  return absl::OkStatus();
}

absl::StatusOr<int> LogSource::Poll(absl::Span<ReadEvent> events) {
  if (!failure_.ok()) {
    reads_.Forget();
    ops_.clear();
    return std::exchange(failure_, absl::OkStatus());
  }
  size_t count = 0;
  LoggedOperation ended;
  while (count < events.size() && reads_.Take(&ended)) {
    events[count++] = {ended.cookie, ended.status, skews_[ended.cookie]};
  }
  return static_cast<int>(count);
}

void LogSource::Cancel(uint64_t cookie) {
  const auto& open = reads_.open();
  const auto read = std::find_if(open.begin(), open.end(), [cookie](const LoggedOperation& each) {
    return each.cookie == cookie;
  });
  if (read != open.end()) log_->Write(absl::StrCat("cancel ", read->name));
}

}  // namespace sluice
