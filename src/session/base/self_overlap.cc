// Two positions lie at one place if their difference, a nonzero vector of integers below the shape,
// moves nowhere: sum_d x_d * strides[d] == 0. The search goes from the largest stride to the
// smallest. It keeps to what smaller strides can still make up for, so strides that nest cost one
// step each. The last two dimensions are solved in closed form, and dimensions that cannot
// interleave are looked at apart.
#include "session/base/self_overlap.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

// A few milliseconds at most: views are checked whenever a run is started.
constexpr int64_t kStepsMax = int64_t{1} << 15;

struct SteppedAxis {
  int64_t stride = 0;
  int64_t most = 0;  // the largest difference of two positions
};

__extension__ typedef __int128 Wide;

Wide FloorOf(Wide a, Wide positive) {
  return a >= 0 ? a / positive : -((-a + positive - 1) / positive);
}
Wide CeilingOf(Wide a, Wide positive) { return -FloorOf(-a, positive); }

// The x in [0, modulus) with a * x == 1 modulo `modulus`, which has no factor in common with a.
int64_t InverseOf(int64_t a, int64_t modulus) {
  Wide r = modulus, next_r = a % modulus;
  Wide x = 0, next_x = 1;
  while (next_r != 0) {
    const Wide quotient = r / next_r;
    r = std::exchange(next_r, r - quotient * next_r);
    x = std::exchange(next_x, x - quotient * next_x);
  }
  return static_cast<int64_t>(x < 0 ? x + modulus : x);
}

// Axes by falling strides, all above 0.
class Search {
 public:
  explicit Search(absl::Span<const SteppedAxis> axes) : axes_(axes) {
    for (size_t i = axes.size(); i-- > 0;) {
      reach_[i] = reach_[i + 1] + axes[i].stride * axes[i].most;
      divisor_[i] = std::gcd(divisor_[i + 1], axes[i].stride);
    }
  }

  SelfOverlap Run() {
    if (Finds(0, 0, false)) return SelfOverlap::kYes;
    return steps_left_ < 0 ? SelfOverlap::kUnknown : SelfOverlap::kNo;
  }

 private:
  // True if axes [first, count) have differences that take `sum` back to 0. `moved`: one of the
  // axes before has a difference; if not, one of these must.
  bool Finds(size_t first, int64_t sum, bool moved) {
    if (moved && sum == 0) return true;
    if (std::max(sum, -sum) > reach_[first]) return false;
    if (first == axes_.size() || sum % divisor_[first] != 0) return false;
    if (axes_.size() - first == 1) return moved;
    if (--steps_left_ < 0) return false;
    if (axes_.size() - first == 2) return PairFinds(axes_[first], axes_[first + 1], sum, moved);
    const SteppedAxis& axis = axes_[first];
    const int64_t below = reach_[first + 1];
    const auto low = static_cast<int64_t>(
        std::max<Wide>(moved ? -axis.most : 0, CeilingOf(-Wide{sum} - below, axis.stride)));
    const auto high =
        static_cast<int64_t>(std::min<Wide>(axis.most, FloorOf(-Wide{sum} + below, axis.stride)));
    for (int64_t x = low; x <= high && steps_left_ >= 0; ++x) {
      if (Finds(first + 1, sum + x * axis.stride, moved || x != 0)) return true;
    }
    return false;
  }

  // a.stride * x + b.stride * y == -sum has the solutions x0 + k * b.stride / g, y0 - k * a.stride
  // / g for all integers k. Here g divides both strides, and `sum` too.
  static bool PairFinds(const SteppedAxis& a, const SteppedAxis& b, int64_t sum, bool moved) {
    const int64_t g = std::gcd(a.stride, b.stride);
    const int64_t step_x = b.stride / g, step_y = a.stride / g;
    const Wide target = -Wide{sum} / g;
    Wide x0 = 0;
    if (step_x > 1) {
      const Wide rest = (target % step_x + step_x) % step_x;
      x0 = rest * InverseOf(step_y, step_x) % step_x;
    }
    const Wide y0 = (target - step_y * x0) / step_x;
    const Wide low = std::max(CeilingOf(-a.most - x0, step_x), CeilingOf(y0 - b.most, step_y));
    const Wide high = std::min(FloorOf(a.most - x0, step_x), FloorOf(y0 + b.most, step_y));
    // Without a difference before, the solution with k == 0 is no difference at all, and the others
    // come in pairs.
    return moved ? low <= high : high >= 1;
  }

  const absl::Span<const SteppedAxis> axes_;
  // How far axes [i, count) reach together, and the divisor of all their strides.
  std::array<int64_t, kMaxTensorDims + 1> reach_{};
  std::array<int64_t, kMaxTensorDims + 1> divisor_{};
  int64_t steps_left_ = kStepsMax;
};

}  // namespace

SelfOverlap FindSelfOverlap(absl::Span<const int64_t> shape, absl::Span<const int64_t> strides) {
  absl::InlinedVector<SteppedAxis, kMaxTensorDims> axes;
  int64_t inner_reach = 0;  // of the axes that are not in a group yet
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] <= 1) continue;
    if (strides[d] == 0) return SelfOverlap::kYes;
    axes.push_back({strides[d], shape[d] - 1});
    inner_reach += strides[d] * (shape[d] - 1);
  }
  absl::c_sort(axes,
               [](const SteppedAxis& a, const SteppedAxis& b) { return a.stride > b.stride; });
  // Axes move by multiples of the divisor of all their strides. If the smaller axes cannot make up
  // for one such step, neither group can have a difference because of the other.
  SelfOverlap found = SelfOverlap::kNo;
  for (size_t begin = 0, end = 0; begin < axes.size(); begin = end) {
    int64_t divisor = 0;
    do {
      divisor = std::gcd(divisor, axes[end].stride);
      inner_reach -= axes[end].stride * axes[end].most;
      ++end;
    } while (inner_reach >= divisor);
    const auto group = absl::MakeConstSpan(axes).subspan(begin, end - begin);
    const SelfOverlap of_group = Search(group).Run();
    if (of_group == SelfOverlap::kYes) return of_group;
    if (of_group == SelfOverlap::kUnknown) found = of_group;
  }
  return found;
}

}  // namespace sluice
