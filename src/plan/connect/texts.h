// Names, ranks and layouts in messages, however many and long they are.
#ifndef SLUICE_SRC_PLAN_CONNECT_TEXTS_H_
#define SLUICE_SRC_PLAN_CONNECT_TEXTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "sluice/layout.h"
#include "tensor/error_text.h"

namespace sluice {

// For NamedRanks: of many ranks the later ones are only counted.
inline constexpr RunStyle kFewRuns = {.most_runs = 6};

// "[4,8]"
std::string ShapeInWords(absl::Span<const int64_t> shape);

// "R,S(0) on mesh [2,2] of ranks 0-3"; "boxes"
std::string LayoutInWords(const Layout& layout);

// Many faults of one kind: the first few in words, the others counted.
class FaultList {
 public:
  void Add(ErrorText fault);
  // Only the first few faults need words. True: this one does.
  bool wants_words() const { return faults_.size() < kShown; }
  void Count() { ++others_; }
  bool empty() const { return faults_.empty() && others_ == 0; }
  // "a; b; and 3 more"
  ErrorText Text(absl::string_view between = "; ") const;

 private:
  static constexpr size_t kShown = 4;
  std::vector<ErrorText> faults_;
  int64_t others_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CONNECT_TEXTS_H_
