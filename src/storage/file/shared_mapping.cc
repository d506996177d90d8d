// Guarding and checking what is lent.
#include "storage/file/shared_mapping.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {

SharedMapping::SharedMapping(MappedFile file, std::string name,
                             std::shared_ptr<std::atomic<int>> alive)
    : file_(std::move(file)), name_(std::move(name)), alive_(std::move(alive)) {
  alive_->fetch_add(1, std::memory_order_relaxed);
}

SharedMapping::~SharedMapping() { alive_->fetch_sub(1, std::memory_order_relaxed); }

bool SharedMapping::Guard() {
  if (guard_ == nullptr && file_.data() != nullptr) {
    guard_ = BusGuard::Watch(file_.data(), file_.bytes());
  }
  return guard_ != nullptr;
}

absl::Status SharedMapping::Check(int64_t end) const {
  if (damaged()) {
    return absl::DataLossError(absl::StrCat(
        Quoted(name_), " has become shorter or cannot be read: who was lent bytes saw zeros"));
  }
  absl::Status status = file_.CheckEnd(end);
  if (status.ok()) return status;
  return MakeError(status.code(), Quoted(name_), ", of which bytes were lent: ", status);
}

}  // namespace sluice
