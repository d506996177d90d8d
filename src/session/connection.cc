// Connect: the ranks' own tensors become a transfer, and their memory stays bound to it.
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/connect/bound_tensors.h"
#include "session/connect/join_halves.h"
#include "session/session_impl.h"
#include "sluice/connect.h"
#include "sluice/session.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

class ConnectionImpl final : public Connection {
 public:
  ConnectionImpl(Session* session, Transfer* transfer, BoundTensors bound)
      : session_(session), transfer_(transfer), bound_(std::move(bound)) {}

  Transfer* transfer() const override { return transfer_; }

  absl::StatusOr<Run> Start(const StartOptions& options) override {
    if (absl::Status status = CheckThere(); !status.ok()) return status;
    if (options.version && version_ && *options.version <= *version_) {
      return absl::InvalidArgumentError(
          absl::StrCat("version ", *options.version, " is to follow version ", *version_));
    }
    absl::StatusOr<Run> run = SessionImpl::Start(session_, transfer_, bound_.src(), bound_.dst(),
                                                 bound_.binding(), options);
    if (run.ok() && options.version) version_ = options.version;
    return run;
  }

  absl::optional<int64_t> version() const override { return version_; }

  absl::Status Rebind(absl::Span<const NamedView> sources,
                      absl::Span<const NamedView> targets) override {
    if (absl::Status status = CheckThere(); !status.ok()) return status;
    SessionImpl* const impl = SessionImpl::Of(session_);
    return impl->Use(
        [&] { return bound_.Rebind(sources, targets, impl->transfers()->MemoryRulesNow()); });
  }

  absl::Status Drop() override {
    if (absl::Status status = CheckThere(); !status.ok()) return status;
    absl::Status status = session_->Drop(transfer_);
    if (status.ok()) transfer_ = nullptr;
    return status;
  }

 private:
  absl::Status CheckThere() const {
    if (transfer_ != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError("the connection has been dropped");
  }

  Session* const session_;
  Transfer* transfer_;
  BoundTensors bound_;
  absl::optional<int64_t> version_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connect(Session* session, const ConnectSpec& own) {
  if (session == nullptr) return absl::InvalidArgumentError("no session");
  SessionImpl* const impl = SessionImpl::Of(session);
  Match match;
  BoundTensors bound;
  SLUICE_RETURN_IF_ERROR(impl->CallAll("Connect", [&] {
    return JoinHalves(impl->peers(), impl->transfers()->MemoryRulesNow(), own, &match, &bound);
  }));
  SLUICE_ASSIGN_OR_RETURN(Transfer* const transfer, session->Compile(match.spec));
  return std::make_unique<ConnectionImpl>(session, transfer, std::move(bound));
}

}  // namespace sluice
