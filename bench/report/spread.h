// Medians and quartiles of what was repeated.
#ifndef SLUICE_BENCH_REPORT_SPREAD_H_
#define SLUICE_BENCH_REPORT_SPREAD_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace sluice::bench {

// The value that a share of the others does not exceed; 0 of none.
inline double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}

// Of an even number the mean of the two in the middle; 0 of none.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Another way's times over ours, round by round: the median of these ratios and their quartiles. 0
// where we took none.
struct TimeRatio {
  double median = 0;
  double p25 = 0;
  double p75 = 0;
};
inline TimeRatio RatioOf(const std::vector<double>& theirs, const std::vector<double>& ours) {
  const auto over = [](double their, double our) { return our > 0 ? their / our : 0; };
  std::vector<double> ratios;
  ratios.reserve(theirs.size());
  for (size_t i = 0; i < theirs.size(); ++i) ratios.push_back(over(theirs[i], ours[i]));
  return {Median(ratios), Quantile(ratios, 0.25), Quantile(ratios, 0.75)};
}

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_REPORT_SPREAD_H_
