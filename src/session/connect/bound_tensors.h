// This rank's memory for a connection's transfer, from one run to the next.
#ifndef SLUICE_SRC_SESSION_CONNECT_BOUND_TENSORS_H_
#define SLUICE_SRC_SESSION_CONNECT_BOUND_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "plan/connect/match.h"
#include "session/base/memory_rules.h"
#include "session/base/views.h"
#include "session/connect/tensor_needs.h"
#include "sluice/connect.h"

namespace sluice {

class BoundTensors {
 public:
  // Binds the views of `own` to the tensors of `match`, in which they are found. InvalidArgument:
  // memory is used twice, as Session::Start forbids.
  absl::Status Bind(const Match& match, const ConnectSpec& own, int rank, const MemoryRules& rules);

  // As Connection::Rebind.
  absl::Status Rebind(absl::Span<const Connection::NamedView> sources,
                      absl::Span<const Connection::NamedView> targets, const MemoryRules& rules);

  // A number of these very views, which no others in the process have or had; not 0.
  int64_t binding() const { return binding_; }

  // One per tensor of the transfer; any view where the rank has no element.
  absl::Span<const TensorView> src() const { return src_.views; }
  absl::Span<const TensorView> dst() const { return dst_.views; }

 private:
  struct Side {
    std::vector<TensorView> views;
    std::vector<std::shared_ptr<const TensorNeeds>> needs;  // shared by those of one kind
    // The tensors that a name of this rank is bound to: several have one source, and a source that
    // nobody asks for has none.
    absl::flat_hash_map<std::string, std::vector<size_t>> tensors;
  };
  static absl::Status Replace(absl::Span<const Connection::NamedView> views, const char* side_name,
                              const Side& side, std::vector<TensorView>* replaced);
  // All views as they are to be.
  absl::Status Check(const std::vector<TensorView>& src, const std::vector<TensorView>& dst,
                     const MemoryRules& rules) const;
  absl::Status BindSide(const Side& side, const std::vector<TensorView>& views, bool are_targets,
                        const MemoryRules& rules, std::vector<std::vector<BoundView>>* bound) const;

  Side src_;
  Side dst_;
  int64_t binding_ = 0;
  std::vector<std::string> names_;  // one per tensor
  bool may_lack_data_ = false;      // destinations
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CONNECT_BOUND_TENSORS_H_
