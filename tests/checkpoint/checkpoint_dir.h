// Random tensors with two layouts each, and a directory that holds a checkpoint of them.
//
// A tensor is a TensorTransfer: `src` is what a file has, or the layout that is saved from; `dst`
// what is loaded into. So tests/session's memory fills and checks them.
#ifndef SLUICE_TESTS_CHECKPOINT_CHECKPOINT_DIR_H_
#define SLUICE_TESTS_CHECKPOINT_CHECKPOINT_DIR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "main/own_folder.h"
#include "session/tensor_memory.h"
#include "sluice/accelerator.h"
#include "sluice/checkpoint.h"
#include "sluice/session.h"
#include "sluice/transfer.h"

namespace sluice::checkpoint_test {

// The values that files hold.
inline constexpr uint64_t kRound = 3;

// `casts`: some targets are of another floating type.
std::vector<TensorTransfer> RandomTensors(uint64_t seed, int save_ranks, int load_ranks,
                                          bool casts = true);

// "a", "b" and "c", of 64 x 32 elements each, with one layout on both sides.
std::vector<TensorTransfer> PlainTensors(int ranks, absl::string_view placements);

class CheckpointDir {
 public:
  const std::string& path() const { return path_; }
  std::string uri() const { return "buffered:" + path_; }
  std::string FileOf(int file, int files) const;

  // Writes the tensors into files in turn, without help of the library's own saving.
  void Write(const std::vector<TensorTransfer>& tensors, int files, bool with_index) const;

  // The names in it, in order.
  std::vector<std::string> Names() const { return NamesIn(path_); }

 private:
  const OwnFolder folder_;
  const std::string path_ = folder_.path().string();
};

// The bytes of the tensors in files.
int64_t FileBytes(const std::vector<TensorTransfer>& tensors);

// The same tensors, of which most lie in boxes on either side.
std::vector<TensorTransfer> RandomBoxTensors(uint64_t seed, int save_ranks, int load_ranks);

// One rank's memory of all tensors on one side, and the tensors as a checkpoint call takes them.
// With an accelerator, most are in its memory.
struct RankTensors {
  std::vector<session_test::TensorMemory> memory;  // of a local tensor, or of a box
  std::vector<size_t> tensor_of;                   // parallel to it
  std::vector<CheckpointTensor> tensors;

  RankTensors(const std::vector<TensorTransfer>& of, session_test::Side side, int rank,
              uint64_t style_seed, const std::shared_ptr<Accelerator>& accelerator = nullptr);
  void ExpectHolds(uint64_t round) const;
  void ExpectPoisoned(uint64_t round) const;
};

// Runs `body` on each rank with a session, which it then closes.
void WithSessions(int ranks, const std::function<void(int rank, Session* session)>& body,
                  bool progress_thread = false);

// Checks that `call` fails on all ranks, with one code. The status of rank 0.
absl::Status ErrorOnAll(int ranks, const std::function<absl::Status(int, Session*)>& call);

}  // namespace sluice::checkpoint_test

#endif  // SLUICE_TESTS_CHECKPOINT_CHECKPOINT_DIR_H_
