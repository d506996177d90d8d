// A fabric whose ranks share a process.
#include "transport/loopback/loopback.h"

#include <memory>
#include <optional>
#include <utility>

#include "tensor/check.h"
#include "transport/loopback/loopback_control.h"
#include "transport/loopback/loopback_messages.h"
#include "transport/op_check.h"

namespace sluice {
namespace {

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

}  // namespace sluice
