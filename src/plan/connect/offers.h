// The tensors of all halves by name: what is said of each, and by which ranks.
#ifndef SLUICE_SRC_PLAN_CONNECT_OFFERS_H_
#define SLUICE_SRC_PLAN_CONNECT_OFFERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "plan/connect/match.h"
#include "plan/connect/merged_layouts.h"
#include "tensor/error_text.h"

namespace sluice {

// Kinds and layouts of several halves, each numbered once. Kinds that differ only in boxes are one:
// each rank has boxes of its own.
class JoinedKinds {
 public:
  // `halves` must outlive this object.
  explicit JoinedKinds(absl::Span<const RankedHalf> halves);

  int NumberOf(size_t half, int kind) const {
    return numbers_[half][static_cast<size_t>(kind)].kind;
  }
  const TensorKind& kind(int number) const { return *kinds_[static_cast<size_t>(number)].kind; }
  bool has_boxes(int number) const { return kinds_[static_cast<size_t>(number)].layout == nullptr; }
  // The kind has no boxes.
  const Layout& layout(int number) const { return *kinds_[static_cast<size_t>(number)].layout; }

  // Numbers the layout of a half's kind, with or without boxes. Equal for equal layouts.
  int LayoutNumberOf(size_t half, int kind) const {
    return numbers_[half][static_cast<size_t>(kind)].layout;
  }
  const Layout& layout_at(int layout_number) const {
    return *layouts_[static_cast<size_t>(layout_number)];
  }

 private:
  struct Known {
    const TensorKind* kind;
    const Layout* layout;  // null: boxes
  };
  struct Numbers {
    int kind;
    int layout;
  };
  std::vector<Known> kinds_;
  std::vector<const Layout*> layouts_;
  std::vector<std::vector<Numbers>> numbers_;  // by half and its kind
};

// One tensor as the ranks that give it describe it.
struct Offer {
  absl::string_view name;
  int kind = 0;  // of JoinedKinds
  absl::optional<int> window = absl::nullopt;
  std::vector<size_t> halves = {};  // that give it so
  std::vector<int> layouts = {};    // by half: of JoinedKinds, in which boxes may differ
  absl::optional<Layout> merged = absl::nullopt;  // once merged: of all its ranks
};

// The sources of all halves, or the targets. Targets of one name on meshes that have no rank in
// common are several offers: two engines may each take their own copy.
class Offers {
 public:
  Offers(absl::Span<const RankedHalf> halves, const JoinedKinds* kinds, bool are_targets);

  // In the order in which they were first named.
  absl::Span<const Offer> all() const { return offers_; }
  // The offers of a name: indices into all().
  absl::Span<const size_t> Find(absl::string_view name) const;

  // FailedPrecondition: ranks describe one tensor in several ways. Sources of one name have one
  // mesh, or copies on several ones. Either all ranks of a name have boxes, or none.
  absl::Status CheckAgreed() const;
  // InvalidArgument: a mesh's ranks and those that give the tensor are not the same.
  absl::Status CheckComplete() const;
  // Sets `merged` of all offers. Offers that CheckAgreed has found to be of one tensor become one.
  // ResourceExhausted: there are too many boxes.
  absl::Status Merge(MergedLayouts* merged);

  std::vector<int> RanksOf(const Offer& offer) const;
  // "'w' of ranks 0-3"
  ErrorText InWords(const Offer& offer) const;

 private:
  void Add(size_t half, const HalfTensor& tensor);
  // Two of the offers of one name that cannot both hold.
  absl::optional<std::pair<size_t, size_t>> FindConflict(const std::vector<size_t>& alike) const;
  absl::optional<std::pair<size_t, size_t>> FindSharedRank(const std::vector<size_t>& alike) const;
  bool AreCopies(const Offer& a, const Offer& b) const;
  absl::StatusOr<Layout> MergeBoxes(const Offer& offer, MergedLayouts* merged) const;
  ErrorText Difference(const Offer& a, const Offer& b) const;
  std::string LayoutText(const Offer& offer) const;
  // Empty: all is well.
  ErrorText Incompleteness(const Offer& offer) const;
  absl::string_view side() const { return are_targets_ ? "target" : "source"; }

  const absl::Span<const RankedHalf> halves_;
  const JoinedKinds* const kinds_;
  const bool are_targets_;
  std::vector<Offer> offers_;
  // By name, kind and window (-1: none). A name may have as many offers as there are ranks.
  absl::flat_hash_map<std::tuple<absl::string_view, int, int>, size_t> known_;
  absl::flat_hash_map<absl::string_view, std::vector<size_t>> by_name_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CONNECT_OFFERS_H_
