// Reads what the caller points to, no more of it than what it says is there.
#include "c/convert.h"

#include "absl/strings/str_cat.h"
#include "c/structs.h"
#include "tensor/error_text.h"

namespace sluice::c {
namespace {

// C's dtypes count from 1, so that zero is none.
constexpr int32_t Number(DType dtype) { return static_cast<int32_t>(dtype) + 1; }
static_assert(SLUICE_F64 == Number(DType::kF64) && SLUICE_F32 == Number(DType::kF32));
static_assert(SLUICE_F16 == Number(DType::kF16) && SLUICE_BF16 == Number(DType::kBF16));
static_assert(SLUICE_F8E4M3 == Number(DType::kF8E4M3) && SLUICE_I64 == Number(DType::kI64));
static_assert(SLUICE_F8E5M2 == Number(DType::kF8E5M2) && SLUICE_I32 == Number(DType::kI32));
static_assert(SLUICE_I8 == Number(DType::kI8) && SLUICE_U8 == Number(DType::kU8));
static_assert(SLUICE_I16 == Number(DType::kI16) && SLUICE_U16 == Number(DType::kU16));
static_assert(SLUICE_U32 == Number(DType::kU32) && SLUICE_U64 == Number(DType::kU64));
static_assert(SLUICE_BOOL == Number(DType::kBool) && SLUICE_F8E8M0 == Number(DType::kF8E8M0));
static_assert(SLUICE_F4E2M1X2 == Number(DType::kF4E2M1x2) && SLUICE_I4X2 == Number(DType::kI4x2));
static_assert(SLUICE_F8E4M3FNUZ == Number(DType::kF8E4M3Fnuz));
static_assert(SLUICE_F8E5M2FNUZ == Number(DType::kF8E5M2Fnuz));
static_assert(SLUICE_C64 == Number(DType::kC64) && SLUICE_C128 == Number(DType::kC128));

static_assert(SLUICE_NDIM_MAX == kMaxTensorDims);
static_assert(SLUICE_WINDOW_MAX == kMaxWindow && SLUICE_PRIORITY_MAX == kPriorityClasses - 1);

// Beyond this a mesh is garbled.
constexpr int64_t kMeshRanksMax = int64_t{1} << 24;

std::vector<int64_t> Numbers(const int64_t* first, int32_t count) { return {first, first + count}; }

absl::StatusOr<Box> ToBox(absl::string_view name, const sluice_box& box, int32_t ndim) {
  if (box.ndim != ndim) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", box.ndim, " dimensions, but its tensor has ", ndim));
  }
  if (ndim == 0) return Box{{0}, {1}};
  if (box.offset == nullptr || box.shape == nullptr) {
    return IsNull(absl::StrCat(name, box.offset == nullptr ? ".offset" : ".shape"));
  }
  return Box{Numbers(box.offset, ndim), Numbers(box.shape, ndim)};
}

absl::StatusOr<BoxList> ToBoxList(absl::string_view name, const sluice_layout& layout,
                                  int32_t ndim) {
  SLUICE_ASSIGN_OR_RETURN(const absl::Span<const sluice_box> given,
                          ReadFixed(absl::StrCat(name, ".boxes"), layout.boxes, layout.num_boxes));
  std::map<int, RankBoxes> by_rank;
  for (size_t i = 0; i < given.size(); ++i) {
    const sluice_box& each = given[i];
    SLUICE_ASSIGN_OR_RETURN(Box box, ToBox(absl::StrCat(name, ".boxes[", i, "]"), each, ndim));
    RankBoxes& of_rank = by_rank[each.rank];
    of_rank.rank = each.rank;
    of_rank.boxes.push_back(std::move(box));
  }
  std::vector<RankBoxes> all;
  all.reserve(by_rank.size());
  for (auto& [rank, boxes] : by_rank) all.push_back(std::move(boxes));
  return Annotate(BoxList::Create(std::move(all)), name);
}

}  // namespace

absl::optional<DType> FindDType(int32_t dtype) {
  if (dtype < SLUICE_F64 || dtype > SLUICE_C128) return absl::nullopt;
  return static_cast<DType>(dtype - 1);
}

absl::StatusOr<DType> ToDType(absl::string_view name, int32_t dtype) {
  if (const absl::optional<DType> found = FindDType(dtype); found) return *found;
  return absl::InvalidArgumentError(dtype == SLUICE_NO_DTYPE
                                        ? absl::StrCat(name, " is not set")
                                        : absl::StrCat(name, " is ", dtype, ", which is no dtype"));
}

int32_t FromDType(DType dtype) { return Number(dtype); }

absl::StatusOr<std::vector<int64_t>> ToShape(absl::string_view name, int32_t ndim,
                                             const int64_t* shape) {
  if (ndim < 0 || ndim > kMaxTensorDims) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", ndim, " dimensions, not 0 .. ", kMaxTensorDims));
  }
  if (ndim == 0) return std::vector<int64_t>{1};
  if (shape == nullptr) return IsNull(absl::StrCat(name, ".shape"));
  return Numbers(shape, ndim);
}

absl::StatusOr<TensorView> ToView(absl::string_view name, const sluice_view& view) {
  SLUICE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ToShape(name, view.ndim, view.shape));
  SLUICE_ASSIGN_OR_RETURN(const DType dtype, ToDType(absl::StrCat(name, ".dtype"), view.dtype));
  TensorView result;
  result.data = view.data;
  result.byte_offset = view.byte_offset;
  result.shape = std::move(shape);
  if (view.strides != nullptr) result.strides = Numbers(view.strides, view.ndim);
  result.dtype = dtype;
  if (view.device != 0) result.device = static_cast<DeviceKind>(view.device);
  result.device_ordinal = view.ordinal;
  return result;
}

absl::StatusOr<TensorView> ToMemory(absl::string_view name, const sluice_views& memory) {
  SLUICE_ASSIGN_OR_RETURN(const absl::Span<const sluice_view> views,
                          ReadFixed(absl::StrCat(name, ".views"), memory.views, memory.count));
  TensorView result;
  for (size_t i = 0; i < views.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(TensorView view,
                            ToView(absl::StrCat(name, ".views[", i, "]"), views[i]));
    if (views.size() == 1) result = view;
    result.boxes.push_back(std::move(view));
  }
  return result;
}

absl::StatusOr<Layout> LayoutReader::Read(absl::string_view name, const sluice_layout* layout,
                                          int32_t ndim) {
  const auto known = layouts_.find({layout, ndim});
  if (known != layouts_.end()) return known->second;
  sluice_layout read;
  SLUICE_RETURN_IF_ERROR(ReadStruct(name, layout, &read));
  absl::StatusOr<Layout> result = Convert(name, read, ndim);
  if (result.ok()) layouts_.emplace(std::pair(layout, ndim), *result);
  return result;
}

absl::StatusOr<Layout> LayoutReader::Convert(absl::string_view name, const sluice_layout& layout,
                                             int32_t ndim) {
  Layout result;
  if (layout.num_boxes != 0 || layout.boxes != nullptr) {
    if (layout.mesh != nullptr || layout.placements != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(name, " has both a mesh and boxes"));
    }
    if (layout.ranks != nullptr || layout.order != nullptr || layout.whole != nullptr ||
        layout.offset != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " has boxes, and also ranks, an order or a slice of a mesh"));
    }
    SLUICE_ASSIGN_OR_RETURN(result.boxes, ToBoxList(name, layout, ndim));
    return result;
  }
  SLUICE_ASSIGN_OR_RETURN(result.mesh, ReadMesh(name, layout));
  if (layout.placements == nullptr) return IsNull(absl::StrCat(name, ".placements"));
  SLUICE_ASSIGN_OR_RETURN(result.placements, Annotate(ParsePlacements(layout.placements), name));
  if (layout.order != nullptr) result.order = {layout.order, layout.order + layout.mesh_ndim};
  if ((layout.whole == nullptr) != (layout.offset == nullptr)) {
    return IsNull(absl::StrCat(name, layout.whole == nullptr ? ".whole" : ".offset"));
  }
  if (layout.whole != nullptr) {
    result.whole = Numbers(layout.whole, ndim);
    result.offset = Numbers(layout.offset, ndim);
  }
  return result;
}

absl::StatusOr<Mesh> LayoutReader::ReadMesh(absl::string_view name, const sluice_layout& layout) {
  const auto key = std::tuple(layout.mesh, layout.ranks, layout.mesh_ndim);
  if (const auto known = meshes_.find(key); known != meshes_.end()) return known->second;
  if (layout.mesh == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has neither a mesh nor boxes"));
  }
  if (layout.mesh_ndim < 1 || layout.mesh_ndim > 64) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".mesh_ndim is ", layout.mesh_ndim, ", not 1 .. 64"));
  }
  std::vector<int64_t> sizes = Numbers(layout.mesh, layout.mesh_ndim);
  int64_t count = 1;
  for (const int64_t size : sizes) {
    if (size < 1 || size > kMeshRanksMax / count) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ".mesh has a size of ", size, ", or too many ranks"));
    }
    count *= size;
  }
  std::vector<int> ranks(static_cast<size_t>(count));
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i] = layout.ranks == nullptr ? static_cast<int>(i) : layout.ranks[i];
  }
  SLUICE_ASSIGN_OR_RETURN(Mesh mesh,
                          Annotate(Mesh::Create(std::move(sizes), std::move(ranks)), name));
  meshes_.emplace(key, mesh);
  return mesh;
}

absl::StatusOr<SessionOptions> ToSessionOptions(const sluice_session_options* given) {
  sluice_session_options read;
  SLUICE_RETURN_IF_ERROR(ReadOptions("sluice_session_options", given, &read));
  SessionOptions options;
  const auto limit = [](int64_t value) { return value < 0 ? kNoLimit : value; };
  if (read.bucket_bytes != 0) options.bucket_bytes = read.bucket_bytes;
  if (read.budget_buckets != 0) options.budget_buckets = limit(read.budget_buckets);
  if (read.budget_bytes != 0) options.budget_bytes = limit(read.budget_bytes);
  if (read.max_in_flight != 0) options.max_in_flight = read.max_in_flight;
  options.trace_events = read.trace_events;
  options.coalesce = read.no_coalesce == 0;
  options.progress_thread = read.progress_thread != 0;
  options.direct = read.no_direct == 0;
  absl::Status status = ReadTime("timeout_s", read.timeout_s, &options.timeout);
  status.Update(ReadTime("patience_s", read.patience_s, &options.patience));
  if (!status.ok()) return status;
  return options;
}

SessionOptions BadSessionOptions(const sluice_session_options* given) {
  SessionOptions options;
  options.bucket_bytes = -1;
  sluice_session_options read;
  // An error leaves what could be read.
  absl::Status times = ReadOptions("sluice_session_options", given, &read);
  if (absl::IsUnimplemented(times)) times = absl::OkStatus();
  static_cast<void>(ReadTime("timeout_s", read.timeout_s, &options.timeout));
  times.Update(ReadTime("patience_s", read.patience_s, &options.patience));
  // A caller whose time limit cannot be read still gets one.
  if (!times.ok()) options.patience = options.timeout;
  return options;
}

}  // namespace sluice::c

int64_t sluice_dtype_bytes(int32_t dtype) {
  const absl::optional<sluice::DType> known = sluice::c::FindDType(dtype);
  return known ? sluice::DTypeBytes(*known) : 0;
}

const char* sluice_dtype_name(int32_t dtype) {
  const absl::optional<sluice::DType> known = sluice::c::FindDType(dtype);
  return known ? sluice::DTypeName(*known).data() : nullptr;  // of literals
}

sluice_status sluice_dtype_parse(const char* name, int32_t* dtype) {
  return sluice::c::Guard("sluice_dtype_parse", [&]() -> absl::Status {
    if (dtype == nullptr) return sluice::c::IsNull("dtype");
    *dtype = SLUICE_NO_DTYPE;
    if (name == nullptr) return sluice::c::IsNull("name");
    SLUICE_ASSIGN_OR_RETURN(const sluice::DType parsed, sluice::ParseDType(name));
    *dtype = sluice::c::FromDType(parsed);
    return absl::OkStatus();
  });
}

sluice_status sluice_local_shape(const sluice_layout* layout, int32_t ndim, const int64_t* shape,
                                 int32_t rank, int64_t* local_shape) {
  return sluice::c::Guard("sluice_local_shape", [&]() -> absl::Status {
    if (local_shape == nullptr) return sluice::c::IsNull("local_shape");
    SLUICE_ASSIGN_OR_RETURN(const auto whole, sluice::c::ToShape("the tensor", ndim, shape));
    SLUICE_ASSIGN_OR_RETURN(const auto read,
                            sluice::c::LayoutReader().Read("layout", layout, ndim));
    SLUICE_ASSIGN_OR_RETURN(const auto local, sluice::LocalShape(read, whole, rank));
    std::copy_n(local.begin(), ndim, local_shape);
    return absl::OkStatus();
  });
}
