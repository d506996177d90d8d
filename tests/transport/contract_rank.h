// One rank of a contract test: what its script starts and waits for, over a fabric and transports.
//
// The same script runs whether ranks are threads, threads that run in turn, or processes. Not a
// test by itself.
#ifndef SLUICE_TESTS_TRANSPORT_CONTRACT_RANK_H_
#define SLUICE_TESTS_TRANSPORT_CONTRACT_RANK_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sluice/fabric.h"
#include "sluice/transport.h"

namespace sluice {

// Where a rank's buffers lie, and what its transports are.
class ContractMemory {
 public:
  virtual ~ContractMemory() = default;

  virtual absl::StatusOr<std::unique_ptr<Transport>> OpenTransport(Fabric* fabric) = 0;
  // Stays until the end of this.
  virtual std::byte* Allocate(size_t bytes) = 0;
  // Unless it is freed before.
  virtual void Free(std::byte* data) = 0;
  // The bytes that operations see which are started after Write, or have ended before Read.
  virtual void Write(std::byte* to, absl::Span<const std::byte> bytes) = 0;
  virtual std::vector<std::byte> Read(const std::byte* from, size_t bytes) = 0;
  // Whether operations that have ended in stream order may not have taken place yet.
  virtual bool IsBusy() = 0;
  // Whether memory of operations that have not ended when their transport does must stay for ever.
  virtual bool must_stay() const = 0;
};

// The fabric's messages, in host memory.
class HostContractMemory : public ContractMemory {
 public:
  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport(Fabric* fabric) override;
  std::byte* Allocate(size_t bytes) override;
  void Free(std::byte* data) override;
  void Write(std::byte* to, absl::Span<const std::byte> bytes) override;
  std::vector<std::byte> Read(const std::byte* from, size_t bytes) override;
  bool IsBusy() override { return false; }
  bool must_stay() const override { return must_stay_; }

 private:
  std::list<std::vector<std::byte>> buffers_;
  bool must_stay_ = false;
};

class ContractRank;

// A rank's part of a test. Called once for each rank, maybe on different threads at once.
using ContractScript = std::function<void(ContractRank& rank)>;

class ContractRank {
 public:
  explicit ContractRank(std::unique_ptr<Fabric> fabric, std::unique_ptr<ContractMemory> memory =
                                                            std::make_unique<HostContractMemory>());
  ~ContractRank();
  ContractRank(const ContractRank&) = delete;
  ContractRank& operator=(const ContractRank&) = delete;

  int rank() const { return fabric_->rank(); }
  int size() const { return fabric_->size(); }
  // The neighbours in a ring of all ranks.
  int next() const { return (rank() + 1) % size(); }
  int previous() const { return (rank() + size() - 1) % size(); }
  Fabric& fabric() { return *fabric_; }
  size_t transports() const { return transports_.size(); }
  // The n-th that was opened; the first one is there from the start.
  Transport& transport(size_t n = 0) { return *transports_[n]; }
  // Whether the device has not come past all operations that have ended in stream order.
  bool DeviceIsBusy() { return memory_->IsBusy(); }
  // All ranks but this one, ascending.
  std::vector<int> Peers() const;

  // Runs the script. False if one of its waits takes longer than `patience`; Position() says which.
  bool Run(const ContractScript& script, std::chrono::seconds patience);
  // From now on `pause` is called where a wait pauses. Otherwise it sleeps where nothing moves, as
  // tests of failures wait for seconds, and other tests want the processors.
  void PauseBy(std::function<void()> pause) { pause_ = std::move(pause); }
  // What the script is waiting for.
  std::string Position() const;
  // To be called at the script's end: nothing is outstanding but what may never end, no byte has
  // been written outside a buffer.
  void CheckEnd() const;

  // Ends the transports, so that nothing of other ranks is in use here any more. At the script's
  // end, and before any rank's memory goes.
  void DestroyTransports() { transports_.clear(); }

  // --- For scripts: waits.
  // Returns once `done` does; the transport is polled between its calls. `what` is for messages
  // about a script that is stuck.
  void Until(const std::string& what, const std::function<bool()>& done);
  // Polls `polls` times and checks that not one event comes.
  void ExpectSilence(int polls);
  // Returns when every operation started so far has ended, but those that may never.
  void UntilAllEnded();
  void UntilEnded(uint64_t cookie);

  // --- For scripts: operations.
  void Reserve(int capacity, size_t n = 0);
  // A buffer of the rank's, between guards, that lives as long as it.
  std::byte* Buffer(size_t bytes);
  // Frees a buffer that no operation is to touch any more.
  void FreeBuffer(const std::byte* data);
  // A buffer whose content follows from `seed`.
  std::byte* FilledBuffer(size_t bytes, uint64_t seed);
  bool Matches(const std::byte* data, size_t bytes, uint64_t seed) const;
  void Write(std::byte* to, absl::Span<const std::byte> bytes) { memory_->Write(to, bytes); }
  std::vector<std::byte> Read(const std::byte* from, size_t bytes) const {
    return memory_->Read(from, bytes);
  }

  TransportOp Send(int peer, int tag, std::byte* data, size_t bytes);
  TransportOp Receive(int peer, int tag, std::byte* data, size_t bytes);
  // Starts operations made by Send and Receive, on the n-th transport.
  void Start(absl::Span<const TransportOp> ops, size_t n = 0);
  // Forgets an operation that the transport has refused.
  void Forget(const TransportOp& op);

  // The operation need not end.
  void MayNeverEnd(uint64_t cookie) { hopeless_.insert(cookie); }

  bool Ended(uint64_t cookie) const { return events_.count(cookie) != 0; }
  // The outcome of an operation that has ended.
  const absl::Status& Outcome(uint64_t cookie) const { return events_.at(cookie); }
  size_t started() const { return started_; }
  size_t ended() const { return events_.size(); }
  // Polls all transports, each with room for `events_max` events.
  void Poll(size_t events_max);

  void OpenTransport();
  // Keeps its number; it must not be used any more.
  void DestroyTransport(size_t n) { transports_[n].reset(); }

 private:
  struct Guarded {
    std::byte* data;  // guard, payload, guard
    size_t bytes;
  };
  TransportOp Op(TransportOp::Kind kind, int peer, int tag, std::byte* data, size_t bytes);

  bool AllEnded() const;
  void Take(const TransportEvent& event);

  std::unique_ptr<ContractMemory> memory_;
  std::vector<Guarded> buffers_;
  std::unique_ptr<Fabric> fabric_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::function<void()> pause_;
  std::chrono::steady_clock::time_point deadline_;
  std::string waits_for_ = "nothing";
  std::map<uint64_t, absl::Status> events_;
  std::set<uint64_t> open_;      // started and not ended
  std::set<uint64_t> hopeless_;  // may never end
  uint64_t next_cookie_ = 1;
  size_t started_ = 0;
};

// A one-byte message with the last of the tags, which lets its receiver go on.
void Tell(ContractRank& r, int dst);
void UntilTold(ContractRank& r, int src);

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_CONTRACT_RANK_H_
