// One rank of a contract test: a script of steps that never blocks, over a fabric and transports.
//
// The same script runs whether one thread drives all ranks in turn, each rank has a thread, or each
// is a process. Not a test by itself.
#ifndef SLUICE_TESTS_TRANSPORT_CONTRACT_RANK_H_
#define SLUICE_TESTS_TRANSPORT_CONTRACT_RANK_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
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

class ContractRank {
 public:
  explicit ContractRank(std::unique_ptr<Fabric> fabric, std::unique_ptr<ContractMemory> memory =
                                                            std::make_unique<HostContractMemory>());
  ~ContractRank();
  ContractRank(const ContractRank&) = delete;
  ContractRank& operator=(const ContractRank&) = delete;

  int rank() const { return fabric_->rank(); }
  int size() const { return fabric_->size(); }
  Fabric& fabric() { return *fabric_; }
  size_t transports() const { return transports_.size(); }
  // The n-th that was opened; the first one is there from the start.
  Transport& transport(size_t n = 0) { return *transports_[n]; }
  // Whether the device has not come past all operations that have ended in stream order.
  bool DeviceIsBusy() { return memory_->IsBusy(); }
  // All ranks but this one, ascending.
  std::vector<int> Peers() const;

  // --- The script. Steps run in the order in which they were added.
  void Do(std::function<void()> action);
  // Goes on once `done` returns true; the transport is polled between its calls. `what` is for
  // messages about a script that is stuck.
  void Until(std::string what, std::function<bool()> done);
  // Polls `polls` times and checks that not one event comes.
  void ExpectSilence(int polls);
  // Goes on when every operation started so far has ended, but those that may never.
  void UntilAllEnded();

  // Takes one step, or one look at an unfinished one. False once the script is at its end.
  bool Advance();
  // Carries out the rest of the script. Sleeps where nothing moves, as tests of failures wait for
  // seconds, and other tests want the processors. False if `patience` is over before.
  bool Finish(std::chrono::seconds patience);
  // What the script is waiting for.
  std::string Position() const;
  // To be called at the script's end: nothing is outstanding but what may never end, no byte has
  // been written outside a buffer.
  void CheckEnd() const;

  // Ends the transports, so that nothing of other ranks is in use here any more. At the script's
  // end, and before any rank's memory goes.
  void DestroyTransports() { transports_.clear(); }

  // --- For use inside steps.
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
  // Polls all transports, each with room for `events_max` events. Also called between steps.
  void Poll(size_t events_max);

  void OpenTransport();
  // Keeps its number; it must not be used any more.
  void DestroyTransport(size_t n) { transports_[n].reset(); }

 private:
  struct Step {
    std::string what;
    std::function<bool()> done;
  };
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
  std::deque<Step> steps_;
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
