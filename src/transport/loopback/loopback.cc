// Fabrics whose ranks share a process.
#include "transport/loopback/loopback.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "sluice/fabric.h"
#include "tensor/check.h"
#include "transport/loopback/loopback_messages.h"
#include "transport/op_check.h"

namespace sluice {
namespace {

// Gathers and posts through memory, and the messages of each transport. Shared by the fabrics of
// all ranks. Threads: any; one lock.
class LoopbackControl {
 public:
  using Record = std::vector<std::byte>;

  LoopbackControl(int size, LoopbackSends sends)
      : sends_(sends), inboxes_(static_cast<size_t>(size)) {}

  // Adds the record of `rank` to the gather number `index`.
  void Bring(int rank, size_t index, absl::Span<const std::byte> record);
  // The records of gather `index`, in rank order; empty for those that have not come. False while
  // one is missing; once true, counts as taken by the caller.
  bool TakeAll(size_t index, std::vector<std::optional<Record>>* records);

  // As Fabric's. A post counts as pending until its receiver has polled it.
  absl::Status Post(int src, int dst, absl::Span<const std::byte> record);
  bool TakePost(int rank, int* src, Record* record);

  // The messages of every rank's transport number `index`.
  std::shared_ptr<LoopbackMessages> Messages(size_t index);

 private:
  struct Gather {
    std::vector<std::optional<Record>> records;
    size_t taken = 0;
  };
  struct Posted {
    int src;
    Record record;
  };
  size_t size() const { return inboxes_.size(); }

  const LoopbackSends sends_;
  std::mutex mutex_;
  size_t first_gather_ = 0;     // number of gathers_.front()
  std::deque<Gather> gathers_;  // those that not all ranks have taken
  std::vector<std::deque<Posted>> inboxes_;
  std::vector<std::shared_ptr<LoopbackMessages>> messages_;
};

void LoopbackControl::Bring(int rank, size_t index, absl::Span<const std::byte> record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (first_gather_ + gathers_.size() <= index) {
    gathers_.emplace_back();
    gathers_.back().records.resize(size());
  }
  gathers_[index - first_gather_].records[static_cast<size_t>(rank)].emplace(record.begin(),
                                                                             record.end());
}

bool LoopbackControl::TakeAll(size_t index, std::vector<std::optional<Record>>* records) {
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

absl::Status LoopbackControl::Post(int src, int dst, absl::Span<const std::byte> record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::deque<Posted>& inbox = inboxes_[static_cast<size_t>(dst)];
  const auto pending = std::count_if(inbox.begin(), inbox.end(),
                                     [src](const Posted& post) { return post.src == src; });
  if (pending >= Fabric::kMaxPostsPending) return PostRefusal(dst, static_cast<int>(pending));
  inbox.push_back({src, Record(record.begin(), record.end())});
  return absl::OkStatus();
}

bool LoopbackControl::TakePost(int rank, int* src, Record* record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::deque<Posted>& inbox = inboxes_[static_cast<size_t>(rank)];
  if (inbox.empty()) return false;
  *src = inbox.front().src;
  *record = std::move(inbox.front().record);
  inbox.pop_front();
  return true;
}

std::shared_ptr<LoopbackMessages> LoopbackControl::Messages(size_t index) {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (messages_.size() <= index) {
    messages_.push_back(std::make_shared<LoopbackMessages>(static_cast<int>(size()), sends_));
  }
  return messages_[index];
}

class LoopbackFabric final : public Fabric {
 public:
  LoopbackFabric(int rank, std::vector<int> node_of_rank, std::shared_ptr<LoopbackControl> control)
      : Fabric(rank, std::move(node_of_rank)), control_(std::move(control)) {}

  absl::Status StartAllGather(absl::Span<const std::byte> record) override {
    if (gathering_) return absl::FailedPreconditionError("an all-gather is under way");
    SLUICE_CHECK(record.size() <= kMaxRecordBytes, "the record is too long");
    gathering_ = true;
    record_bytes_ = record.size();
    control_->Bring(rank(), gathers_, record);
    return absl::OkStatus();
  }

  absl::StatusOr<bool> PollAllGather(std::vector<std::byte>* all,
                                     std::vector<int>* missing) override {
    SLUICE_CHECK(gathering_, "no all-gather is under way");
    std::vector<std::optional<std::vector<std::byte>>> records;
    const bool complete = control_->TakeAll(gathers_, &records);
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

  absl::Status Post(int dst, absl::Span<const std::byte> record) override {
    CheckPost(dst, record.size(), rank(), size());
    return control_->Post(rank(), dst, record);
  }
  bool PollPost(int* src, std::vector<std::byte>* record) override {
    return control_->TakePost(rank(), src, record);
  }

  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport() override {
    return MakeLoopbackTransport(rank(), size(), control_->Messages(transports_++));
  }
  WireReport DescribeWire(int /*peer*/) const override {
    WireReport report;
    report.wire = "loopback";
    report.why = "all ranks are in one process";
    return report;
  }
  absl::Status CheckOtherThread() const override { return absl::OkStatus(); }

 private:
  const std::shared_ptr<LoopbackControl> control_;
  size_t gathers_ = 0;  // completed; the number of the one under way
  size_t record_bytes_ = 0;
  bool gathering_ = false;
  size_t transports_ = 0;  // opened
};

}  // namespace

std::vector<std::unique_ptr<Fabric>> MakeLoopbackFabrics(const std::vector<int>& node_of_rank,
                                                         LoopbackSends sends) {
  const int size = static_cast<int>(node_of_rank.size());
  auto control = std::make_shared<LoopbackControl>(size, sends);
  std::vector<std::unique_ptr<Fabric>> fabrics;
  fabrics.reserve(node_of_rank.size());
  for (int rank = 0; rank < size; ++rank) {
    fabrics.push_back(std::make_unique<LoopbackFabric>(rank, node_of_rank, control));
  }
  return fabrics;
}

absl::StatusOr<std::vector<std::unique_ptr<Fabric>>> MakeLocalFabric(int ranks) {
  constexpr int kRanksMax = 4096;
  if (ranks < 1 || ranks > kRanksMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a local fabric of ", ranks, " ranks; 1 .. ", kRanksMax));
  }
  return MakeLoopbackFabrics(std::vector<int>(static_cast<size_t>(ranks), 0));
}

}  // namespace sluice
