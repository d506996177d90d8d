// What the slow file system has been asked for, per object, and where objects end by now.
#ifndef SLUICE_TESTS_FUSE_LEDGER_H_
#define SLUICE_TESTS_FUSE_LEDGER_H_

#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace sluice::fuse {

// Objects are numbered from 1, the root, whose path is empty; other paths are relative to it.
// Threads: any.
class Ledger {
 public:
  Ledger() { NumberOf(""); }

  // The number of the object at `path`, which it keeps.
  uint64_t NumberOf(const std::string& path);
  std::string PathOf(uint64_t object);

  void CountOpen(uint64_t object);
  // A read begins; returns how many at this offset have begun before.
  int BeginRead(uint64_t object, uint64_t offset);
  void EndRead(uint64_t object, uint64_t bytes, bool failed);

  // The object ends at `end_bytes` from now on, if it did not end before.
  void Truncate(uint64_t object, uint64_t end_bytes);
  uint64_t EndOf(uint64_t object);

  // {"reports", "in_flight", "in_flight_max", "objects": {path: {"opens", "reads", "bytes",
  // "errors"}}}: of the objects that have been opened. `reports` counts these calls.
  std::string Report();

 private:
  struct Object {
    std::string path;
    int64_t opens = 0;
    int64_t reads = 0;  // that have begun
    int64_t errors = 0;
    uint64_t bytes = 0;  // that were handed out
    uint64_t end_bytes = std::numeric_limits<uint64_t>::max();
    std::map<uint64_t, int> attempts;  // by offset
  };
  Object& At(uint64_t object) { return objects_[object - 1]; }

  std::mutex mutex_;
  std::map<std::string, uint64_t> numbers_;
  std::vector<Object> objects_;
  int64_t in_flight_ = 0;
  int64_t in_flight_max_ = 0;
  int64_t reports_ = 0;
};

}  // namespace sluice::fuse

#endif  // SLUICE_TESTS_FUSE_LEDGER_H_
