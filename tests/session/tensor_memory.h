// One rank's memory of one tensor in a test: what it must hold, and what must stay untouched.
//
// Owned elements come from the oracle's lists, not from the library under test.
#ifndef SLUICE_TESTS_SESSION_TENSOR_MEMORY_H_
#define SLUICE_TESTS_SESSION_TENSOR_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "session/element_values.h"
#include "sluice/accelerator.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"

namespace sluice::session_test {

// How the view lies in its buffer.
enum class ViewStyle {
  kDense,
  kSlice,        // of a larger tensor: gaps behind every row
  kTransposed,   // the first dimension has the smallest stride
  kSpaced,       // gaps between elements, and no alignment
  kRotated,      // a dimension in the middle has the smallest stride
  kInterleaved,  // two dimensions have positions between those of each other
  kAlike,        // a source alone: elements that are alike lie at one place
};

enum class Side { kSource, kDestination };

class TensorMemory {
 public:
  // The local tensor of `rank` on one side of `tensor`, which is number `number` of its transfer;
  // or `box` of it. Elements of all sources are `alike`.
  TensorMemory(const TensorTransfer& tensor, uint64_t number, Side side, int rank, ViewStyle style,
               const Likeness& alike = {}, const Box* box = nullptr);
  // Has the view name memory of a device from now on. `device` is one of `accelerator`'s; failures
  // of it are reported to gtest, here and later.
  void PutOn(std::shared_ptr<Device> device, const Accelerator& accelerator);

  // A copy's view would name the original's memory.
  TensorMemory(TensorMemory&&) = default;

  // Without data if the rank has no element.
  const TensorView& view() const { return view_; }
  size_t bytes() const { return buffer_.size(); }

  // Sets every element to its value in `round`, all other bytes to the round's poison.
  void Fill(uint64_t round);
  // Sets all bytes to the round's poison.
  void Poison(uint64_t round);
  // True if all bytes are as Fill(round) sets them.
  bool Holds(uint64_t round) const;
  // The first byte that is not, in words.
  std::string Difference(uint64_t round) const;
  bool IsPoisoned(uint64_t round) const;

 private:
  // Strides and extent in elements; the first element's distance from the view's begin.
  struct Arrangement {
    std::vector<int64_t> strides;
    int64_t extent = 1;
    int64_t origin = 0;
  };
  static Arrangement Arrange(const std::vector<std::vector<int64_t>>& lists, ViewStyle style,
                             const Likeness& alike);
  std::vector<std::byte> Image(uint64_t round, bool with_values) const;
  bool Is(const std::vector<std::byte>& image) const;
  // The buffer, up to date with its twin on the device.
  const std::vector<std::byte>& Fetched() const;
  void Bring();

  ElementValues values_;
  Side side_;
  int64_t contribution_ = 0;  // of a source
  size_t element_bytes_;
  std::vector<int64_t> flat_;   // global row-major index of each local element
  std::vector<size_t> offset_;  // where each one lies in buffer_
  mutable std::vector<std::byte> buffer_;
  std::shared_ptr<Device> device_;  // null: the view names the buffer
  DeviceMemory on_device_;
  TensorView view_;
};

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_TENSOR_MEMORY_H_
