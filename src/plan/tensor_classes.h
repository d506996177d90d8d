// Classes of a transfer's tensors that are planned alike.
#ifndef SLUICE_SRC_PLAN_TENSOR_CLASSES_H_
#define SLUICE_SRC_PLAN_TENSOR_CLASSES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sluice/transfer.h"

namespace sluice {

// Numbers tensors as they come. Equal on all ranks: numbers follow from content alone.
class TensorClasses {
 public:
  struct Numbers {
    int tensor_class;  // equal shapes, element sizes and layouts
    int layout_pair;   // equal layouts, slices aside; 0 where neither reductions nor target
                       // replicas can make parties of more than two ranks
  };
  Numbers Of(const TensorTransfer& tensor);

  // Text that is equal for equal layouts, slices aside; and that of their slices.
  void AppendLayout(const Layout& layout, std::string* key);
  static void AppendSlice(const Layout& layout, std::string* key);

 private:
  using Index = absl::flat_hash_map<std::string, int>;

  int NumberOf(const Mesh& mesh);
  int NumberOf(const BoxList& boxes);

  absl::flat_hash_map<const void*, int> by_identity_;
  std::vector<Mesh> meshes_;  // keep identities from being used again
  std::vector<BoxList> lists_;
  Index by_content_;
  Index by_layouts_;
  Index by_party_layouts_;
  Index by_key_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_TENSOR_CLASSES_H_
