// The one log of fakes that stand at the session's seams: what they were told, and what is open.
//
// Each fake writes its operations as lines of text. An operation ends only when a test says so.
#ifndef SLUICE_TESTS_FAKES_OPERATIONS_LOG_H_
#define SLUICE_TESTS_FAKES_OPERATIONS_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice {

// Thread: one.
class OperationsLog {
 public:
  void Write(absl::string_view line) { lines_.emplace_back(line); }
  // The lines since the last call.
  std::vector<std::string> Take();

  // "send 3": the third operation that is called so.
  std::string Number(absl::string_view word);

  // Memory that lines tell by name. With `unit`, it is equal parts, which have numbers from 0 on.
  // What is named last holds, where memory is named twice.
  void Name(const std::byte* data, size_t bytes, absl::string_view name, size_t unit = 0);
  // "slot 1[0,64)".
  std::string Place(const std::byte* data, size_t bytes) const;
  // The same of rows, `stride_bytes` apart, if `row_bytes` is not 0.
  std::string Place(const std::byte* data, size_t bytes, size_t row_bytes,
                    size_t stride_bytes) const;

 private:
  struct Area {
    const std::byte* data = nullptr;
    size_t bytes = 0;
    std::string name;
    size_t unit = 0;
  };
  std::vector<std::string> lines_;
  std::map<std::string, int> numbers_;
  std::vector<Area> areas_;
};

// An operation of a fake.
struct LoggedOperation {
  std::string name;
  uint64_t cookie = 0;
  absl::Status status;  // of one that has ended
};

// The operations of one fake that have begun and were not told of as ended.
class LoggedOperations {
 public:
  void Begin(const LoggedOperation& operation) { open_.push_back(operation); }
  // Ends the operation of this name. False: none of this name is open.
  bool End(absl::string_view name, const absl::Status& status);
  void EndAll();
  // Drops all.
  void Forget();
  // The next one that has ended, in the order of the ends; false: there is none.
  bool Take(LoggedOperation* ended);

  int outstanding() const { return static_cast<int>(open_.size() + ended_.size()); }
  // Open ones.
  const std::deque<LoggedOperation>& open() const { return open_; }

 private:
  std::deque<LoggedOperation> open_;
  std::deque<LoggedOperation> ended_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_OPERATIONS_LOG_H_
