// Converts the C API's views, layouts and options into those of C++.
#ifndef SLUICE_SRC_C_CONVERT_H_
#define SLUICE_SRC_C_CONVERT_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "c/call.h"
#include "sluice/layout.h"
#include "sluice/session.h"
#include "sluice/sluice.h"
#include "sluice/tensor.h"
#include "tensor/error_text.h"

namespace sluice::c {

// None: of no dtype.
absl::optional<DType> FindDType(int32_t dtype);
// InvalidArgument names what has no dtype.
absl::StatusOr<DType> ToDType(absl::string_view name, int32_t dtype);
int32_t FromDType(DType dtype);

// A shape of 1 to kMaxTensorDims dimensions. A scalar, which has none, has {1}: views, layouts and
// transfers take it for a tensor of one element. InvalidArgument otherwise.
absl::StatusOr<std::vector<int64_t>> ToShape(absl::string_view name, int32_t ndim,
                                             const int64_t* shape);

absl::StatusOr<TensorView> ToView(absl::string_view name, const sluice_view& view);
// A rank's memory of one tensor. One view counts as either while it is unknown whether the rank has
// boxes.
absl::StatusOr<TensorView> ToMemory(absl::string_view name, const sluice_views& memory);

// Reads layouts. Tensors that point to one layout, or layouts that point to one mesh, share it
// afterwards: planning takes tensors with one mesh together. For one call of the caller's.
class LayoutReader {
 public:
  // `ndim`: of the tensor. InvalidArgument: the layout makes no sense by itself.
  absl::StatusOr<Layout> Read(absl::string_view name, const sluice_layout* layout, int32_t ndim);

 private:
  absl::StatusOr<Layout> Convert(absl::string_view name, const sluice_layout& layout, int32_t ndim);
  absl::StatusOr<Mesh> ReadMesh(absl::string_view name, const sluice_layout& layout);

  std::map<std::pair<const sluice_layout*, int32_t>, Layout> layouts_;
  std::map<std::tuple<const int64_t*, const int32_t*, int32_t>, Mesh> meshes_;
};

// Reads the fields that sluice_half and sluice_checkpoint_tensor have in common.
template <typename Given>
absl::Status SetPart(absl::string_view name, const Given& given, LayoutReader* layouts,
                     TensorPart* part) {
  if (given.name == nullptr) return IsNull(absl::StrCat(name, ".name"));
  part->name = given.name;
  SLUICE_ASSIGN_OR_RETURN(part->shape, ToShape(name, given.ndim, given.shape));
  SLUICE_ASSIGN_OR_RETURN(part->dtype, ToDType(absl::StrCat(name, ".dtype"), given.dtype));
  SLUICE_ASSIGN_OR_RETURN(part->layout,
                          layouts->Read(absl::StrCat(name, ".layout"), given.layout, given.ndim));
  SLUICE_ASSIGN_OR_RETURN(part->view, ToMemory(absl::StrCat(name, ".memory"), given.memory));
  return absl::OkStatus();
}

// Null: the defaults.
absl::StatusOr<SessionOptions> ToSessionOptions(const sluice_session_options* given);
// Options that no session has, with the times of `given` where they can be read. Given to
// Session::Create by a rank whose own make no sense, so that the others hear of it.
SessionOptions BadSessionOptions(const sluice_session_options* given);

}  // namespace sluice::c

#endif  // SLUICE_SRC_C_CONVERT_H_
