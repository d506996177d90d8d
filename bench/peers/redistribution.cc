// Blocks, fills and checks.
#include "peers/redistribution.h"

#include <algorithm>
#include <cstring>

namespace sluice::peers {
namespace {

constexpr std::byte kPoison{0xA5};

// A rectangle of the matrix, which lies dense in a rank's memory.
struct Part {
  int64_t first_row;
  int64_t rows;
  int64_t first_column;
  int64_t columns;
};

Part PartOf(const Redistribution& what, int rank, bool src) {
  if (what.kind == "contiguous") {
    return {0, rank == (src ? 0 : 1) ? what.rows : 0, 0, what.columns};
  }
  if ((what.kind == "columns-to-rows") == src) {
    const int64_t columns = what.columns / what.ranks;
    return {0, what.rows, rank * columns, columns};
  }
  const int64_t rows = what.rows / what.ranks;
  return {rank * rows, rows, 0, what.columns};
}

// What element `index` of the matrix is: never the poison in all of its bytes.
uint32_t ValueAt(int64_t index) {
  const auto mixed = static_cast<uint32_t>(index * 2654435761 >> 8);
  return mixed & 0x7F7F7F7FU;
}

// Calls `visit(position, element)` for each element of the part, with its place in local memory.
template <typename Visit>
void ForEachElement(const Redistribution& what, const Part& part, Visit visit) {
  int64_t local = 0;
  for (int64_t r = 0; r < part.rows; ++r) {
    const int64_t row = (part.first_row + r) * what.columns + part.first_column;
    for (int64_t c = 0; c < part.columns; ++c, ++local) visit(local, ValueAt(row + c));
  }
}

template <typename T>
void Fill(const Redistribution& what, const Part& part, std::byte* data) {
  ForEachElement(what, part, [&](int64_t i, uint32_t value) {
    const T element = static_cast<T>(value);
    std::memcpy(data + i * static_cast<int64_t>(sizeof(T)), &element, sizeof(T));
  });
}

template <typename T>
int64_t CountOthers(const Redistribution& what, const Part& part, const std::byte* data) {
  int64_t wrong = 0;
  ForEachElement(what, part, [&](int64_t i, uint32_t value) {
    T element;
    std::memcpy(&element, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    wrong += element != static_cast<T>(value) ? 1 : 0;
  });
  return wrong;
}

int64_t PartBytes(const Redistribution& what, const Part& part) {
  return part.rows * part.columns * what.element_bytes;
}

}  // namespace

int64_t Redistribution::src_bytes(int rank) const {
  return PartBytes(*this, PartOf(*this, rank, true));
}

int64_t Redistribution::dst_bytes(int rank) const {
  return PartBytes(*this, PartOf(*this, rank, false));
}

std::string Problem(const Redistribution& what) {
  if (what.kind != "contiguous" && what.kind != "columns-to-rows" &&
      what.kind != "rows-to-columns") {
    return "there is no kind \"" + what.kind + "\"";
  }
  if (what.rows < 1 || what.columns < 1) return "the matrix has no elements";
  if (what.element_bytes != 2 && what.element_bytes != 4) return "elements have 2 or 4 bytes";
  if (what.kind == "contiguous") return what.ranks == 2 ? "" : "contiguous is for 2 ranks";
  if (what.ranks < 1) return "there are no ranks";
  if (what.rows % what.ranks != 0 || what.columns % what.ranks != 0) {
    return "the ranks do not divide the rows and the columns";
  }
  return "";
}

Block BlockOf(const Redistribution& what, int src, int dst) {
  const Part from = PartOf(what, src, true);
  const Part to = PartOf(what, dst, false);
  const int64_t row = std::max(from.first_row, to.first_row);
  const int64_t column = std::max(from.first_column, to.first_column);
  Block block;
  block.rows = std::min(from.first_row + from.rows, to.first_row + to.rows) - row;
  if (block.rows <= 0) return {};
  const int64_t columns =
      std::min(from.first_column + from.columns, to.first_column + to.columns) - column;
  block.row_bytes = columns * what.element_bytes;
  block.src_stride = from.columns * what.element_bytes;
  block.dst_stride = to.columns * what.element_bytes;
  block.src_offset =
      (row - from.first_row) * block.src_stride + (column - from.first_column) * what.element_bytes;
  block.dst_offset =
      (row - to.first_row) * block.dst_stride + (column - to.first_column) * what.element_bytes;
  if (block.src_stride == block.row_bytes && block.dst_stride == block.row_bytes) {
    block.row_bytes *= block.rows;
    block.rows = 1;
  }
  return block;
}

void CopyRows(int64_t rows, int64_t row_bytes, const std::byte* from, int64_t from_stride,
              std::byte* to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(to + r * to_stride, from + r * from_stride, static_cast<size_t>(row_bytes));
  }
}

Memory::Memory(const Redistribution& what, int rank)
    : what_(what),
      rank_(rank),
      src_(static_cast<size_t>(what.src_bytes(rank))),
      dst_(static_cast<size_t>(what.dst_bytes(rank))) {
  const Part part = PartOf(what, rank, true);
  if (what.element_bytes == 2) {
    Fill<uint16_t>(what, part, src_.data());
  } else {
    Fill<uint32_t>(what, part, src_.data());
  }
}

void Memory::Poison() { std::fill(dst_.begin(), dst_.end(), kPoison); }

int64_t Memory::CountWrong() const {
  const Part part = PartOf(what_, rank_, false);
  return what_.element_bytes == 2 ? CountOthers<uint16_t>(what_, part, dst_.data())
                                  : CountOthers<uint32_t>(what_, part, dst_.data());
}

}  // namespace sluice::peers
