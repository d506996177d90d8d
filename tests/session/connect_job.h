// Transfers that a test knows whole, and of which it tells each rank only that rank's own part.
#ifndef SLUICE_TESTS_SESSION_CONNECT_JOB_H_
#define SLUICE_TESTS_SESSION_CONNECT_JOB_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "oracle/random_layout.h"
#include "session/specs.h"
#include "session/tensor_memory.h"
#include "sluice/connect.h"

namespace sluice::session_test {

struct ConnectJob {
  SessionOptions options;
  TransferSpec truth;                // a tensor for each target, by the target's name
  std::vector<std::string> sources;  // the name of each one's source
  std::map<std::string, std::string> renames;
  bool sources_rename = false;  // the source side gives them
  // By source: on how many meshes it lies whole. In `truth` these are one, whose first dimension
  // replicates.
  std::map<std::string, int> copies;
};

// Depends on the seed alone. Roles overlap or not; some targets share a source, some have another
// name, some names are asked for on two meshes.
ConnectJob MakeConnectJob(uint64_t seed, int size);

// The same with boxes on sides of most tensors, and with sources of which there are copies.
ConnectJob MakeConnectBoxJob(uint64_t seed, int size);

// Sets names and renames of `truth`, of which every source has its target's name.
ConnectJob PlainJob(TransferSpec truth);

// One rank's memory of a job.
class ConnectMemory {
 public:
  // `dice` says in which order the rank names its tensors, and how they lie in memory. It may leave
  // out those of which it has nothing. Of boxes it names its own.
  ConnectMemory(const ConnectJob& job, int rank, oracle::Dice* dice, bool random_styles = true);

  // What the rank gives to Connect.
  const ConnectSpec& spec() const { return spec_; }

  void Prepare(uint64_t round);
  // Empty if every byte of this rank is right after a run.
  std::string Check(uint64_t round) const;
  // True if nothing has changed since Prepare.
  bool Untouched(uint64_t round) const;

 private:
  // Of a local tensor, or of each box.
  using Memories = std::map<std::string, std::vector<TensorMemory>>;
  static TensorView Remember(const TensorTransfer& tensor, uint64_t number, Side side, int rank,
                             const std::function<ViewStyle()>& style,
                             std::vector<TensorMemory>* memories);

  Memories src_;
  Memories dst_;
  ConnectSpec spec_;
};

// The names of the transfer's tensors in the order that Connect promises, from all ranks' specs.
std::vector<std::string> PromisedOrder(const std::vector<ConnectSpec>& specs);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_CONNECT_JOB_H_
