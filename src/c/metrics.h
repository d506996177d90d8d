// Lists statistics as metrics, by the names that Describe gives their fields.
#ifndef SLUICE_SRC_C_METRICS_H_
#define SLUICE_SRC_C_METRICS_H_

#include <concepts>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "c/structs.h"
#include "session/base/describe.h"

namespace sluice::c {

// A visitor of Describe. Hashes, which fit no double, are left out.
class MetricList {
 public:
  explicit MetricList(Metrics first) : metrics_(std::move(first)) {}

  template <typename T>
  void Field(const char* path, const T& value, const FieldRule& /*rule*/ = {}) {
    if constexpr (std::same_as<T, absl::Duration>) {
      metrics_.push_back({path, absl::ToDoubleSeconds(value)});
    } else if constexpr (!std::same_as<T, uint64_t>) {
      metrics_.push_back({path, static_cast<double>(value)});
    }
  }
  Metrics Take() { return std::move(metrics_); }

 private:
  Metrics metrics_;
};

template <typename Stats>
Metrics MetricsOf(const Stats& stats, Metrics first = {}) {
  MetricList list(std::move(first));
  Describe(list, stats);
  return list.Take();
}

}  // namespace sluice::c

#endif  // SLUICE_SRC_C_METRICS_H_
