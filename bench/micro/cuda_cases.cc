// Batches of all kinds, from packed rows to normalised bytes.
#include "micro/cuda_cases.h"

#include <algorithm>
#include <array>

#include "tensor/stretch.h"

namespace sluice {
namespace {

// Starts a copy of the product of `runs`, a list for each dimension.
decltype(Case::start) Copies(const std::vector<std::vector<Stretch>>& runs, StridedCopy copy) {
  return [runs, copy](Device& device, const Sides& sides, bool in_stream_order) {
    StridedCopy placed = copy;
    placed.dims = static_cast<int>(runs.size());
    placed.end = 1;
    for (size_t d = 0; d < runs.size(); ++d) {
      placed.runs[d] = runs[d];
      int64_t length = 0;
      for (const Stretch& run : runs[d]) length += run.length;
      placed.end *= length;
    }
    placed.src = sides.src, placed.src_kind = sides.src_kind;
    placed.dst = sides.dst, placed.dst_kind = sides.dst_kind;
    const std::array<StridedCopy, 1> copies = {placed};
    return device.Start({copies, 1, {}, {}, in_stream_order});
  };
}

// Rows of `row` bytes, every second one of a matrix, packed one behind the other; or back.
Case RowsCase(bool packs, int64_t row, int64_t bytes, DeviceKind src_kind = DeviceKind::kCuda) {
  const int64_t rows = bytes / row;
  Case made;
  made.name = std::string(src_kind == DeviceKind::kCuda ? "" : "pinned_") +
              (packs ? "pack_rows_" : "unpack_rows_") + std::to_string(row);
  made.src_bytes = packs ? 2 * bytes : bytes;
  made.dst_bytes = packs ? bytes : 2 * bytes;
  made.read = made.written = rows * row;
  made.src_kind = src_kind;
  StridedCopy copy;
  copy.src_strides = {packs ? 2 * row : row, 2};
  copy.dst_strides = {packs ? row : 2 * row, 2};
  copy.src_dtype = copy.dst_dtype = DType::kBF16;
  made.start = Copies({{{0, 0, rows}}, {{0, 0, row / 2}}}, copy);
  return made;
}

Case ContiguousCase(const std::string& name, DType from, DType to, int64_t elements,
                    DeviceKind src_kind = DeviceKind::kCuda) {
  Case made;
  made.name = name;
  made.src_bytes = made.read = elements * DTypeBytes(from);
  made.dst_bytes = made.written = elements * DTypeBytes(to);
  made.src_kind = src_kind;
  StridedCopy copy;
  copy.src_strides[0] = DTypeBytes(from);
  copy.dst_strides[0] = DTypeBytes(to);
  copy.src_dtype = from;
  copy.dst_dtype = to;
  made.start = Copies({{{0, 0, elements}}}, copy);
  return made;
}

// A square matrix of f32, transposed.
Case TransposeCase(int64_t bytes) {
  int64_t side = 1;
  while (4 * side * side * 4 <= bytes) side *= 2;
  Case made;
  made.name = "transpose_f32";
  made.src_bytes = made.dst_bytes = made.read = made.written = side * side * 4;
  StridedCopy copy;
  copy.src_strides = {4, 4 * side};
  copy.dst_strides = {4 * side, 4};
  copy.src_dtype = copy.dst_dtype = DType::kF32;
  made.start = Copies({{{0, 0, side}}, {{0, 0, side}}}, copy);
  return made;
}

// Pieces of bf16 elements at no regular distances, so that each is one of a table.
class Scatter {
 public:
  void Add(int64_t elements, int64_t gap) {
    runs_.push_back({src_, elements_, elements});
    elements_ += elements;
    src_ += elements + gap;
  }
  int64_t elements() const { return elements_; }

  Case Pack(const std::string& name) const {
    Case made;
    made.name = name;
    made.src_bytes = 2 * src_;
    made.dst_bytes = made.read = made.written = 2 * elements_;
    StridedCopy copy;
    copy.src_strides[0] = copy.dst_strides[0] = 2;
    copy.src_dtype = copy.dst_dtype = DType::kBF16;
    made.start = Copies({runs_}, copy);
    return made;
  }

  std::vector<CasePiece> Pieces() const {
    std::vector<CasePiece> pieces;
    pieces.reserve(runs_.size());
    for (const Stretch& run : runs_) pieces.push_back({2 * run.src, 2 * run.dst, 2 * run.length});
    return pieces;
  }

 private:
  std::vector<Stretch> runs_;
  int64_t src_ = 0;
  int64_t elements_ = 0;
};

// Pieces of about 8 KiB.
Case ScatteredCase(int64_t bytes) {
  Scatter scatter;
  for (uint64_t i = 0; scatter.elements() + 8192 <= bytes / 2; ++i) {
    scatter.Add(static_cast<int64_t>(3072 + (i * 2654435761u >> 7) % 2048 / 8 * 8),
                static_cast<int64_t>((i * 40503u >> 3) % 64 * 8));
  }
  return scatter.Pack("pack_scattered_8k");
}

// Pieces of one size, 16 bytes to 1 KiB apart: what a batched copy is given. So few of them that
// tables of all of them stay small.
Case PiecesCase(int64_t piece, int64_t bytes) {
  constexpr int64_t kPiecesMax = 1 << 17;
  Scatter scatter;
  const int64_t pieces = std::clamp<int64_t>(bytes / piece, 1, kPiecesMax);
  for (int64_t i = 0; i < pieces; ++i) {
    const uint64_t random = static_cast<uint64_t>(i + 1) * 0x9E3779B97F4A7C15u >> 32;
    scatter.Add(piece / 2, static_cast<int64_t>(random % 64 + 1) * 8);
  }
  Case made = scatter.Pack("pieces_" + std::to_string(piece));
  made.pieces = scatter.Pieces();
  return made;
}

Case NormalizeCase(int64_t elements) {
  Case made;
  made.name = "normalize_u8_to_bf16";
  made.src_bytes = made.read = elements;
  made.dst_bytes = made.written = 2 * elements;
  made.start = [=](Device& device, const Sides& sides, bool in_stream_order) {
    const std::array<Normalization, 1> all = {Normalization{DType::kU8, DType::kBF16, 0.017f, -1.9f,
                                                            sides.src, sides.dst, elements,
                                                            sides.src_kind, sides.dst_kind}};
    return device.Start({{}, 1, {}, all, in_stream_order});
  };
  return made;
}

}  // namespace

std::vector<Case> AllCases(int64_t bytes) {
  std::vector<Case> cases;
  cases.push_back(ContiguousCase("copy", DType::kBF16, DType::kBF16, bytes / 2));
  for (const int64_t row : {64, 128, 256, 512, 1024, 4096, 16384, 65536, 1 << 20}) {
    cases.push_back(RowsCase(true, row, bytes));
    cases.push_back(RowsCase(false, row, bytes));
  }
  cases.push_back(ContiguousCase("cast_f32_to_bf16", DType::kF32, DType::kBF16, bytes / 4));
  cases.push_back(ContiguousCase("cast_bf16_to_f32", DType::kBF16, DType::kF32, bytes / 4));
  cases.push_back(ContiguousCase("cast_bf16_to_f8e4m3", DType::kBF16, DType::kF8E4M3, bytes / 2));
  cases.push_back(NormalizeCase(bytes / 2));
  cases.push_back(ScatteredCase(bytes));
  for (const int64_t piece : {512, 4096, 65536, 1 << 20}) {
    cases.push_back(PiecesCase(piece, bytes / 4));
  }
  cases.push_back(TransposeCase(bytes));
  cases.push_back(
      ContiguousCase("pinned_copy", DType::kU8, DType::kU8, bytes / 4, DeviceKind::kCudaHost));
  cases.push_back(RowsCase(true, 2048, bytes / 8, DeviceKind::kCudaHost));
  return cases;
}

}  // namespace sluice
