// The bytes of a message, as one stretch or as rows, and how far they have gone.
#ifndef SLUICE_SRC_TRANSPORT_TCP_TCP_ROWS_H_
#define SLUICE_SRC_TRANSPORT_TCP_TCP_ROWS_H_

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace sluice {

struct TcpRows {
  static constexpr size_t kShortRowBytes = 512;

  std::byte* data = nullptr;
  size_t bytes = 0;      // of which
  size_t row_bytes = 0;  // 0: one stretch
  size_t stride_bytes = 0;
  size_t at = 0;  // have gone

  size_t left() const { return bytes - at; }
  // Cheaper to copy than to name each to the system.
  bool are_short() const { return row_bytes != 0 && row_bytes < kShortRowBytes; }
  // Bytes at `place` of the message, and how many lie there in one stretch.
  std::byte* Address(size_t place) const {
    if (row_bytes == 0) return data + place;
    return data + place / row_bytes * stride_bytes + place % row_bytes;
  }
  size_t Stretch(size_t place) const {
    return row_bytes == 0 ? bytes - place : std::min(bytes - place, row_bytes - place % row_bytes);
  }

  // Writes up to `room` pieces of what is left, at most `most` bytes; adds their bytes to `total`.
  // Returns how many pieces.
  int Pieces(iovec* pieces, int room, size_t most, size_t* total) const {
    int count = 0;
    const size_t end = std::min(bytes, at + most);
    size_t place = at;
    while (count < room && place < end) {
      const size_t stretch = std::min(Stretch(place), end - place);
      pieces[count++] = {Address(place), stretch};
      place += stretch;
    }
    *total += place - at;
    return count;
  }

  // Goes on by `count` bytes, which come from `from`.
  void Take(const std::byte* from, size_t count) {
    while (count > 0) {
      const size_t stretch = std::min(Stretch(at), count);
      std::memcpy(Address(at), from, stretch);
      at += stretch;
      from += stretch;
      count -= stretch;
    }
  }
  // Goes on by `count` bytes, which go to `to`.
  void Give(std::byte* to, size_t count) {
    while (count > 0) {
      const size_t stretch = std::min(Stretch(at), count);
      std::memcpy(to, Address(at), stretch);
      at += stretch;
      to += stretch;
      count -= stretch;
    }
  }
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TCP_TCP_ROWS_H_
