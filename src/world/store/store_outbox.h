// The outbox of a connection: whole frames in order, of which some bytes have left. No I/O.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_OUTBOX_H_
#define SLUICE_SRC_WORLD_STORE_STORE_OUTBOX_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace sluice {

// Keeps little more than what has not left, however long some bytes are always unsent.
class StoreOutbox {
 public:
  // Whole frames, with their lengths.
  void Append(absl::string_view frames) { bytes_.append(frames.data(), frames.size()); }

  absl::string_view unsent() const { return absl::string_view(bytes_).substr(sent_); }
  bool empty() const { return sent_ == bytes_.size(); }

  // So many bytes from the front have left.
  void NoteSent(size_t bytes);

  // Drops the frames of which nothing has left. Returns how many bytes they had.
  size_t DropUnbegun();

  // How much memory the frames have.
  size_t capacity() const { return bytes_.capacity(); }

 private:
  std::string bytes_;  // begins with a frame
  size_t sent_ = 0;    // of bytes_
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_OUTBOX_H_
