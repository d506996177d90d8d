// A transport that writes its operations to a log, and ends one when a test says so.
#ifndef SLUICE_TESTS_FAKES_LOG_TRANSPORT_H_
#define SLUICE_TESTS_FAKES_LOG_TRANSPORT_H_

#include <string>

#include "absl/status/status.h"
#include "fakes/operations_log.h"
#include "sluice/transport.h"

namespace sluice {

// Moves no bytes. What is withdrawn ends when the test says so, too.
class LogTransport final : public Transport {
 public:
  // `log` must outlive the transport.
  LogTransport(const TransportTraits& traits, OperationsLog* log) : Transport(traits), log_(log) {}
  ~LogTransport() override;

  bool End(absl::string_view name, const absl::Status& status) { return ops_.End(name, status); }
  const LoggedOperations& operations() const { return ops_; }
  // The next Start fails.
  void RefuseNext(const absl::Status& status) { refusal_ = status; }
  // The next Poll fails; what is outstanding is not heard of again.
  void Break(const absl::Status& status) { failure_ = status; }
  // Other ranks part only from now on.
  void HoldParting(bool hold) { held_ = hold; }

  absl::Status Reserve(int capacity) override;
  absl::Status UseStaging(absl::Span<std::byte> staging) override;
  void CloseImports() override { log_->Write("close imports"); }
  absl::Status Start(absl::Span<const TransportOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override;
  void Withdraw() override { log_->Write("withdraw"); }
  bool Part() override;
  int outstanding() const override { return ops_.outstanding(); }

 private:
  std::string Describe(const TransportOp& op) const;

  OperationsLog* const log_;
  LoggedOperations ops_;
  int capacity_ = 0;
  bool parts_ = false;
  bool held_ = false;
  absl::Status refusal_;
  absl::Status failure_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_LOG_TRANSPORT_H_
