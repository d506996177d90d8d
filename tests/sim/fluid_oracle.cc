// From one change to the next: count, divide, find the first end.
#include "sim/fluid_oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace sluice::sim {

std::vector<double> EndsByDefinition(const std::vector<OracleFlow>& flows, double rate) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> left, ends(flows.size(), kNever);
  for (const OracleFlow& flow : flows) left.push_back(flow.bytes);
  double now = 0;
  while (std::count(ends.begin(), ends.end(), kNever) > 0) {
    std::map<int, int> out, in;
    const auto flows_now = [&](size_t i) { return flows[i].begin_s <= now && ends[i] == kNever; };
    for (size_t i = 0; i < flows.size(); ++i) {
      if (!flows_now(i)) continue;
      ++out[flows[i].src];
      ++in[flows[i].dst];
    }
    const auto rate_of = [&](size_t i) {
      return std::min(rate / out[flows[i].src], rate / in[flows[i].dst]);
    };
    double next = kNever;
    for (size_t i = 0; i < flows.size(); ++i) {
      if (flows_now(i)) next = std::min(next, now + left[i] / rate_of(i));
      if (flows[i].begin_s > now) next = std::min(next, flows[i].begin_s);
    }
    std::vector<size_t> over;
    for (size_t i = 0; i < flows.size(); ++i) {
      if (!flows_now(i)) continue;
      left[i] -= rate_of(i) * (next - now);
      if (left[i] <= 1e-6 * flows[i].bytes) over.push_back(i);
    }
    now = next;
    for (const size_t i : over) ends[i] = now;
  }
  return ends;
}

}  // namespace sluice::sim
