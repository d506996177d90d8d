// A fabric whose ranks share a process, and the hub that connects them.
#include "transport/loopback.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "tensor/check.h"
#include "transport/loopback_messages.h"
#include "transport/op_check.h"

namespace sluice {
namespace {

// The control records of all ranks. Threads: any; one lock.
class ControlBoard {
 public:
  explicit ControlBoard(int size) : alarms_(static_cast<size_t>(size)) {}

  // Adds the record of `rank` to the gather number `index`.
  void Post(int rank, size_t index, absl::Span<const std::byte> record);
  // The records of gather `index`, in rank order; empty for those that have not come. False while
  // one is missing; once true, counts as taken by the caller.
  bool Take(size_t index, std::vector<std::optional<std::vector<std::byte>>>* records);

  void RaiseAlarm(const Alarm& alarm);
  std::optional<Alarm> alarm(int rank) const;

 private:
  struct Gather {
    std::vector<std::optional<std::vector<std::byte>>> records;
    size_t taken = 0;
  };
  size_t size() const { return alarms_.size(); }

  mutable std::mutex mutex_;
  size_t first_gather_ = 0;     // number of gathers_.front()
  std::deque<Gather> gathers_;  // those that not all ranks have taken
  std::vector<std::optional<Alarm>> alarms_;
};

void ControlBoard::Post(int rank, size_t index, absl::Span<const std::byte> record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (first_gather_ + gathers_.size() <= index) {
    gathers_.emplace_back();
    gathers_.back().records.resize(size());
  }
  gathers_[index - first_gather_].records[static_cast<size_t>(rank)].emplace(record.begin(),
                                                                             record.end());
}

bool ControlBoard::Take(size_t index, std::vector<std::optional<std::vector<std::byte>>>* records) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Gather& gather = gathers_[index - first_gather_];
  *records = gather.records;
  for (const auto& record : gather.records) {
    if (!record.has_value()) return false;
  }
  ++gather.taken;
  while (!gathers_.empty() && gathers_.front().taken == size()) {
    gathers_.pop_front();
    ++first_gather_;
  }
  return true;
}

void ControlBoard::RaiseAlarm(const Alarm& alarm) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t rank = 0; rank < size(); ++rank) {
    if (static_cast<int>(rank) != alarm.src && !alarms_[rank].has_value()) alarms_[rank] = alarm;
  }
}

std::optional<Alarm> ControlBoard::alarm(int rank) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return alarms_[static_cast<size_t>(rank)];
}

class LoopbackFabric final : public Fabric {
 public:
  LoopbackFabric(int rank, std::vector<int> node_of_rank, std::shared_ptr<ControlBoard> board,
                 std::shared_ptr<LoopbackMessages> messages)
      : Fabric(rank, std::move(node_of_rank)),
        board_(std::move(board)),
        messages_(std::move(messages)) {}

  absl::Status StartAllGather(absl::Span<const std::byte> record) override {
    if (gathering_) return absl::FailedPreconditionError("an all-gather is under way");
    SLUICE_CHECK(record.size() <= kMaxRecordBytes, "the record is too long");
    gathering_ = true;
    record_bytes_ = record.size();
    board_->Post(rank(), gathers_, record);
    return absl::OkStatus();
  }

  absl::StatusOr<bool> PollAllGather(std::vector<std::byte>* all,
                                     std::vector<int>* missing) override {
    SLUICE_CHECK(gathering_, "no all-gather is under way");
    std::vector<std::optional<std::vector<std::byte>>> records;
    const bool complete = board_->Take(gathers_, &records);
    if (missing != nullptr) missing->clear();
    if (complete) {
      gathering_ = false;
      ++gathers_;
    }
    all->clear();
    for (int src = 0; src < size(); ++src) {
      const auto& record = records[static_cast<size_t>(src)];
      if (!record.has_value()) {
        if (missing != nullptr) missing->push_back(src);
        continue;
      }
      if (record->size() != record_bytes_) {
        return RecordLengthError(src, record->size(), rank(), record_bytes_);
      }
      if (complete) all->insert(all->end(), record->begin(), record->end());
    }
    return complete;
  }

  void RaiseAlarm(const absl::Status& status) override {
    SLUICE_CHECK(!status.ok(), "an alarm needs an error");
    if (raised_) return;
    raised_ = true;
    Alarm alarm;
    alarm.src = rank();
    alarm.code = status.code();
    const absl::string_view message = status.message().substr(0, kMaxAlarmBytes);
    alarm.message.assign(message.data(), message.size());
    board_->RaiseAlarm(alarm);
  }

  std::optional<Alarm> PollAlarm() override { return board_->alarm(rank()); }

  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport() override {
    if (opened_) return absl::FailedPreconditionError("the transport has been opened before");
    opened_ = true;
    return MakeLoopbackTransport(rank(), size(), messages_);
  }

 private:
  const std::shared_ptr<ControlBoard> board_;
  const std::shared_ptr<LoopbackMessages> messages_;
  size_t gathers_ = 0;  // completed; the number of the one under way
  size_t record_bytes_ = 0;
  bool gathering_ = false;
  bool raised_ = false;
  bool opened_ = false;
};

}  // namespace

std::vector<std::unique_ptr<Fabric>> MakeLoopbackFabrics(const std::vector<int>& node_of_rank) {
  const int size = static_cast<int>(node_of_rank.size());
  auto board = std::make_shared<ControlBoard>(size);
  auto messages = std::make_shared<LoopbackMessages>(size);
  std::vector<std::unique_ptr<Fabric>> fabrics;
  fabrics.reserve(node_of_rank.size());
  for (int rank = 0; rank < size; ++rank) {
    fabrics.push_back(std::make_unique<LoopbackFabric>(rank, node_of_rank, board, messages));
  }
  return fabrics;
}

}  // namespace sluice
