// The parts of the slow file system: the fate of each read, a clock, and what was asked for.
#ifndef SLUICE_TESTS_FUSE_SLOW_FS_PARTS_H_
#define SLUICE_TESTS_FUSE_SLOW_FS_PARTS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice::fuse {

// Shares are of 1. A read is one request of the kernel's, at most 1 MiB.
struct FatePlan {
  uint64_t seed = 0;
  double latency_ms = 0;      // of a read
  double jitter = 0;          // evenly, up to so much of the latency more or less; at most 1
  double tail_percent = 0;    // of the reads, which take
  double tail_factor = 10;    // times as long
  double eio_share = 0;       // of attempts: an error
  double dead_share = 0;      // of offsets: an error at every attempt
  double short_share = 0;     // of attempts: half of what was asked for
  double truncate_share = 0;  // of offsets: from the first read on the file ends half-way there
};

enum class Outcome : uint8_t { kGood, kError, kShort, kTruncated };

struct Fate {
  int64_t delay_ns = 0;
  Outcome outcome = Outcome::kGood;
};

// Of attempt `attempt`, from 0, to read at `offset` of the object at `path`. Equal arguments, equal
// fate: whatever else is read, and in which order.
Fate FateOf(const FatePlan& plan, absl::string_view path, uint64_t offset, int attempt);

// Reads "eio:0.01,dead:0.001,short:0.1,truncate:0.001" into the shares. InvalidArgument names what
// it does not know.
absl::Status ParseFaults(const std::string& text, FatePlan* plan);

// Does things later: the clock of the slow file system.

// Any number of replies wait at once, as each is an entry and not a thread. A few threads carry out
// the replies that are due, in the order in which they became due.
class DelayedReplies {
 public:
  // The first `hold` replies are kept until all of them are there: so a test can see that they are
  // under way together. 0: none are.
  DelayedReplies(int threads, int hold);
  // As Stop.
  ~DelayedReplies() { Stop(); }
  DelayedReplies(const DelayedReplies&) = delete;
  DelayedReplies& operator=(const DelayedReplies&) = delete;

  // Runs `reply` once, on another thread, `delay_ns` from now.
  void Add(int64_t delay_ns, std::function<void()> reply);
  // The same, not counted among those that are held.
  void AddFree(int64_t delay_ns, std::function<void()> reply);

  // Runs at once what is still there, and ends the threads. What is added later runs at once.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Clock::time_point due;
    uint64_t number;  // those that are due together stay in order
    std::function<void()> reply;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.due != b.due ? a.due > b.due : a.number > b.number;
    }
  };

  void AddEntry(int64_t delay_ns, std::function<void()> reply, bool held);
  void Release();
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Entry, std::vector<Entry>, Later> waiting_;
  std::vector<Entry> held_;
  size_t hold_;
  uint64_t added_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// What the slow file system has been asked for, per object, and where objects end by now.

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

#endif  // SLUICE_TESTS_FUSE_SLOW_FS_PARTS_H_
