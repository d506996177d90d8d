// A command's flags as data: CLI11 reads them, results show them, and ranks compare them.
#ifndef SLUICE_BENCH_JOB_FLAG_LIST_H_
#define SLUICE_BENCH_JOB_FLAG_LIST_H_

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "session/base/describe.h"

namespace CLI {
class App;
}

namespace sluice::bench {

// The value that a flag sets. Of optional numbers 0 and "auto" are none; a bool is a switch. Lists
// of numbers, and of texts with choices, are separated by commas, and have no entry twice.
using FlagValue = std::variant<std::string*, std::vector<std::string>*, bool*, int*, int64_t*,
                               std::vector<int64_t>*, uint64_t*, absl::optional<int64_t>*, double*,
                               absl::Duration*>;

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

struct FlagMore {
  double min = -kUnbounded;  // of a number
  double max = kUnbounded;
  std::vector<std::string> choices = {};  // of a text
  bool is_bytes = false;                  // a size, as 64M
  bool may_be_auto = false;               // of a list of numbers: "auto" is 0
  bool is_private = false;                // neither in results nor compared
  bool is_required = false;
};
inline FlagMore Within(double min, double max) { return {.min = min, .max = max}; }
inline FlagMore OneOf(std::vector<std::string> choices) { return {.choices = std::move(choices)}; }
inline FlagMore Required() { return {.is_required = true}; }
inline FlagMore Bytes() { return {.is_bytes = true}; }
inline FlagMore Private(FlagMore more = {}) {
  more.is_private = true;
  return more;
}

struct Flag {
  const char* names;  // "-n,--iters"
  FlagValue value;
  const char* help;
  FlagMore more = {};

  // Without dashes in front: "iters".
  std::string Name() const;
};

struct FlagGroup {
  const char* title;
  std::vector<Flag> flags;
};
using FlagGroups = std::vector<FlagGroup>;

// Gives numbers of public options the ranges that Describe knows.
template <typename Options>
class FlagRanges {
 public:
  FlagRanges(Options* options, FlagGroups* groups) : groups_(*groups) { Describe(*this, *options); }

  template <typename T>
  void Field(absl::string_view path, T& value, const FieldRule& rule) {
    bool found = false;
    if constexpr (std::is_constructible_v<FlagValue, T*>) {
      for (FlagGroup& group : groups_) {
        for (Flag& flag : group.flags) {
          if (flag.value != FlagValue(&value)) continue;
          found = true;
          if (rule.min >= 0) flag.more.min = static_cast<double>(rule.min);
          if (rule.max < std::numeric_limits<int64_t>::max()) {
            flag.more.max = static_cast<double>(rule.max);
          }
        }
      }
    }
    if (!found) without_flag_.emplace_back(path);
  }
  // Paths of fields that no flag sets by itself.
  const std::vector<std::string>& without_flag() const { return without_flag_; }

 private:
  FlagGroups& groups_;
  std::vector<std::string> without_flag_;
};

// `app` sets the values, which must live as long as `app` is used.
void AddFlags(CLI::App* app, const FlagGroups& groups);

// Values by the flags' names, with `_` for `-`.
using FlagConfig = std::vector<std::pair<std::string, nlohmann::ordered_json>>;
FlagConfig ConfigOf(const FlagGroups& groups);
// The same as numbers, to be compared across ranks: texts as hashes, fractions in 10^-6.
std::vector<std::pair<std::string, int64_t>> KnobsOf(const FlagConfig& config);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_FLAG_LIST_H_
