// Batches in words.
#include "fakes/log_device.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor/contiguity.h"

namespace sluice {
namespace {

// As the contract has it: no source takes a larger one.
constexpr size_t kAlignment = 4096;

std::string WordOf(const CopyBatch& batch) {
  if (batch.after != nullptr || batch.then != nullptr) return "order";
  const bool adds = !batch.reductions.empty();
  if (batch.copies.empty() && batch.normalizations.empty() && !adds) return "mark";
  if (batch.copies.empty() && adds) return "add";
  if (batch.stage == BatchStage::kAny) return "copy";
  return batch.stage == BatchStage::kFill ? "pack" : "unpack";
}

}  // namespace

class LogDevice::LogFence final : public Fence {
 public:
  LogFence(LogDevice* device, std::string name) : device_(device), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  absl::Status Record(StreamHandle) override {
    device_->passed_.erase(name_);
    device_->log_->Write(absl::StrCat("stream: record ", name_));
    return absl::OkStatus();
  }
  absl::Status HoldBack(StreamHandle) override {
    device_->log_->Write(absl::StrCat("stream: wait for ", name_));
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Passed() override { return device_->passed_.count(name_) > 0; }

 private:
  LogDevice* const device_;
  const std::string name_;
};

absl::StatusOr<DeviceMemory> LogDevice::AllocateStaging(size_t bytes) {
  if (!refusal_.ok()) return std::exchange(refusal_, absl::OkStatus());
  log_->Write(absl::StrCat("allocate ", bytes / unit_bytes_, " ", unit_, "s of ", unit_bytes_));
  // NOLINTNEXTLINE(modernize-avoid-c-arrays)
  memory_.push_back(std::make_unique<std::byte[]>(bytes + kAlignment));
  const uintptr_t address = reinterpret_cast<uintptr_t>(memory_.back().get());
  std::byte* const data = memory_.back().get() + (kAlignment - address % kAlignment) % kAlignment;
  log_->Name(data, bytes, unit_, unit_bytes_);
  return DeviceMemory(data, bytes, [](std::byte*, size_t, int) {});
}

absl::StatusOr<std::unique_ptr<Fence>> LogDevice::MakeFence() {
  return std::make_unique<LogFence>(this, log_->Number("fence"));
}

std::string LogDevice::Describe(const StridedCopy& copy) const {
  const auto side = [this, &copy](const RegionSide& region, const std::byte* base, DType dtype) {
    const std::optional<Rows> rows = RowsOf(region, copy.begin, copy.end);
    if (!rows) {
      return absl::StrCat("elements [", copy.begin, ",", copy.end, ") from ", log_->Place(base, 0));
    }
    const size_t bytes = static_cast<size_t>((copy.end - copy.begin) * DTypeBytes(dtype));
    return log_->Place(base + rows->offset, bytes, static_cast<size_t>(rows->row_bytes),
                       static_cast<size_t>(rows->stride_bytes));
  };
  return absl::StrCat(side(SrcSide(copy), copy.src, copy.src_dtype), " -> ",
                      side(DstSide(copy), copy.dst, copy.dst_dtype));
}

std::string LogDevice::Describe(const CopyBatch& batch) const {
  std::string text;
  for (const StridedCopy& copy : batch.copies) absl::StrAppend(&text, "; ", Describe(copy));
  for (const Reduction& each : batch.reductions) {
    const size_t bytes = static_cast<size_t>(each.elements * DTypeBytes(each.dtype));
    absl::StrAppend(&text, "; ", log_->Place(each.src, bytes), " to ",
                    log_->Place(each.dst, bytes));
    if (each.divisor > 1) absl::StrAppend(&text, " / ", each.divisor);
  }
  for (const Normalization& each : batch.normalizations) {
    absl::StrAppend(&text, "; normalize ", log_->Place(each.src, 0), " to ",
                    log_->Place(each.dst, 0));
  }
  const auto fence = [&text](absl::string_view word, const Fence* which) {
    if (which == nullptr) return;
    absl::StrAppend(&text, "; ", word, " ", static_cast<const LogFence*>(which)->name());
  };
  fence("after", batch.after);
  fence("then", batch.then);
  return text.empty() ? "" : absl::StrCat(": ", text.substr(2));
}

absl::Status LogDevice::Start(const CopyBatch& batch) {
  if (!refusal_.ok()) return std::exchange(refusal_, absl::OkStatus());
  if (batches_.outstanding() == kMaxOutstanding) {
    return absl::ResourceExhaustedError("too many batches");
  }
  const std::string name = log_->Number(WordOf(batch));
  log_->Write(absl::StrCat(name, Describe(batch)));
  batches_.Begin({name, batch.cookie, absl::OkStatus()});
  return absl::OkStatus();
}

absl::StatusOr<int> LogDevice::Poll(absl::Span<uint64_t> cookies) {
  if (!failure_.ok()) {
    batches_.EndAll();
    return std::exchange(failure_, absl::OkStatus());
  }
  size_t count = 0;
  LoggedOperation ended;
  while (count < cookies.size() && batches_.Take(&ended)) cookies[count++] = ended.cookie;
  return static_cast<int>(count);
}

}  // namespace sluice
