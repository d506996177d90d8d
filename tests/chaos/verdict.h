// What one rank found out about its job, for scripts/chaos/chaos.py to judge.
#ifndef SLUICE_TESTS_CHAOS_VERDICT_H_
#define SLUICE_TESTS_CHAOS_VERDICT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace sluice::chaos {

struct Verdict {
  struct Error {
    std::string where;  // which operation
    absl::Status status;
  };
  std::vector<std::string> wrong;  // bytes that are not what they must be, the first ones
  std::vector<Error> errors;
  std::map<std::string, int64_t> counts;  // what was checked, and how runs ended

  static constexpr size_t kWrongMax = 8;
  void Wrong(std::string what) {
    ++counts["wrong"];
    if (wrong.size() < kWrongMax) wrong.push_back(std::move(what));
  }
  // False if `status` is an error, which is kept.
  bool Take(const absl::Status& status, std::string where) {
    if (!status.ok()) errors.push_back({std::move(where), status});
    return status.ok();
  }
};

}  // namespace sluice::chaos

#endif  // SLUICE_TESTS_CHAOS_VERDICT_H_
