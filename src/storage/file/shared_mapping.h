// A mapped file that a source shares with those to whom it lends parts of it.
#ifndef SLUICE_SRC_STORAGE_FILE_SHARED_MAPPING_H_
#define SLUICE_SRC_STORAGE_FILE_SHARED_MAPPING_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "storage/file/bus_guard.h"
#include "storage/file/mapped_file.h"
#include "storage/source.h"

namespace sluice {

class SharedMapping final : public LentMemory {
 public:
  // `name` is for messages. `alive` counts the mappings that there are.
  SharedMapping(MappedFile file, std::string name, std::shared_ptr<std::atomic<int>> alive);
  ~SharedMapping() override;

  const MappedFile& file() const { return file_; }
  // To be called before any of it is lent. False if it must not be. The source's thread.
  bool Guard();
  // Pages of it are zeros now, whatever the file has.
  bool damaged() const { return guard_ != nullptr && guard_->tripped(); }

  absl::Status Check(int64_t end) const override;

 private:
  const MappedFile file_;
  const std::string name_;
  const std::shared_ptr<std::atomic<int>> alive_;
  std::unique_ptr<BusGuard> guard_;  // goes before the mapping
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_SHARED_MAPPING_H_
